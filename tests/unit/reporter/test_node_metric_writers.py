"""Two writers of one NodeMetric, over time: ours waits while somebody else writes, and their turns end."""

from collections.abc import Mapping
from typing import Any

import pytest
from fixture_types import Virtual
from metered_node import Node, NodeMetricServer, Play, player

from shared.core.api_kind import NODE_METRICS, ApiKind
from shared.errors import Unavailable
from shared.fakes.memory_objects import MemoryObjects


@pytest.fixture
def play(virtual: Virtual) -> Play:
    return player(virtual)


def theirs(node: Node, cores: str = "1") -> Mapping[str, Any]:
    """What koordlet writes now."""
    used = {"resources": {"cpu": cores, "memory": "1Gi"}}
    moment = node.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"updateTime": moment, "nodeMetric": {"nodeUsage": used, "numaUsages": []}}


def koordlet_writes(node: Node, cores: str = "1") -> Mapping[str, Any]:
    status = theirs(node, cores)
    node.api.put(NODE_METRICS, {"metadata": {"name": "node1"}, "spec": {}, "status": status})
    return status


@pytest.mark.parametrize("cores", [1.0, 5.0], ids=["at rest", "at work"])
def test_a_second_writer_is_named_and_left_alone_until_it_is_silent(play: Play, cores: float) -> None:
    async def story(node: Node) -> None:
        await node.measure(20)
        for _ in range(5):
            status = koordlet_writes(node)
            await node.measure(60, cores=cores)
            assert (node.status, node.writes) == (status, 1)
        said = node.said["NodeMetricTwoWriters"]
        assert "'koordlet' writes NodeMetric node1" in said
        assert "180 s" in said
        assert "--enable-node-metric-report=false" in said
        await node.measure(200, cores=cores)

    node = play(story)
    assert (node.said, node.status is not None and "numaUsages" in node.status["nodeMetric"]) == ({}, False)
    # One apply, and what koordlet has left taken out.
    assert 3 <= node.writes <= 4


def test_two_writers_do_not_alternate(play: Play) -> None:
    async def story(node: Node) -> None:
        for minute in range(120):
            if minute % 4 == 0:
                koordlet_writes(node, str(minute))
            await node.measure(60, cores=float(minute % 7))

    # Every fourth minute is longer than the first wait alone: such turns are over after a few.
    assert play(story).writes <= 4


def test_one_look_a_period_is_enough_for_both(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    get = MemoryObjects.get

    async def counted(api: MemoryObjects, kind: ApiKind, name: str, namespace: str = "") -> dict[str, Any] | None:
        seen.extend([1.0] if kind == NODE_METRICS else [])
        return await get(api, kind, name, namespace)

    monkeypatch.setattr(MemoryObjects, "get", counted)

    async def story(node: Node) -> None:
        await node.measure(1200, cores=2.0)
        alone = len(seen)
        for _ in range(20):
            koordlet_writes(node)
            await node.measure(60)
        assert alone <= 21
        assert len(seen) - alone <= 21

    play(story)


def test_an_agent_that_begins_leaves_it_to_whoever_writes_it_now(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.measure(5)
        status = koordlet_writes(node)
        await node.measure(120)
        assert (node.writes, node.status) == (0, status)
        assert "koordlet" in node.said["NodeMetricTwoWriters"]
        await node.measure(70)

    node = play(story)
    assert (node.writes, node.said) == (2, {})


def test_a_write_whose_answer_is_lost_is_no_other_writers(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    apply = NodeMetricServer.apply

    async def lost(*given: Any, **named: Any) -> dict[str, Any]:
        await apply(*given, **named)
        raise Unavailable("the connection ended before the answer")

    async def story(node: Node) -> None:
        await node.measure(20)
        monkeypatch.setattr(NodeMetricServer, "apply", lost)
        await node.measure(60, cores=5.0)
        monkeypatch.undo()
        await node.measure(30, cores=5.0)

    assert play(story).said == {}


def test_after_an_outage_its_own_write_is_known_again(play: Play) -> None:
    async def story(node: Node) -> None:
        await node.measure(20)
        node.api.go_offline()
        await node.measure(90, cores=5.0)
        node.api.go_online()
        await node.measure(20, cores=5.0)

    node = play(story)
    assert (node.writes, node.said) == (2, {})


def test_a_node_that_observes_leaves_it_to_whoever_writes_it(play: Play) -> None:
    async def story(node: Node) -> None:
        node.switch.mode = "observe"
        status = koordlet_writes(node)
        await node.measure(200)
        assert (node.api.asked, node.status, node.said) == (0, status, {})
        node.switch.mode = "enforce"
        await node.measure(5)

    node = play(story)
    # What was used meanwhile is known: nothing has to be waited for.
    assert (node.writes, node.said) == (2, {})
