"""Central on a bus in memory and in virtual time."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from central_rig import central_on
from fixture_types import Virtual
from present import present

from shared import telemetry
from shared.adapters.clock import LoopClock
from shared.contracts.bus.subjects import (
    CONFIG_BUCKET,
    EVENTS_STREAM,
    GLOBAL_CONFIG_KEY,
    STREAMS,
    state_subject,
)
from shared.contracts.readiness import Readiness
from shared.errors import BadConfig
from shared.fakes.memory_bus import MemoryBus
from shared.wire import Wire


class Text:
    """A configuration file in memory."""

    name = "config.yaml"

    def __init__(self) -> None:
        self.fresh: str | None = None

    def changed(self) -> str | None:
        text, self.fresh = self.fresh, None
        return text


class Cluster:
    """Central, and nodes that beat."""

    def __init__(self) -> None:
        self.clock, self.text, self.bus = LoopClock(), Text(), MemoryBus()
        wire = Wire(self.bus, self.clock, node="hub", service="central")
        self.app = central_on(wire, self.clock, {}, text=self.text)
        self.nodes: dict[str, Wire] = {}
        self.others = MemoryBus(self.bus.broker)
        self.seen: list[str] = []

    async def beat(self, *nodes: str, ready: bool = True) -> None:
        for node in nodes:
            wire = self.nodes.setdefault(node, Wire(self.others, self.clock, node=node, service="reporter"))
            await wire.publish(wire.stamp(Readiness, ready=ready))

    async def config(self) -> tuple[dict[str, Any], int] | None:
        entry = await self.others.get(CONFIG_BUCKET, GLOBAL_CONFIG_KEY)
        return None if entry is None else (json.loads(present(entry.value)), entry.revision)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Cluster"]:
        await self.others.subscribe(">", lambda message: self.seen.append(message.subject))
        task = asyncio.create_task(self.app.run())
        await asyncio.sleep(0.01)
        try:
            yield self
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await self.app.close()


Play = Callable[[Callable[[Cluster], Awaitable[None]]], Cluster]


@pytest.fixture
def play(virtual: Virtual) -> Play:
    """Run a story in virtual time."""

    async def run(story: Callable[[Cluster], Awaitable[None]]) -> Cluster:
        async with Cluster().running() as cluster:
            await story(cluster)
            return cluster

    return lambda story: virtual(run(story))


def test_streams_and_bucket_are_made_at_start(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        assert cluster.app.health().ok

    cluster = play(story)
    assert set(cluster.bus.broker.streams) == {spec.name for spec in STREAMS}
    assert cluster.bus.broker.streams[EVENTS_STREAM].spec in STREAMS
    assert CONFIG_BUCKET in cluster.bus.broker.buckets


def test_a_bus_that_comes_late_gets_its_streams_and_one_that_lost_them_gets_them_again(virtual: Virtual) -> None:
    async def run() -> None:
        cluster = Cluster()
        cluster.bus.go_offline()
        async with cluster.running():
            await asyncio.sleep(10)
            assert "not connected" in cluster.app.health().why
            assert not cluster.bus.broker.streams
            cluster.bus.go_online()
            await asyncio.sleep(5.1)
            assert cluster.app.health().ok
            cluster.bus.broker.streams.clear()
            await asyncio.sleep(31)
            assert cluster.bus.broker.streams

    virtual(run())


def test_nodes_are_counted_by_their_state(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        for _ in range(8):
            await cluster.beat("node.one", "node2")
            await cluster.beat("node3", ready=False)
            await asyncio.sleep(5)
        await cluster.beat("node.one", "node2")
        await asyncio.sleep(1.1)
        state = cluster.app.state()
        assert state["nodes"] == {"ready": 2, "unready": 1, "late": 0, "unknown": 0}
        assert state["not_ready"] == {"node3": {"state": "unready", "why": "says so itself"}}
        assert state["paused"] == []

    play(story)


def test_a_silent_node_becomes_late_and_central_does_nothing_about_it(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        for second in range(0, 3600, 10):
            await cluster.beat(*(f"n{i}" for i in range(10) if i or second < 60))
            await asyncio.sleep(10)
        state = cluster.app.state()
        assert state["not_ready"]["n0"]["state"] == "late"
        assert state["paused"] == []

    cluster = play(story)
    kinds = {subject.split(".")[3] for subject in cluster.seen}
    assert kinds == {"ready", "probe"}


def test_a_central_cut_off_from_the_bus_judges_nobody(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        for _ in range(5):
            await cluster.beat("n1", "n2")
            await asyncio.sleep(10)
        cluster.bus.go_offline()
        await asyncio.sleep(600)
        state = cluster.app.state()
        assert state["nodes"]["unknown"] == 2
        assert "its own probe" in state["paused"][0]
        assert not cluster.app.health().ok
        cluster.bus.go_online()
        await asyncio.sleep(20)
        assert cluster.app.state()["nodes"] == {"ready": 0, "unready": 0, "late": 0, "unknown": 2}
        await cluster.beat("n1", "n2")
        await asyncio.sleep(1.1)
        assert cluster.app.state()["nodes"]["ready"] == 2

    play(story)


def test_a_node_that_speaks_for_another_is_refused(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        liar = Wire(cluster.others, cluster.clock, node="n2", service="reporter")
        message = liar.stamp(Readiness, ready=True).encode()
        await cluster.others.publish(state_subject(Readiness, "n1"), message)
        await cluster.others.publish(state_subject(Readiness, "n1"), b"{")
        await asyncio.sleep(1.1)
        assert sum(cluster.app.state()["nodes"].values()) == 0

    play(story)


def test_a_good_file_is_published_and_a_bad_one_leaves_the_last_good_value(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        assert await cluster.config() is None
        cluster.text.fresh = "evictor: {mode: observe}"
        await asyncio.sleep(2.1)
        assert await cluster.config() == ({"evictor": {"mode": "observe"}}, 1)
        cluster.text.fresh = "evicter: {mode: enforce}"
        await asyncio.sleep(2.1)
        assert "did you mean 'evictor'" in cluster.app.state()["config"]["refused"]
        assert await cluster.config() == ({"evictor": {"mode": "observe"}}, 1)
        cluster.text.fresh = "# the same\nevictor:\n  mode: observe\n"
        await asyncio.sleep(2.1)
        config = cluster.app.state()["config"]
        assert [config[key] for key in ("file", "revision", "refused")] == ["config.yaml", 1, ""]
        assert await cluster.config() == ({"evictor": {"mode": "observe"}}, 1)

    play(story)


def test_a_file_read_while_the_bus_was_away_is_published_later_and_again_into_a_new_bucket(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.bus.go_offline()
        cluster.text.fresh = "qrm: {}"
        await asyncio.sleep(40)
        cluster.bus.go_online()
        await asyncio.sleep(4)
        assert await cluster.config() == ({"qrm": {}}, 1)
        cluster.bus.broker.buckets.clear()
        await asyncio.sleep(40)
        assert await cluster.config() == ({"qrm": {}}, 1)

    play(story)


def test_without_a_file_a_value_of_a_former_life_stays(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.others.put(CONFIG_BUCKET, GLOBAL_CONFIG_KEY, b'{"qrm": {}}')
        await asyncio.sleep(100)
        assert await cluster.config() == ({"qrm": {}}, 1)
        assert cluster.app.state()["config"]["revision"] == 1

    play(story)


def test_new_rules_are_taken_whole_or_not_at_all_and_begin_with_a_warm_up(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        await asyncio.sleep(35)
        assert cluster.app.state()["paused"] == []
        with pytest.raises(BadConfig, match=r"central\.rules\.late: no such setting"):
            cluster.app.reconfigure({"rules": {"late": 3, "max_bad_ratio": 0.5}})
        await asyncio.sleep(1.1)
        assert cluster.app.state()["paused"] == []
        cluster.app.reconfigure({"rules": {"late_s": 60}})
        await asyncio.sleep(1.1)
        assert cluster.app.state()["paused"] == ["central has listened for less than 60 s"]

    play(story)


def test_the_answer_lists_a_bounded_number_of_nodes(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.beat(*(f"n{i}" for i in range(300)), ready=False)
        await asyncio.sleep(1.1)
        state = cluster.app.state()
        assert len(state["not_ready"]) == 200
        assert state["not_ready_unlisted"] == 100
        assert json.dumps(state)

    play(story)


def test_a_node_that_floods_is_heard_at_its_rate_and_no_other_is_late(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        hostile = cluster.nodes["n0"] = Wire(cluster.others, cluster.clock, node="n0", service="reporter")
        for _ in range(30):
            for _ in range(2000):
                await hostile.publish(hostile.stamp(Readiness, ready=True))
            await cluster.beat("n1", "n2")
            await asyncio.sleep(2)
        taken = telemetry.TAKEN.labels("central", Readiness.kind)._value.get()
        assert taken - before <= 20 + 30 * (2 * 2 + 2) + 2
        assert cluster.app.state()["nodes"]["ready"] == 3

    before = telemetry.TAKEN.labels("central", Readiness.kind)._value.get()
    play(story)


def test_a_heartbeat_of_a_large_size_is_refused_before_it_is_read(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(cluster: Cluster) -> None:
        read: list[object] = []
        monkeypatch.setattr(Readiness, "decode", read.append)
        await cluster.others.publish(state_subject(Readiness, "n1"), b" " * 9000)
        await asyncio.sleep(0.01)
        assert read == []
        assert cluster.app.state()["nodes"]["ready"] == 0

    play(story)
