"""Tide pools as objects: which are refused, what goes with one, what is said of each, and when nothing is done."""

import asyncio
from itertools import groupby
from typing import Any

import pytest
from fixture_types import Virtual
from tide_world import POOL, SELECTOR, Play, TideWorld, made, passes, tide_playing

from services.central.adapters.tide.objects import TideObjects
from services.central.core.tide.edits import NodeEdit, PoolMarks, marked
from services.central.core.tide.marks import SideTaints
from services.central.core.tide.pool import FINALIZER, POOLS
from services.central.core.tide.seen import TideNodeSeen, tide_node_of
from shared.contracts.bus.subjects import decision_filter
from shared.contracts.cluster.decision import Decision
from shared.core.api_kind import NODES
from shared.errors import Conflict
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Received


@pytest.fixture
def play(virtual: Virtual) -> Play:
    """Run a story in virtual time."""
    return tide_playing(virtual)


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


def test_a_node_is_written_at_the_version_that_was_read_and_never_one_made_anew_under_its_name(play: Play) -> None:
    async def story(world: TideWorld) -> None:
        world.machines("n1")
        writer = TideObjects(world.api)
        own = PoolMarks(POOL, SideTaints())
        node = tide_node_of(world.node_document("n1"))

        def overtaken(now: TideNodeSeen) -> NodeEdit:
            world.api.put(NODES, {**world.node_document("n1"), "spec": {"taints": []}})
            return marked(now, "tide_online", own, None)

        with pytest.raises(Conflict):
            await writer.edit(node, overtaken)
        assert world.taints("n1") == []
        world.api.drop(NODES, "n1")
        world.machines("n1")
        assert not await writer.edit(node, lambda now: marked(now, "tide_online", own, None))
        assert world.role("n1") is None
        again = tide_node_of(world.node_document("n1"))
        assert await writer.edit(again, lambda now: marked(now, "tide_online", own, None))
        assert not await writer.edit(again, lambda now: marked(now, "tide_online", own, None))

    play(story)
