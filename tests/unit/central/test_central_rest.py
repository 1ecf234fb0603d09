"""Central at rest: what happens on every node all the time costs no pass over all nodes, and nothing is overlooked."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from cluster_world import TenNodes, World, ten_nodes
from fixture_types import Virtual
from hypothesis import given
from hypothesis import strategies as st

from services.central.adapters.cluster_mirrors import mirror_cluster
from services.central.core.heartbeats.listening import BusProbe
from services.central.core.heartbeats.readiness import READY, Assessment, Heard, Heartbeat, Standing, assess
from services.central.core.lost_nodes.guards import CLUSTER, Census, CountedNode, Guards, NodePlace, Places, weigh
from services.central.core.lost_nodes.rules import Rules
from services.central.core.objects.nodes import NODE_LEASES, LeaseSeen, NodeSeen
from services.central.core.view.evidence import ClusterObservation, LostEvidence
from services.central.leadership.leader import Leader
from services.central.nodes.observer import WATCH_SILENCE_S, NodeObserver
from services.central.ports.mirrors import RenewedLeases
from services.central.settings import KubernetesSettings
from shared.adapters.clock import LoopClock
from shared.core.api_kind import CNRS, LEASES, NODES, PODS, ApiKind
from shared.core.node_mode import NodeSwitch
from shared.errors import Refused
from shared.fakes.memory_objects import MemoryObjects

RULES = Rules()


@pytest.fixture
def play(virtual: Virtual) -> TenNodes:
    return partial(ten_nodes, virtual)


def test_what_a_reporter_writes_into_its_cnr_wakes_no_pass(virtual: Virtual) -> None:
    async def story() -> tuple[int, int]:
        api, woken = MemoryObjects(LoopClock()), list[str]()
        mirrors = mirror_cluster(api, lambda: woken.append("woken"), KubernetesSettings())
        tasks = [asyncio.create_task(mirror.run()) for mirror in mirrors.every]
        await asyncio.sleep(0)
        api.put(CNRS, {"metadata": {"name": "n1"}, "status": {"resourceAllocatable": {"cpu": "1"}}})
        woken.clear()
        for cpu in range(100):
            api.put(CNRS, {"metadata": {"name": "n1"}, "status": {"resourceAllocatable": {"cpu": str(cpu)}}})
        by_reporter = len(woken)
        api.put(CNRS, {"metadata": {"name": "n1", "labels": {"pool": "other"}}, "status": {"resourceAllocatable": {}}})
        for task in tasks:
            task.cancel()
        return by_reporter, len(woken)

    assert virtual(story()) == (0, 1)


def test_a_node_that_is_first_heard_of_on_the_bus_is_looked_at_although_no_object_changed(play: TenNodes) -> None:
    async def story(world: World) -> None:
        assert len(world.app.state()["cluster"]["lost_nodes"]["nodes"]) == 0
        world.kill_agent("n3")
        await asyncio.sleep(40)
        assert list(world.app.state()["cluster"]["lost_nodes"]["nodes"]) == ["n3"]
        world.node("n10")
        await asyncio.sleep(20)
        assert world.app.state()["nodes"]["ready"] == 10

    play(story)


def test_a_condition_that_is_refused_is_tried_again_and_its_node_named(play: TenNodes) -> None:
    async def story(world: World) -> None:
        apply, refusing = world.api.apply, True

        async def apply_or_refuse(
            kind: ApiKind, document: Mapping[str, Any], *, manager: str, status: bool = False
        ) -> dict[str, Any]:
            if refusing and status and document["metadata"]["name"] == "n0":
                raise Refused("n0: a policy of yours", reason="Invalid")
            return await apply(kind, document, manager=manager, status=status)

        world.api.apply = apply_or_refuse  # type: ignore[method-assign]
        world.kill_agent("n0")
        await asyncio.sleep(60)
        assert "n0" in world.app.state()["cluster"]["nodes_not_written"]
        refusing = False
        await asyncio.sleep(70)
        rows = world.api.documents[CNRS, "", "n0"]["status"]["conditions"]
        assert {row["type"]: row["status"] for row in rows}["ReclaimedWithdrawn"] == "True"
        assert "n0" not in world.app.state()["cluster"]["nodes_not_written"]

    play(story)


def test_a_lease_that_is_not_renewed_counts_also_behind_a_time_without_the_api_server(virtual: Virtual) -> None:
    """Of a watch that stands all the time: nothing of it is told again when the API server answers again."""

    async def story() -> None:
        clock = LoopClock()
        api, settings = MemoryObjects(clock), KubernetesSettings()
        mirrors, leader = mirror_cluster(api, lambda: None, settings), Leader(api, clock, "c", settings.lease)
        observer = NodeObserver(mirrors, LostEvidence(40), leader, clock, NodeSwitch())
        api.put(NODES, {"metadata": {"name": "n1"}})
        lease = {"metadata": {"name": "n1", "namespace": NODE_LEASES}, "spec": {"renewTime": "2026-01-01T00:00:00Z"}}
        api.put(LEASES, lease)
        tasks = [asyncio.create_task(mirror.run()) for mirror in mirrors.every]
        await asyncio.sleep(0)
        silent = Assessment({"n1": Standing("late", "", 1000.0)}, "")

        def look(answered_s_ago: float = 0.0) -> str:
            leader.answered_at_s = clock.monotonic() - answered_s_ago
            ledger = {"n1": Heartbeat(0.0, ready=True, failing=())}
            return observer.observe(ledger, silent, RULES, bus_well=True).judged["n1"].verdict

        verdicts = []
        for answered_s_ago, for_s in ((0.0, 10), (100.0, 10), (0.0, 60)):
            for _ in range(for_s):
                verdicts.append(look(answered_s_ago))
                await asyncio.sleep(1)
        assert verdicts[10:20] == ["freeze"] * 10
        assert verdicts[-1] == "kubernetes"
        api.put(LEASES, {**lease, "spec": {"renewTime": "2026-01-01T00:02:00Z"}})
        assert look() == "freeze"
        for task in tasks:
            task.cancel()

    virtual(story())


@pytest.mark.parametrize(
    "source", [NODES, CNRS, PODS, LEASES, None], ids=lambda kind: kind.plural if kind else "leader"
)
@pytest.mark.parametrize(
    ("quiet_s", "failing", "verdict"),
    [
        (0.0, False, "lost"),
        (WATCH_SILENCE_S, False, "lost"),
        (WATCH_SILENCE_S + 1, False, "freeze"),
        (RULES.api_max_age_s, True, "lost"),
        (RULES.api_max_age_s + 1, True, "freeze"),
        (None, True, "freeze"),
    ],
)
def test_no_node_is_lost_while_one_source_of_the_api_server_is_behind(
    virtual: Virtual, source: ApiKind | None, quiet_s: float | None, failing: bool, verdict: str
) -> None:
    """`source`: the watch that is quiet, None: the leader's own questions; `failing`: it says so itself."""

    async def story() -> str:
        clock = LoopClock()
        api, settings = MemoryObjects(clock), KubernetesSettings()
        mirrors, leader = mirror_cluster(api, lambda: None, settings), Leader(api, clock, "c", settings.lease)
        observer = NodeObserver(mirrors, LostEvidence(40), leader, clock, NodeSwitch())
        api.put(NODES, {"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
        never = source if quiet_s is None else None
        tasks = [asyncio.create_task(mirror.run()) for mirror in api.mirrors if mirror.kind != never]
        await asyncio.sleep(1000)
        now_s = leader.answered_at_s = clock.monotonic()
        for mirror in api.mirrors:
            if mirror.kind == source and quiet_s is not None:
                mirror.quiet_since_s, mirror.why = now_s - quiet_s, "the watch failed" if failing else ""
        # Whether it says so or not: the leader's own questions have no other sign than their answers.
        if source is None:
            leader.answered_at_s = None if quiet_s is None else now_s - quiet_s
        silent, ledger = Assessment({"n1": Standing("late", "", 1000.0)}, ""), {"n1": Heartbeat(0.0, True, ())}
        judged = observer.observe(ledger, silent, RULES, bus_well=True).judged
        for task in tasks:
            task.cancel()
        return judged["n1"].verdict if "n1" in judged else "freeze"

    late = quiet_s is None or quiet_s > RULES.api_max_age_s
    assert virtual(story()) == ("freeze" if source is None and late else verdict)


@given(st.lists(st.tuples(st.sets(st.sampled_from("abc")), st.booleans()), min_size=1, max_size=30), st.integers(1, 60))
def test_a_look_at_the_leases_renewed_since_the_last_one_finds_what_a_look_at_all_would(
    looks: list[tuple[set[str], bool]], step_s: int
) -> None:
    nodes = {name: NodeSeen(name, name, {}, ready=True, offered=frozenset()) for name in "abc"}
    silent = Assessment(dict.fromkeys("abc", Standing("late", "", 1000.0)), "")
    by_news, by_all, leases = LostEvidence(40), LostEvidence(40), {name: LeaseSeen(name, "-") for name in "abc"}
    for number, (renewed, answers) in enumerate(looks):
        leases |= {name: LeaseSeen(name, str(number)) for name in renewed}
        news = [leases[name] for name in renewed]
        some = news if by_news.knows_leases else list(leases.values())
        seen = ClusterObservation(nodes, (), some, silent, bus_well=True, api_age_s=0.0 if answers else None)
        every = replace(seen, leases=list(leases.values()))
        now_s = float(number * step_s)
        assert by_news.judge_all(seen, now_s, RULES) == by_all.judge_all(every, now_s, RULES)


def test_a_look_judges_the_nodes_that_there_are_now() -> None:
    evidence = LostEvidence(40)
    standing = {"a": Standing("late", "", 1000.0), "b": READY, "c": READY}

    def look(*names: str) -> list[tuple[str, str]]:
        nodes = {name: NodeSeen(name, name, {}, ready=True, offered=frozenset()) for name in names}
        seen = ClusterObservation(nodes, (), (), Assessment(standing, ""), bus_well=True, api_age_s=0.0)
        return [(name, one.verdict) for name, one in evidence.judge_all(seen, 0.0, RULES).items()]

    assert look("a", "b") == [("a", "lost"), ("b", "ready")]
    assert look("c", "b") == [("b", "ready"), ("c", "ready")]
    assert look("c", "b", "d") == [("b", "ready"), ("c", "ready"), ("d", "freeze")]
    assert look("a", "b") == [("a", "lost"), ("b", "ready")]
    assert look() == []


def test_a_node_that_was_deleted_between_two_looks_is_judged_no_more(play: TenNodes) -> None:
    async def story(world: World) -> None:
        world.kill_agent("n3")
        await asyncio.sleep(40)
        assert list(world.app.state()["cluster"]["lost_nodes"]["nodes"]) == ["n3"]
        world.api.drop(NODES, "n3")
        await asyncio.sleep(20)
        assert list(world.app.state()["cluster"]["lost_nodes"]["nodes"]) == []
        world.api.put(NODES, {"metadata": {"name": "n3"}, "status": {"conditions": []}})
        await asyncio.sleep(60)
        assert list(world.app.state()["cluster"]["lost_nodes"]["nodes"]) == ["n3"]

    play(story)


def test_a_renewed_lease_is_news_once() -> None:
    renewals = RenewedLeases()
    for renewed in ("1", "2"):
        renewals.read({"metadata": {"name": "n1"}, "spec": {"renewTime": renewed}})
    assert [list(renewals.pop_news()), list(renewals.pop_news())] == [[LeaseSeen("n1", "2")], []]


ROWS = st.lists(
    st.tuples(st.booleans(), st.sampled_from("abc"), st.one_of(st.just(0.0), st.floats(0, 200))), max_size=60
)


@given(ROWS, st.floats(100, 1000))
def test_counting_those_that_are_not_well_finds_what_counting_all_would(
    rows: list[tuple[bool, str, float]], now_s: float
) -> None:
    nodes = [CountedNode(f"n{i}", bad, silent_s, NodePlace(pool, None)) for i, (bad, pool, silent_s) in enumerate(rows)]
    found = weigh(Census.of(nodes), Guards(), now_s, RULES)
    for pool in "abc":
        members = [node for node in nodes if node.place.pool == pool]
        bad = sum(node.bad for node in members)
        allowed = 0 if members and bad == len(members) else max(1, int(0.2 * len(members) + 1e-9))
        assert (f"pool/{pool}" in found.objections) == (bad > allowed)
    newly = sum(30 < node.silent_s <= 90 for node in nodes if node.silent_s)
    sudden = newly > max(3, int(0.05 * len(nodes) + 1e-9))
    assert any("fell silent" in why for why in found.objections.get(CLUSTER, ())) == sudden


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=40))
def test_the_others_are_all_that_are_not_ready_and_are_counted_as_such(rows: list[tuple[float, bool]]) -> None:
    now_s = 1000.0
    ledger = {f"n{i:02}": Heartbeat(now_s - age_s, ready, ()) for i, (age_s, ready) in enumerate(rows)}
    found = assess(Heard(ledger, BusProbe(now_s, 0.0), Places()), Assessment(), now_s, RULES)
    assert found.others == {name: one for name, one in found.nodes.items() if one.state != "ready"}
    assert list(found.others) == sorted(found.others)
    assert sum(found.counts().values()) == len(ledger)
    assert all(one is READY for one in found.nodes.values() if one.state == "ready")
