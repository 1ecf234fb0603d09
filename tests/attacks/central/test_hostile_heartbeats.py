"""Heartbeats that lie, by whoever may send them: no pod goes, no honest node is misjudged, and each is counted."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from cluster_world import TenNodes, World, ten_nodes
from fixture_types import Virtual

from services.central.core.heartbeats import heartbeat_rate
from shared import telemetry
from shared.contracts.bus.subjects import state_subject
from shared.contracts.readiness import Readiness
from shared.fakes.memory_bus import MemoryBus

BOOT = "f" * 16
LONG_S = 1500
"""Longer than until an eviction by the rules of these stories."""


@pytest.fixture
def play(virtual: Virtual) -> TenNodes:
    return partial(ten_nodes, virtual)


def heartbeat(node: str, seq: int = 1, boot_id: str = BOOT, sent_at: datetime | None = None) -> bytes:
    at = sent_at or datetime(2026, 1, 1, tzinfo=UTC)
    return Readiness(node=node, boot_id=boot_id, seq=seq, sent_at=at, ready=True).encode()


class Counts:
    """What was refused since the last look."""

    def __init__(self) -> None:
        self._before = self._now()

    def new(self, reason: str) -> float:
        return self._now().get(reason, 0.0) - self._before.get(reason, 0.0)

    @staticmethod
    def _now() -> dict[str, float]:
        samples = [sample for metric in telemetry.REFUSED.collect() for sample in metric.samples]
        return {sample.labels["reason"]: sample.value for sample in samples
                if sample.labels["message"] == Readiness.kind and sample.name.endswith("_total")}  # fmt: skip


def nobody_was_hurt(world: World) -> None:
    state = world.app.state()
    assert world.evictor.killed == []
    assert state["nodes"] == {"ready": 10, "unready": 0, "late": 0, "unknown": 0}
    assert state["paused"] == []
    assert not any(world.tainted(node) for node in world.nodes)


Attack = Callable[[World, MemoryBus], Awaitable[None]]


async def _speak(world: World, bus: MemoryBus, of: Callable[[int], tuple[str, bytes]], every_s: float = 5.0) -> None:
    for turn in range(int(LONG_S / every_s)):
        subject_node, payload = of(turn)
        await bus.publish(state_subject(Readiness, subject_node), payload)
        await world.clock.sleep(every_s)


def told(play: TenNodes, attack: Attack, *, well: bool = True) -> tuple[World, Counts]:
    """The story of an attack; with `well` nobody was hurt by it and all nodes are ready at its end."""
    seen = Counts()

    async def story(world: World) -> None:
        await attack(world, MemoryBus(world.bus.broker))
        if well:
            nobody_was_hurt(world)

    return play(story), seen


def test_a_node_that_reports_for_another_keeps_no_dead_one_alive(play: TenNodes) -> None:
    async def attack(world: World, bus: MemoryBus) -> None:
        world.kill_agent("n3")
        await _speak(world, bus, lambda turn: ("n4", heartbeat("n3", turn + 1)))
        assert world.app.state()["nodes"]["late"] == 1

    world, seen = told(play, attack, well=False)
    assert seen.new("foreign_node") > 100
    assert world.tainted("n3")


def test_times_in_heartbeats_are_nobodys_clock(play: TenNodes) -> None:
    """From ten minutes ahead, ten minutes behind, and from another century: at most they are refused."""
    shifts = [timedelta(minutes=10), timedelta(minutes=-10), timedelta(days=36_500)]

    async def attack(world: World, bus: MemoryBus) -> None:
        world.silent.add("n3")

        def beat(turn: int) -> tuple[str, bytes]:
            return "n3", heartbeat("n3", turn + 1, sent_at=datetime(2026, 1, 1, tzinfo=UTC) + shifts[turn % 3])

        await _speak(world, bus, beat)

    told(play, attack)


def test_a_recorded_heartbeat_keeps_no_dead_node_alive(play: TenNodes) -> None:
    async def attack(world: World, bus: MemoryBus) -> None:
        await bus.publish(
            state_subject(Readiness, "n3"), recorded := heartbeat("n3", 1_000_000, sent_at=world.clock.wall())
        )
        world.kill_agent("n3")
        await _speak(world, bus, lambda _turn: ("n3", recorded))
        assert world.app.state()["nodes"]["late"] == 1

    world, seen = told(play, attack, well=False)
    assert seen.new("replayed") > 0
    assert seen.new("old") > 100
    assert world.tainted("n3")


def test_names_by_the_thousand_that_no_node_has_change_no_count_and_leave_nothing(play: TenNodes) -> None:
    async def attack(world: World, bus: MemoryBus) -> None:
        for turn in range(20):
            for number in range(500):
                name = f"made-up-{turn}-{number}"
                await bus.publish(state_subject(Readiness, name), heartbeat(name))
            await world.clock.sleep(5)

    told(play, attack)


def test_more_names_than_there_is_room_for_are_not_even_read(play: TenNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.central.app.MOST_NODES", 50)
    assert heartbeat_rate.MOST_NODES == 100_000

    async def attack(world: World, bus: MemoryBus) -> None:
        for number in range(500):
            name = f"made-up-{number}"
            await bus.publish(state_subject(Readiness, name), heartbeat(name))
        await world.clock.sleep(60)

    _, seen = told(play, attack)
    assert seen.new("too_many_nodes") == 460


def test_two_clusters_on_one_hub_whose_nodes_have_the_same_names(play: TenNodes) -> None:
    """The other cluster's agents answer for ours: that can hide a loss, and can never make one up."""

    async def attack(world: World, bus: MemoryBus) -> None:
        async def other(node: str) -> None:
            def beat(turn: int) -> tuple[str, bytes]:
                return node, heartbeat(node, turn + 1, "e" * 16, sent_at=world.clock.wall())

            await _speak(world, bus, beat, every_s=10.0)

        await asyncio.gather(*(other(node) for node in (*world.nodes, "only-there")))

    _, seen = told(play, attack)
    assert seen.new("retired") > 100


def test_one_node_that_floods_delays_no_verdict_on_another(play: TenNodes) -> None:
    found_s: list[float] = []

    async def attack(world: World, bus: MemoryBus) -> None:
        world.kill_agent("n3")
        began_s = world.clock.monotonic()
        for turn in range(40):
            for number in range(2000):
                await bus.publish(state_subject(Readiness, "n4"), heartbeat("n4", 2000 * turn + number, "d" * 16))
            await world.clock.sleep(1)
            if not found_s and "n3" in world.app.state()["cluster"]["lost_nodes"]["nodes"]:
                found_s.append(world.clock.monotonic() - began_s)

    world, seen = told(play, attack, well=False)
    assert world.evictor.killed == []
    assert seen.new("too_often") > 70_000
    assert found_s
    assert found_s[0] <= 30 + 10 + 1 + 1, "late, at most a heartbeat before it died, one assessment and one look"


def test_heartbeats_that_are_none_are_counted_and_nothing_else(play: TenNodes) -> None:
    broken = [b"", b"null", b"[]", b"{" * 5000, b"\xff" * 100, heartbeat("n4")[:-1], b"9" * 9000]

    async def attack(world: World, bus: MemoryBus) -> None:
        await _speak(world, bus, lambda turn: ("n4", broken[turn % len(broken)]))

    _, seen = told(play, attack)
    assert seen.new("malformed") > 100
    assert seen.new("too_large") > 10
