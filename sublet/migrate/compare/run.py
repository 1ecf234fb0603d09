"""`compare_agents` observes both agents until the time is over or it is stopped."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from shared.ports import Clock
from sublet.migrate.compare.difference import Comparison, Wish

PERIOD_S = 1.0
Ending = Literal["stopped", "time"]


Beat = Callable[[float, int], Awaitable[None]]
"""Hears, once a second, the seconds that have passed and the moments so far."""


class WishSource(Protocol):
    """Something that knows what one agent gives, or would give, now."""

    async def wish(self) -> Wish:
        """What is known at this moment.

        Raises:
            Refused: there is nothing to compare, as where the node does not observe.
        """
        ...


@dataclass(frozen=True, slots=True)
class ComparisonEnd:
    """When it ends: once `stop` is set, and after `for_s` seconds."""

    stop: asyncio.Event
    for_s: float


async def compare_agents(
    theirs: WishSource, ours: WishSource, clock: Clock, until: ComparisonEnd, beat: Beat
) -> tuple[Comparison, Ending]:
    """Compare once a second.

    Raises:
        Refused: as a source.
    """
    found, started_s = Comparison(), clock.monotonic()
    while True:
        passed_s = clock.monotonic() - started_s
        await beat(passed_s, found.moments)
        if until.stop.is_set():
            return found, "stopped"
        if passed_s >= until.for_s:
            return found, "time"
        found.add(*await asyncio.gather(theirs.wish(), ours.wish()))
        await _pause(clock, min(PERIOD_S, max(0.0, until.for_s - passed_s)), until.stop)


async def _pause(clock: Clock, seconds: float, stop: asyncio.Event) -> None:
    """Wait so long, or until it is told to stop."""
    either = [asyncio.ensure_future(clock.sleep(seconds)), asyncio.ensure_future(stop.wait())]
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    for one in either:
        one.cancel()
    await asyncio.gather(*either, return_exceptions=True)
