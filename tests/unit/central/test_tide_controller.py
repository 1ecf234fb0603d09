"""Tide pools in a cluster in memory and in virtual time: what is marked, emptied, given back, refused and said."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import groupby
from typing import Any

import pytest
from fixture_types import Virtual
from tide_world import BATCH, POOL, SELECTOR, SERVICE, SETTINGS, TideWorld, passes

from services.central.core.tide.change import CHANGE, LAST
from services.central.core.tide.pool import FINALIZER, POOLS
from shared.contracts.bus.subjects import decision_filter
from shared.contracts.cluster.decision import Decision
from shared.core.api_kind import NODES
from shared.fakes.memory_bus import MemoryBus
from shared.ports import ActionResult, Received

Story = Callable[[TideWorld], Awaitable[None]]
Play = Callable[..., TideWorld]


@pytest.fixture
def play(virtual: Virtual) -> Play:
    """Run a story in virtual time."""

    def run(story: Story, **tide: Any) -> TideWorld:
        async def whole() -> TideWorld:
            world = TideWorld(kubernetes={"tide": {**SETTINGS["kubernetes"]["tide"], **tide}})
            async with world.running():
                await story(world)
            return world

        world: TideWorld = virtual(whole())
        return world

    return run


async def made(world: TideWorld, *nodes: str, **pool: Any) -> None:
    """A pool of these nodes, all of them marked."""
    world.machines(*nodes)
    world.pool(**pool)
    await world.begin()
    await passes(2)


def test_new_nodes_get_their_roles_and_foreign_marks_stay(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.machines("other", labels={})
        world.service("x", "n1", cpu="3")
        world.service("y", "n4", cpu="3")
        await made(world, "n1", "n2", "n3", "n4", online="30%", offline="30%")
        roles = {"n1": "online_reserve", "n2": "online_reserve", "n3": "offline_reserve", "n4": "tide_online"}
        assert world.roles() == {**roles, "other": None}
        assert world.taints("n1") == [("offline-not-used", "NoExecute")]
        assert world.taints("n3") == [("online-not-used", "NoExecute")]
        node = world.node_document("n3")
        assert node["metadata"]["labels"]["zone"] == "z"
        assert {"key": "gpu", "effect": "PreferNoSchedule", "timeAdded": "2026-01-01T00:00:00Z"} in node["spec"][
            "taints"
        ]
        status = world.status()
        assert status["reserveNodes"] == {"onlineNodes": ["n1", "n2"], "offlineNodes": ["n3"]}
        assert (status["tideNodes"]["nodes"], status["onlineCount"], status["offlineCount"]) == (["n4"], 3, 1)
        assert world.condition("Valid")[:2] == ("True", "Read")
        assert world.condition("Settled")[:2] == ("True", "Settled")
        writes = len(world.api.writes)
        await passes(3)
        assert [one for one in world.api.writes[writes:] if one[1] in ("nodes", "tidenodepools")] == []

    assert play(story).ended == []


def test_a_node_goes_offline_only_when_its_pods_have_left_and_one_after_the_other(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        for name in ("n1", "n2", "n3"):
            world.service(f"s-{name}", name)
        world.evictor.lives_on_s = 30
        # The reserve and one tide node have room for all; n2 and n3 are equally used, n2 comes first.
        await made(world, "n1", "n2", "n3", online=1)
        assert world.role("n2") == "tide_online"
        assert ("online-not-used", "NoSchedule") in world.taints("n2")
        assert world.evictor.killed == ["s-n2"]
        assert world.condition("Settled")[1] == "Changing"
        assert "s-n2" in world.condition("Settled")[2]
        world.service("s-n2-again", "n1")
        await passes(4)
        assert world.role("n2") == "tide_offline"
        assert world.taints("n2") == [("online-not-used", "NoExecute")]
        assert CHANGE not in world.node_document("n2")["metadata"]["annotations"]
        assert world.role("n3") == "tide_online"

    assert play(story).ended == []


def test_a_waiting_pod_gets_the_least_used_node_and_batch_pods_leave_by_eviction(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        await made(world, "n1", "n2", "n3", offline=3)
        assert set(world.roles().values()) == {"offline_reserve"}
        world.batch("heavy", "n1", cpu="3")
        world.batch("light", "n2", cpu="1")
        world.pool(offline=1)
        await passes(1)
        # n3 is what stays of the reserve.
        assert (world.role("n1"), world.role("n2"), world.role("n3")) == (
            "tide_offline",
            "tide_offline",
            "offline_reserve",
        )
        await asyncio.sleep(700)
        world.service("waits", None, cpu="4")
        await passes(2)
        assert world.role("n2") == "tide_online"
        assert world.evictor.killed == ["light"]
        assert world.taints("n2") == [("offline-not-used", "NoExecute")]
        world.bind("waits", "n2")
        await passes(2)
        assert world.role("n1") == "tide_offline"

    assert play(story).ended == []


def test_while_a_service_waits_nothing_goes_offline_and_what_was_on_its_way_comes_back(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        for name in ("n1", "n2"):
            world.service(f"s-{name}", name)
        world.evictor.lives_on_s = 300
        await made(world, "n1", "n2")
        assert world.taints("n1")[-1] == ("online-not-used", "NoSchedule")
        world.service("waits", None, cpu="3500m")
        await passes(1)
        assert world.taints("n1") == [("offline-not-used", "NoExecute")]
        assert "waits" in world.node_document("n1")["metadata"]["annotations"][LAST]
        await passes(3)
        assert world.roles() == {"n1": "tide_online", "n2": "tide_online"}
        assert world.status()["waitingPods"] == ["default/waits"]

    assert play(story).ended == []


def test_a_budget_that_holds_a_services_pod_keeps_the_node_and_is_said(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.evictor.answers.extend([ActionResult("wait", "budget")] * 500)
        world.evictor.rehearsals.extend([ActionResult("wait", "budget")] * 500)
        for name in ("n1", "n2"):
            world.service(f"s-{name}", name)
        await made(world, "n1", "n2")
        await passes(1)
        assert world.condition("Settled")[1] == "Changing"
        await asyncio.sleep(610)
        assert world.roles() == {"n1": "tide_online", "n2": "tide_online"}
        assert "did not leave within 600 s" in world.node_document("n1")["metadata"]["annotations"][LAST]
        # Held: it is not tried again at once.
        assert world.taints("n1") == [("offline-not-used", "NoExecute")]

    assert play(story).ended == []


def test_a_node_is_given_back_in_time_whatever_the_budgets_of_batch_work(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.service("busy", "n1", cpu="4")
        await made(world, "n1", "n2", online=1)
        world.evictor.answers.extend([ActionResult("wait", "budget")] * 500)
        world.evictor.rehearsals.extend([ActionResult("wait", "budget")] * 500)
        world.api.put(NODES, {**world.node_document("n2"), "metadata": offline(world, "n2")})
        await passes(2)
        assert world.role("n2") == "tide_offline"
        world.batch("stubborn", "n2")
        world.service("waits", None)
        await passes(2)
        assert world.role("n2") == "tide_offline"
        await asyncio.sleep(120)
        assert world.role("n2") == "tide_online"
        assert "stubborn" in world.node_document("n2")["metadata"]["annotations"][LAST]

    assert play(story).ended == ["stubborn"]


def offline(world: TideWorld, name: str) -> dict[str, Any]:
    """The metadata of a tide node that somebody has given to batch work by hand."""
    meta = world.node_document(name)["metadata"]
    labels = {**meta["labels"], "tide.katalyst.kubewharf.io/node-type": "offline"}
    return {"name": name, "labels": labels}


def test_by_the_hour_nodes_come_back_before_anybody_waits(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        hour = world.clock.wall().hour
        bounds = [
            {"cronTab": f"0 {(hour - 1) % 24} * * *", "minOnline": "50%"},
            {"cronTab": f"0 {(hour + 1) % 24} * * *", "minOnline": "100%"},
        ]
        await made(world, "n1", "n2", "n3", "n4", schedule={"bounds": bounds})
        await passes(8)
        assert sorted(filter(None, world.roles().values())) == ["tide_offline"] * 2 + ["tide_online"] * 2
        await asyncio.sleep(3700)
        assert set(world.roles().values()) == {"tide_online"}

    assert play(story).ended == []


def test_a_services_pod_without_toleration_keeps_its_node_out_of_the_pool_and_is_named(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.service("forgetful", "n1", tolerations=[])
        world.service("fine", "n2")
        await made(world, "n1", "n2", online=2)
        assert world.roles() == {"n1": None, "n2": "online_reserve"}
        assert world.taints("n1") == []
        assert world.condition("Settled")[1] == "Blocked"
        assert "default/forgetful does not tolerate" in world.condition("Settled")[2]
        assert world.evictor.killed == []

    assert play(story).ended == []


def test_batch_pods_on_new_nodes_leave_by_eviction_one_node_after_the_other(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.evictor.lives_on_s = 40
        for name in ("n1", "n2"):
            world.batch(f"b-{name}", name)
        await made(world, "n1", "n2", online=2)
        assert world.evictor.killed == ["b-n1"]
        assert world.roles() == {"n1": None, "n2": None}
        await passes(8)
        assert world.roles() == {"n1": "online_reserve", "n2": "online_reserve"}
        assert world.evictor.killed == ["b-n1", "b-n2"]

    assert play(story).ended == []


def test_daemons_and_pods_of_the_node_itself_are_not_evicted(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        owner = {"kind": "DaemonSet", "name": "d", "controller": True}
        world.work("daemon", "n1", "1", labels={}, tolerations=[*SERVICE, *BATCH], ownerReferences=[owner])
        await made(world, "n1", "n2")
        await passes(3)
        assert world.role("n1") == "tide_offline" or world.role("n2") == "tide_offline"
        assert world.evictor.killed == []

    assert play(story).ended == []


def test_with_the_pool_its_marks_go_and_only_then_the_pool(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.service("x", "n1")
        world.service("y", "n2")
        await made(world, "n1", "n2", online=1)
        assert FINALIZER in world.api.documents[POOLS, "", POOL]["metadata"]["finalizers"]
        document = world.api.documents[POOLS, "", POOL]
        world.api.put(POOLS, {**document, "metadata": {"name": POOL, "deletionTimestamp": "2026-01-01T00:00:00Z"}})
        await passes(1)
        assert not world.api.documents[POOLS, "", POOL]["metadata"].get("finalizers")
        for name in ("n1", "n2"):
            meta = world.node_document(name)["metadata"]
            assert (world.role(name), world.taints(name), meta["labels"]) == (None, [], {"zone": "z", **SELECTOR})
            assert not meta.get("annotations")

    assert play(story).ended == []


def test_a_node_that_the_pool_selects_no_more_loses_its_marks(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        await made(world, "n1", "n2", online=2)
        labels = world.node_document("n1")["metadata"]["labels"]
        rest = {key: value for key, value in labels.items() if key != "pool"}
        world.api.put(NODES, {**world.node_document("n1"), "metadata": {"name": "n1", "labels": rest}})
        await passes(1)
        assert (world.roles(), world.taints("n1")) == ({"n1": None, "n2": "online_reserve"}, [])

    play(story)


@pytest.mark.parametrize(
    ("pool", "reason", "word"),
    [
        ({"online": "60%", "offline": "50%"}, "Unreadable", "more than all nodes"),
        ({"online": "150%"}, "Unreadable", "from 0% to 100%"),
        ({"online": -1}, "Unreadable", "want a number"),
        ({"selector": {}}, "Unreadable", "nodeSelector"),
        ({"selector": {"pool": "nobody"}}, "NoNodes", "pool=nobody"),
        ({"schedule": {"bounds": [{"cronTab": "nightly", "minOnline": 1}]}}, "Unreadable", "five fields"),
        ({"schedule": {"bounds": [{"cronTab": "* * * * *", "minOnline": "x"}]}}, "Unreadable", "bounds[0]"),
        ({"evictStrategy": {"type": "watermark", "watermark": {"evictOnlinePodTaint": {"key": "k"},
          "evictOfflinePodTaint": {"key": "k"}}}}, "Unreadable", "two keys"),
        ({"evictStrategy": {"watermark": 5}}, "Unreadable", "watermark"),
    ],
)  # fmt: skip
def test_a_pool_that_cannot_be_worked_with_changes_nothing_and_says_why(
    play: Play, pool: dict[str, Any], reason: str, word: str
) -> None:
    async def story(world: TideWorld) -> None:
        await made(world, "n1", "n2", online=2)
        before = [world.node_document(name) for name in ("n1", "n2")]
        world.pool(**pool)
        await passes(3)
        status, said, message = world.condition("Valid")
        assert (status, said) == ("False", reason)
        assert word in message
        if reason != "NoNodes":
            assert [world.node_document(name) for name in ("n1", "n2")] == before

    play(story)


def test_of_two_pools_with_the_same_node_the_older_goes_on_and_the_newer_says_so(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        await made(world, "n1", "n2", online=1)
        await asyncio.sleep(5)
        world.pool("blue", online=2)
        await passes(2)
        assert world.condition("Valid", "blue")[1] == "Overlap"
        assert "2 nodes are in the older pool green" in world.condition("Valid", "blue")[2]
        assert world.condition("Valid")[0] == "True"
        assert world.role("n1") == "online_reserve"

    play(story)


def test_in_mode_observe_nothing_is_changed_and_what_would_be_is_said(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.switch.mode = "observe"
        await made(world, "n1", online=1)
        assert (world.role("n1"), world.taints("n1")) == (None, [])
        assert not world.api.documents[POOLS, "", POOL]["metadata"].get("finalizers")
        assert world.condition("Settled")[1] == "Observing"
        assert "n1 to online_reserve" in world.condition("Settled")[2]

    play(story)


def test_a_taint_that_somebody_took_away_comes_back_behind_an_empty_node(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        await made(world, "n1", "n2", online=2)
        document = world.node_document("n1")
        world.api.put(NODES, {**document, "metadata": {"name": "n1"}, "spec": {"taints": []}})
        world.batch("intruder", "n1")
        await passes(2)
        assert world.evictor.killed == ["intruder"]
        assert world.taints("n1") == [("offline-not-used", "NoExecute")]

    assert play(story).ended == []


def test_without_the_setting_no_pool_is_looked_at(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        await made(world, "n1", online=1)
        assert world.role("n1") is None

    play(story, enabled=False)


def test_what_was_done_and_why_is_a_decision_about_the_pool_and_the_node(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        said: list[Decision] = []

        def hear(received: Received) -> None:
            said.append(Decision.decode(received.data))

        await MemoryBus(world.bus.broker).subscribe(decision_filter(), hear)
        await made(world, "n1", "n2")
        await passes(8)
        by_object: dict[str, list[str]] = {}
        for one in said:
            by_object.setdefault(str(one.about), []).append(one.verdict)
        assert by_object["tidenodepool/green"][-1] == "settled"
        # What is stored is heard as well.
        assert [verdict for verdict, _ in groupby(by_object["node/n1"])] == ["closed", "changed"] * 2
        assert said[-1].why[0].numbers["offline"] == 1

    play(story)


def test_taints_that_a_pool_had_before_go_when_it_says_others_and_with_the_pool(play: Play) -> None:
    def watermark(key: str) -> dict[str, Any]:
        return {"type": "watermark", "watermark": {"evictOfflinePodTaint": {"key": key}}}

    async def story(world: TideWorld) -> None:
        await made(world, "n1", "n2", online=2, evictStrategy=watermark("first"))
        assert world.taints("n1") == [("first", "NoExecute")]
        assert "first" in world.status()["taintKeys"]
        world.pool(online=2, evictStrategy=watermark("second"))
        await passes(2)
        assert world.taints("n1") == world.taints("n2") == [("second", "NoExecute")]
        assert "first" not in world.status()["taintKeys"]
        world.pool(online="nobody", evictStrategy=watermark("third"))
        document = world.api.documents[POOLS, "", POOL]
        world.api.put(POOLS, {**document, "metadata": {"name": POOL, "deletionTimestamp": "2026-01-01T00:00:00Z"}})
        await passes(1)
        assert world.taints("n1") == world.taints("n2") == []

    assert play(story).ended == []


def test_a_new_node_that_could_not_be_emptied_is_given_up_and_left_alone_for_a_while(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.evictor.rehearsals.extend([ActionResult("wait", "budget")] * 500)
        world.work("plain", "n1", "1", labels={}, tolerations=[])
        await made(world, "n1", offline=1)
        assert world.taints("n1") == [("online-not-used", "NoSchedule")]
        await asyncio.sleep(600)
        assert (world.role("n1"), world.taints("n1")) == (None, [])
        await passes(10)
        assert world.taints("n1") == []
        assert "given up before" in world.condition("Settled")[2]
        await asyncio.sleep(600)
        assert world.taints("n1") == [("online-not-used", "NoSchedule")]

    assert play(story).ended == []
