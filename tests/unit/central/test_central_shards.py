"""Several centrals hear the heartbeats together: each knows all nodes, and one that dies is missed by nobody."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from central_rig import central_on
from fixture_types import Virtual

from services.central.core.heartbeats.ears import ROUND_S
from shared import telemetry
from shared.adapters.clock import LoopClock
from shared.contracts.bus.subjects import shard_of, shard_subject, state_subject, subject_matches
from shared.contracts.cluster.heard import MOST_SHARDS, HeardRound
from shared.contracts.readiness import Readiness, ServiceHealth
from shared.fakes.memory_broker import MemoryBroker
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Received
from shared.wire import Wire

NODES = [f"n{number}" for number in range(12)]
BEAT_S = 10.0


class DividingBroker(MemoryBroker):
    """Maps heartbeats as the hub does what comes in by leaves; `shards` 1: it does not."""

    def __init__(self, shards: int) -> None:
        super().__init__()
        self.shards = shards
        self.said: list[Received] = []

    def route(self, message: Received, without: object = None) -> None:
        head, _, node = message.subject.rpartition(".")
        if self.shards > 1 and message.subject == state_subject(Readiness, node.replace("_", ".")):
            message = replace(message, subject=f"{head}.{sum(node.encode()) % self.shards}.{node}")
        self.said.append(message)
        super().route(message, without)


class Cluster:
    """Nodes that beat, and centrals that come and go."""

    def __init__(self, shards: int = 3, hub_shards: int | None = None) -> None:
        self.clock, self.shards = LoopClock(), shards
        self.broker = DividingBroker(shards if hub_shards is None else hub_shards)
        self.centrals: dict[str, Any] = {}
        self.buses: dict[str, MemoryBus] = {}
        self.silent: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, *names: str) -> None:
        for name in names:
            bus = self.buses[name] = MemoryBus(self.broker)
            wire = Wire(bus, self.clock, node=name, service="central")
            app = self.centrals[name] = central_on(wire, self.clock, {"central": {"shards": self.shards}})
            self._tasks[name] = asyncio.create_task(app.run())

    def kill(self, name: str) -> None:
        self._tasks[name].cancel()
        self.buses[name].go_offline()
        del self.centrals[name]

    def state(self, name: str) -> Any:
        return self.centrals[name].state()

    def here(self, name: str) -> list[int]:
        heard: list[int] = self.state(name)["shards"]["heard_here"]
        return heard

    async def beat(self, node: str, **fields: Any) -> None:
        wire = Wire(MemoryBus(self.broker), self.clock, node=node, service="reporter")
        health = ServiceHealth(service="qrm", ok=True, config_hash="0123456789ab", config_revision=3)
        await self.clock.sleep(BEAT_S * NODES.index(node) / len(NODES))
        while True:
            if node not in self.silent:
                await wire.publish(wire.stamp(Readiness, **{"ready": True, "services": (health,), **fields}))
            await self.clock.sleep(BEAT_S)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Cluster"]:
        for node in NODES:
            self._tasks[node] = asyncio.create_task(self.beat(node))
        try:
            yield self
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)


@pytest.fixture
def play(virtual: Virtual) -> Callable[..., None]:
    def run(story: Callable[[Cluster], Any], **more: Any) -> None:
        async def whole() -> None:
            async with Cluster(**more).running() as cluster:
                await story(cluster)

        virtual(whole())

    return run


Play = Callable[..., None]
ALL_READY = {"ready": len(NODES), "unready": 0, "late": 0, "unknown": 0}


def test_each_central_hears_its_shards_alone_and_knows_all_nodes(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.start("a", "b", "c")
        await asyncio.sleep(60)
        assert {name: cluster.here(name) for name in "abc"} == {"a": [0], "b": [1], "c": [2]}
        for name in "abc":
            state = cluster.state(name)
            assert (state["nodes"], state["paused"], state["health"]["ok"]) == (ALL_READY, [], True)
            assert state["shards"]["unheard"] == []
        cluster.silent.update(NODES)
        await asyncio.sleep(2 * ROUND_S)  # until what was heard last is told
        ledgers = [cluster.centrals[name]._ledger for name in "abc"]
        for node in NODES:
            rows = [replace(ledger[node], gate=None, heard_at_s=0.0) for ledger in ledgers]
            assert rows == [rows[0]] * 3
            newest_s = [ledger[node].heard_at_s for ledger in ledgers]
            assert max(newest_s) - min(newest_s) == pytest.approx(0.0, abs=0.002)

    play(story)


def test_a_central_that_is_killed_is_missed_by_nobody_and_no_verdict_is_late(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.start("a", "b", "c")
        await asyncio.sleep(60)
        dead = next(node for node in NODES if sum(node.encode()) % 3 == 1)  # in the shard of the one that is killed
        heard_at_s = cluster.centrals["a"]._ledger[dead].heard_at_s
        cluster.silent.add(dead)
        await asyncio.sleep(5)
        cluster.kill("b")
        while cluster.state("a")["nodes"]["late"] == 0:
            for name in "ac":
                state = cluster.state(name)
                assert (state["nodes"], state["paused"]) == (ALL_READY, [])
            await asyncio.sleep(0.25)
        assert (
            cluster.clock.monotonic() - heard_at_s <= 30 + BEAT_S + 1.25
        )  # its last beat may have been a period later
        assert set(cluster.state("a")["not_ready"]) == {dead}
        assert sorted([*cluster.here("a"), *cluster.here("c")]) == [0, 1, 2]

    play(story)


def test_a_new_central_takes_its_shards_over_without_a_moment_that_nobody_hears(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.start("b", "c")
        await asyncio.sleep(60)
        began_s = [cluster.centrals["b"]._shards.heard.since_s(shard) for shard in range(3)]
        cluster.start("a")
        for _ in range(80):
            await asyncio.sleep(0.25)
            subjects = [interest.subject for interest in cluster.broker.interests]
            assert {shard_subject(shard) for shard in range(3)} <= set(subjects)
        assert [cluster.here(name) for name in "abc"] == [[0], [1], [2]]
        assert [cluster.centrals["b"]._shards.heard.since_s(shard) for shard in range(3)] == began_s

    play(story)


def test_a_deaf_central_says_nothing_and_nobody_is_judged_before_its_shard_is_heard_again(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.start("a", "b")
        await asyncio.sleep(60)
        deaf = cluster.buses["b"]
        for interest in [one for one in cluster.broker.interests if one.client is deaf]:
            cluster.broker.interests.remove(interest)
        for _ in range(400):
            await asyncio.sleep(0.25)
            state = cluster.state("a")
            assert state["nodes"]["late"] == 0
        assert cluster.here("a") == [0, 1, 2]
        assert (state["nodes"], state["paused"]) == (ALL_READY, [])

    play(story)


def test_shards_that_nobody_hears_are_counted(play: Play) -> None:
    unheard = telemetry.UNHEARD_SHARDS._value.get

    async def story(cluster: Cluster) -> None:
        cluster.start("a")
        await asyncio.sleep(60)
        assert unheard() == 0
        for interest in [one for one in cluster.broker.interests if one.client is cluster.buses["a"]]:
            cluster.broker.interests.remove(interest)
        await asyncio.sleep(60)
        assert unheard() == 3

    play(story)


@pytest.mark.parametrize("names", ["a", "ab"])
def test_where_the_hub_does_not_divide_heartbeats_each_central_hears_all_of_them(play: Play, names: str) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.start(*names)
        await asyncio.sleep(60)
        for name in names:
            assert cluster.state(name)["nodes"] == ALL_READY
        cluster.silent.add("n1")
        await asyncio.sleep(45)
        for name in names:
            assert set(cluster.state(name)["not_ready"]) == {"n1"}

    play(story, hub_shards=1)


def test_one_shard_is_as_if_there_were_none(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.start("a", "b")
        await asyncio.sleep(58)
        assert not [one for one in cluster.broker.said if ".heard." in one.subject]
        assert not [one for one in cluster.broker.interests if subject_matches(one.subject, shard_subject(0))]
        assert "shards" not in cluster.state("a")
        assert cluster.state("a")["nodes"] == ALL_READY
        probes = [one for one in cluster.broker.said if ".probe." in one.subject]
        assert len(probes) == 2 * 12

    play(story, shards=1)


HOSTILE: list[bytes] = [
    b"", b"{", b"[]", b"null", b"\xff" * 100, b'{"v":1}', b"x" * 1_100_000,
]  # fmt: skip


def test_rounds_that_are_none_change_nothing_and_are_counted(play: Play) -> None:
    async def story(cluster: Cluster) -> None:
        cluster.start("a", "b")
        await asyncio.sleep(60)
        other = Wire(MemoryBus(cluster.broker), cluster.clock, node="c", service="central")
        refused = telemetry.REFUSED.labels("central", HeardRound.kind, "foreign_subject")._value.get
        before = refused()
        message = other.stamp(HeardRound, round=1, probe_age_s=0.0)
        subject = state_subject(HeardRound, "b")
        for payload in (*HOSTILE, message.encode()):
            await other.bus.publish(subject, payload)
        await asyncio.sleep(2 * ROUND_S)
        assert refused() == before + 1  # by a; b hears nothing on a subject that is its own
        assert cluster.state("a")["shards"]["other_centrals"] == ["b"]
        assert cluster.state("a")["nodes"] == ALL_READY

    play(story)


def test_a_subject_has_the_shard_that_the_hub_wrote_into_it() -> None:
    assert shard_of("sublet.cluster.v1.ready.n1") is None
    assert shard_of("sublet.cluster.v1.ready.3.n1") == 3
    assert shard_of(f"sublet.cluster.v1.ready.{MOST_SHARDS}.n1") is None
    for odd in ("", "-1", "x", "9" * 5000, "٣"):
        assert shard_of(f"sublet.cluster.v1.ready.{odd}.n1") is None
