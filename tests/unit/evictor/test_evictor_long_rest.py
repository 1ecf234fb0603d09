"""An evictor that was away for longer than the stream remembers ids tells nothing twice, whenever it was killed."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from evictor_world import Node
from fixture_types import Virtual
from test_evictor_crash import LARGE, SMALL, WEB, Fate, check, live

from services.evictor.ports import EvictionLedger
from services.evictor.record.outbox import SAFE_TO_REPEAT_S, Outbox
from shared.adapters.clock import LoopClock
from shared.contracts.bus.subjects import EVENTS_STREAM, STREAMS
from shared.core.evictions.intents import Outgoing
from shared.errors import Unavailable
from shared.fakes.memory_broker import MemoryBroker
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Stored

SUBJECT = "sublet.cluster.v1.event.eviction.created.default.node1"
REST_S = 2 * max(spec.duplicate_window_s for spec in STREAMS)


async def story(folder: Path, fate: Fate) -> Node:
    world = Node(folder)
    await world.create_streams()
    world.run(LARGE, SMALL, WEB)
    world.offered_millis = 4_000
    world.evictor.lives_on_s = 1.5
    await live(world, fate)
    await asyncio.sleep(REST_S)
    await live(world, Fate(), ticks=25)
    return world


def test_killed_at_any_step_and_back_after_a_long_rest_nothing_is_told_twice(virtual: Virtual, tmp_path: Path) -> None:
    whole = Fate()
    virtual(story(tmp_path / "whole", whole))
    for moment in range(1, whole.moment + 1):
        folder = tmp_path / str(moment)
        check(virtual(story(folder, Fate(moment))), folder)


class Ledger:
    """One message that waits."""

    def __init__(self, message: Outgoing) -> None:
        self.message = message
        self.sequence: int | None = None

    def waiting(self, limit: int) -> list[Outgoing]:
        return [] if self.sequence else [self.message]

    def waiting_count(self) -> int:
        return len(self.waiting(1))

    def acknowledged(self, _limit: int) -> list[Outgoing]:
        return []

    def published(self, msg_id: str, *, sequence: int, now_s: float) -> None:
        self.sequence = sequence


@pytest.mark.parametrize("away_s", [1.0, SAFE_TO_REPEAT_S + 30, REST_S])
def test_an_acknowledgement_that_is_lost_before_a_long_outage_stores_nothing_twice(
    virtual: Virtual, away_s: float
) -> None:
    async def main() -> None:
        broker, clock = MemoryBroker(), LoopClock()
        bus = MemoryBus(broker, clock)
        for spec in STREAMS:
            await bus.ensure_stream(spec)
        ledger = Ledger(Outgoing("id/created/1", SUBJECT, b"{}"))
        outbox = Outbox(cast("EvictionLedger", ledger), bus, clock)
        broker.lose_acks(times=1)
        store = broker.store

        def stored_and_cut_off(*args: Any, **how: Any) -> Stored:
            bus.go_offline()
            return store(*args, **how)

        broker.store = stored_and_cut_off  # type: ignore[method-assign]
        sending = asyncio.create_task(outbox.run())
        outbox.wake()
        await asyncio.sleep(1)
        broker.store = store  # type: ignore[method-assign]
        await asyncio.sleep(away_s)
        bus.go_online()
        await asyncio.sleep(30)
        sending.cancel()
        assert [m.sequence for m in broker.streams[EVENTS_STREAM].messages] == [1]
        assert ledger.sequence == 1

    virtual(main())


def test_a_stream_that_may_not_be_read_does_not_keep_a_fact_for_ever(virtual: Virtual) -> None:
    async def main() -> None:
        broker, clock = MemoryBroker(), LoopClock()
        bus = MemoryBus(broker, clock)
        for spec in STREAMS:
            await bus.ensure_stream(spec)

        async def denied(*_args: Any, **_how: Any) -> None:
            raise Unavailable("permissions violation", reason="bus")

        bus.replay = denied  # type: ignore[method-assign,assignment]
        ledger = Ledger(Outgoing("id/created/1", SUBJECT, b"{}"))
        outbox = Outbox(cast("EvictionLedger", ledger), bus, clock)
        sending = asyncio.create_task(outbox.run())
        outbox.wake()
        await asyncio.sleep(60)
        sending.cancel()
        assert ledger.sequence == 1

    virtual(main())
