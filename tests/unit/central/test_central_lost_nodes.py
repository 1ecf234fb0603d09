"""Lost nodes in a cluster: verdict, withdrawal, taint and eviction, and everything that must hold them back."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from cluster_world import TenNodes, World, ten_nodes
from fixture_types import Virtual

from services.central.core.lost_nodes.actions import OBSERVES
from shared.contracts.bus.subjects import EVENTS_STREAM, INTENTS_STREAM, intent_subject
from shared.contracts.eviction import EvictionEvent, EvictionIntent
from shared.contracts.ids import intent_id
from shared.contracts.pod import Pod
from shared.contracts.readiness import Readiness, ServiceHealth
from shared.core.api_kind import CNRS, LEASES, NODES, PODS, ApiKind
from shared.fakes.memory_objects import Document
from shared.ports import ActionResult, DurableMessage
from shared.wire import Wire


@pytest.fixture
def play(virtual: Virtual) -> TenNodes:
    return partial(ten_nodes, virtual)


def killed(world: World) -> list[str]:
    return sorted(world.evictor.killed)


def tainted(world: World) -> list[str]:
    return [name for name in world.nodes if world.tainted(name)]


def verdict(world: World, node: str) -> str:
    found: str = world.app.state()["cluster"]["lost_nodes"]["nodes"].get(node, {}).get("verdict", "ready")
    return found


def test_a_dead_agent_leads_to_withdrawal_then_taint_then_eviction_of_its_reclaimed_pods_alone(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.kill_agent("n3")
        await asyncio.sleep(34)
        assert verdict(world, "n3") == "lost"
        assert world.offered("n3") == "0"
        assert (tainted(world), killed(world)) == ([], [])
        await asyncio.sleep(90)
        assert (tainted(world), killed(world)) == (["n3"], [])
        await asyncio.sleep(120)
        assert killed(world) == ["batch-n3"]
        intents = [EvictionIntent.decode(m.data) for m in await world.bus.replay(INTENTS_STREAM, ">")]
        assert [(i.node, i.pod, i.plugin, i.epoch) for i in intents] == [("n3", "batch-n3", "lost-node", 1)]
        events = [EvictionEvent.decode(m.data) for m in await world.bus.replay(EVENTS_STREAM, ">")]
        assert [(e.phase, e.pod) for e in events] == [("created", "batch-n3"), ("succeeded", "batch-n3")]
        assert {e.intent_id for e in events} == {intents[0].intent_id}
        assert {world.offered(n) for n in world.nodes if n != "n3"} == {"10k"}

    play(story)


def test_the_tutorials_periods_hold_by_default(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.kill_agent("n3")
        await asyncio.sleep(590)
        assert tainted(world) == []
        await asyncio.sleep(60)
        assert (tainted(world), killed(world)) == (["n3"], [])
        await asyncio.sleep(540)
        assert killed(world) == []
        await asyncio.sleep(60)
        assert killed(world) == ["batch-n3"]

    play(story, rules={})


@pytest.mark.parametrize("observing", [True, False])
def test_a_lost_node_that_only_observed_keeps_its_pods_and_gets_no_taint(play: TenNodes, observing: bool) -> None:
    async def story(world: World) -> None:
        world.observing = {"n3"} if observing else set()
        await asyncio.sleep(11)
        world.kill_agent("n3")
        await asyncio.sleep(400)
        assert verdict(world, "n3") == "lost"
        assert (tainted(world), killed(world)) == (([], []) if observing else (["n3"], ["batch-n3"]))
        wanted = world.app.state()["cluster"]["lost_nodes"]["wanted"]
        assert wanted == ({"n3": {"action": "taint", "objection": OBSERVES}} if observing else {})

    play(story)


def test_a_node_that_comes_back_loses_its_taint_and_keeps_its_pods(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.kill_agent("n3")
        await asyncio.sleep(130)
        assert tainted(world) == ["n3"]
        foreign = {"key": "example.org/mine", "effect": "NoSchedule"}
        cnr = world.api.documents[CNRS, "", "n3"]
        world.api.put(CNRS, {**cnr, "spec": {"taints": [foreign, *cnr["spec"]["taints"]]}})
        world.silent.clear()
        world.agent("n3", ready=True)
        await asyncio.sleep(5)
        assert world.api.documents[CNRS, "", "n3"]["spec"]["taints"] == [foreign]
        await asyncio.sleep(400)
        assert killed(world) == []

    play(story)


def test_a_node_cut_off_from_the_bus_while_its_agent_lives_is_never_evicted_from(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.silent.add("n3")
        await asyncio.sleep(1500)
        assert verdict(world, "n3") == "suspect"
        assert (tainted(world), killed(world)) == (["n3"], [])

    play(story)


def test_an_agent_that_is_not_ready_but_beats_is_nobodys_loss(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.agent("n3", ready=False)
        await asyncio.sleep(900)
        assert verdict(world, "n3") == "ready"
        assert (tainted(world), killed(world), world.offered("n3")) == ([], [], "10k")

    play(story)


@pytest.mark.parametrize("how", ["not ready", "lease"])
def test_a_node_that_is_gone_for_kubernetes_too_is_left_to_it(play: TenNodes, how: str) -> None:
    async def story(world: World) -> None:
        world.kill_agent("n3")
        if how == "not ready":
            node = world.api.documents[NODES, "", "n3"]
            status = {**node["status"], "conditions": [{"type": "Ready", "status": "Unknown"}]}
            world.api.put(NODES, {**node, "status": status})
        else:
            put = world.api.put

            def not_renewed(kind: ApiKind, document: Mapping[str, Any]) -> Document:
                if kind == LEASES and document["metadata"]["name"] == "n3":
                    return {}
                return put(kind, document)

            world.api.put = not_renewed  # type: ignore[method-assign]
        await asyncio.sleep(900)
        assert verdict(world, "n3") == "kubernetes"
        assert killed(world) == []

    play(story)


@pytest.mark.parametrize("lost", [3, 5, 9, 10])
def test_too_many_lost_at_once_is_nobodys_own_fault(play: TenNodes, lost: int) -> None:
    async def story(world: World) -> None:
        for name in world.nodes[:lost]:
            world.kill_agent(name)
        await asyncio.sleep(1500)
        assert (tainted(world), killed(world)) == ([], [])
        objections = world.app.state()["cluster"]["lost_nodes"]["guards"]
        assert objections

    play(story)


def test_a_node_alone_is_never_acted_on(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.kill_agent("n0")
        await asyncio.sleep(1500)
        assert (tainted(world), killed(world)) == ([], [])

    play(story, nodes=1)


def test_a_central_that_suspects_the_bus_freezes_and_does_not_count_that_time_as_silence(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.app.bus.go_offline()
        world.kill_agent("n3")
        await asyncio.sleep(1500)
        assert verdict(world, "n3") == "freeze"
        assert (tainted(world), killed(world), world.offered("n3")) == ([], [], "10k")
        world.app.bus.go_online()
        await asyncio.sleep(95)
        assert tainted(world) == []
        await asyncio.sleep(60)
        assert tainted(world) == ["n3"]

    play(story)


def test_without_the_api_server_everything_freezes_and_the_clocks_begin_anew(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.kill_agent("n3")
        await asyncio.sleep(40)
        world.api.go_offline()
        await asyncio.sleep(1500)
        assert verdict(world, "n3") == "freeze"
        assert killed(world) == []
        world.api.go_online()
        await asyncio.sleep(80)
        assert (tainted(world), killed(world)) == ([], [])
        await asyncio.sleep(60)
        assert tainted(world) == ["n3"]

    play(story)


def test_pods_go_few_at_a_time(play: TenNodes) -> None:
    async def story(world: World) -> None:
        for i in range(6):
            world.pod("n3", f"more-{i}")
        world.evictor.lives_on_s = 30
        world.kill_agent("n3")
        await asyncio.sleep(600)
        assert killed(world) == ["batch-n3", *(f"more-{i}" for i in range(6))]
        assert world.evictor.most_at_once == 2

    play(story)


def test_what_is_left_of_the_budget_is_with_the_lease_before_anything_is_done(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.kill_agent("n3")
        lease = world.api.documents[LEASES, "sublet-system", "sublet-central"]
        while not world.tainted("n3"):
            lease = world.api.documents[LEASES, "sublet-system", "sublet-central"]
            await asyncio.sleep(0.1)
        order = [write[:2] for write in world.api.writes]
        taint = max(i for i, w in enumerate(order) if w == ("apply", "customnoderesources"))
        assert order[taint - 1] == ("patch", "leases")
        assert lease is not None
        lease = world.api.documents[LEASES, "sublet-system", "sublet-central"]
        assert float(lease["metadata"]["annotations"]["sublet.io/lost-node-tokens"]) < 1

    play(story)


def test_a_lease_that_another_one_took_stops_an_action_that_was_due(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.kill_agent("n3")
        await asyncio.sleep(95)
        lease = world.api.documents[LEASES, "sublet-system", "sublet-central"]
        spec = {**lease["spec"], "holderIdentity": "another", "leaseTransitions": 9, "leaseDurationSeconds": 3600}
        world.api.put(LEASES, {"metadata": {"name": "sublet-central", "namespace": "sublet-system"}, "spec": spec})
        await asyncio.sleep(900)
        assert (tainted(world), killed(world)) == ([], [])
        assert verdict(world, "n3") == "lost"

    play(story)


def test_a_disruption_budget_is_waited_for_and_a_refusal_is_told(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.evictor.rehearsals.append(ActionResult("wait", "the budget allows none"))
        world.evictor.rehearsals.append(ActionResult("refused", "no right"))
        world.kill_agent("n3")
        await asyncio.sleep(330)
        assert killed(world) == ["batch-n3"]
        events = [EvictionEvent.decode(m.data) for m in await world.bus.replay(EVENTS_STREAM, ">")]
        assert [event.phase for event in events] == ["refused", "created", "succeeded"]

    play(story)


def test_an_agent_that_is_ready_at_the_server_while_the_mirror_is_behind_saves_its_pods(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.kill_agent("n3")
        document = world.api.documents[PODS, "sublet-system", "agent-n3"]
        document["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}  # of which no watch tells
        await asyncio.sleep(600)
        assert verdict(world, "n3") == "lost"
        assert killed(world) == []
        events = [EvictionEvent.decode(m.data) for m in await world.bus.replay(EVENTS_STREAM, ">")]
        assert {(event.phase, event.detail) for event in events} == {("cancelled", "its agent is ready after all")}

    play(story)


def test_a_node_that_is_heard_between_two_assessments_keeps_its_pods(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.kill_agent("n3")
        rehearse = world.evictor.evict

        async def speaks(pod: Pod, **more: Any) -> ActionResult:
            if more.get("dry_run"):
                wire = world.wires["n3"]
                health = ServiceHealth(service="evictor", ok=True)
                await wire.publish(wire.stamp(Readiness, ready=True, mode="enforce", services=(health,)))
                await asyncio.sleep(0.01)
            return await rehearse(pod, **more)

        world.evictor.evict = speaks  # type: ignore[method-assign]
        await asyncio.sleep(600)
        assert killed(world) == []
        events = [EvictionEvent.decode(m.data) for m in await world.bus.replay(EVENTS_STREAM, ">")]
        assert {(event.phase, event.detail) for event in events} == {("cancelled", "the node is heard again")}

    play(story)


def test_an_eviction_is_reported_by_the_next_leader_where_the_one_that_made_it_dies(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.evictor.lives_on_s = 40
        world.central()
        world.kill_agent("n3")
        while not world.evictor.kills:
            await asyncio.sleep(0.1)
        world.app.task.cancel()  # without giving back its lease
        await asyncio.sleep(120)
        events = [EvictionEvent.decode(m.data) for m in await world.bus.replay(EVENTS_STREAM, ">")]
        assert [(e.phase, e.pod) for e in events if e.phase == "succeeded"] == [("succeeded", "batch-n3")]
        assert len({e.intent_id for e in events}) == 1
        assert killed(world) == ["batch-n3"]

    play(story)


@pytest.mark.parametrize(("epoch", "evicted"), [(1, ["batch-n3"]), (2, [])])
def test_a_leader_that_a_later_one_has_followed_evicts_nobody(play: TenNodes, epoch: int, evicted: list[str]) -> None:
    async def story(world: World) -> None:
        pod = world.api.documents[PODS, "default", "batch-n3"]
        uid = pod["metadata"].get("uid") or "batch-n3"
        voice = Wire(world.bus, world.clock, node="n3", service="central")
        fields: dict[str, Any] = {"namespace": "default", "pod": "batch-n3", "pod_uid": uid, "qos": "reclaimed_cores"}
        theirs = voice.stamp(
            EvictionIntent,
            intent_id=intent_id("n3", uid, "tide", 0),
            plugin="tide",
            scope="node",
            episode=0,
            epoch=epoch,
            **fields,
        )
        await world.bus.publish_durable(DurableMessage(intent_subject(theirs), theirs.encode(), msg_id="theirs"))
        world.kill_agent("n3")
        await asyncio.sleep(400)
        assert killed(world) == evicted

    play(story)


def test_a_quiet_collection_is_no_reason_to_freeze(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.kill_agent("n3")
        (agents,) = [m for m in world.api.mirrors if m.kind == PODS]
        agents.quiet_since_s = world.clock.monotonic()
        await asyncio.sleep(85)
        assert verdict(world, "n3") == "lost"
        await asyncio.sleep(10)
        assert verdict(world, "n3") == "freeze"

    play(story)


def test_a_node_on_which_it_was_never_installed_is_nobodys_loss(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.node("control-plane", beats=False)
        world.api.drop(PODS, "agent-control-plane", "sublet-system")
        await asyncio.sleep(1500)
        assert not world.tainted("control-plane")
        assert "control-plane" not in world.app.state()["cluster"]["lost_nodes"]["nodes"]
        assert world.app.state()["nodes"]["ready"] == 10

    play(story)


@pytest.mark.parametrize("ahead_s", [0, 600, -600])
def test_a_central_that_has_just_started_takes_no_heartbeat_of_the_past_for_news(play: TenNodes, ahead_s: int) -> None:
    async def story(world: World) -> None:
        world.ahead["n3"] = timedelta(seconds=ahead_s)
        wire, health = world.wires["n3"], ServiceHealth(service="evictor", ok=True)
        await asyncio.sleep(11)  # until its lease shows the clock
        said = [wire.stamp(Readiness, ready=True, mode="enforce", services=(health,)) for _ in range(3)]
        said = [one.model_copy(update={"sent_at": one.sent_at + world.ahead["n3"]}) for one in said]
        world.kill_agent("n3")
        await asyncio.sleep(40)
        fresh = world.central()
        await asyncio.sleep(15)
        for heartbeat in said:
            await wire.publish(heartbeat)
            await asyncio.sleep(12)
        heard = {node: beat.heard_at_s for node, beat in fresh.app._ledger.items()}
        now_s = world.clock.monotonic()
        assert now_s - heard["n3"] > 36 > 12 > now_s - heard["n4"]
        assert fresh.state()["not_ready"]["n3"]["state"] == "late"
        world.silent.discard("n3")
        beat = wire.stamp(Readiness, ready=True, mode="enforce", services=(health,))
        await wire.publish(beat.model_copy(update={"sent_at": beat.sent_at + world.ahead["n3"]}))
        await asyncio.sleep(2)
        assert "n3" not in fresh.state()["not_ready"]

    play(story)
