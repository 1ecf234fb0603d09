"""Recording a node: its samples from the bus into a file, until told to stop."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from shared.contracts.sample import NodeSample
from shared.ports import Clock
from shared.wire import Newest
from sublet.replay.traces.recording import Writer

TELL_EVERY_S = 1.0
SILENCE_S = 10.0

Ending = Literal["stopped", "time", "full"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a recording is."""

    passed_s: float
    frames: int
    bytes: int
    silent_s: float
    """How long no sample has come."""


@dataclass(frozen=True, slots=True)
class RecordingEnd:
    """When a recording ends: once `stop` is set, and after `for_s` seconds unless that is None."""

    stop: asyncio.Event
    for_s: float | None = None


async def record(
    samples: Newest[NodeSample], writer: Writer, clock: Clock, until: RecordingEnd, tell: Callable[[Progress], None]
) -> Ending:
    """Write each new sample until it is told to stop, the time is over, or the writer takes no more.

    A frame's time is that of its receipt on this machine's monotonic clock: a wall clock that is set does not matter.
    """
    started_s = heard_s = clock.monotonic()
    stopping: asyncio.Future[Any] = asyncio.ensure_future(until.stop.wait())
    try:
        while True:
            now_s = clock.monotonic()
            tell(Progress(now_s - started_s, writer.frames, writer.bytes, now_s - heard_s))
            left_s = TELL_EVERY_S if until.for_s is None else min(TELL_EVERY_S, started_s + until.for_s - now_s)
            if left_s <= 0:
                return "time"
            sample = await _next(samples, stopping, left_s)
            # Before the sample: both may have come in the same turn, and a stop takes no further frame.
            if stopping.done():
                return "stopped"
            if sample is None:
                continue
            heard_s = clock.monotonic()
            if not writer.write(heard_s - started_s, sample):
                return "full"
    finally:
        stopping.cancel()


async def _next(samples: Newest[NodeSample], stopping: "asyncio.Future[Any]", patience_s: float) -> NodeSample | None:
    coming = asyncio.ensure_future(samples.next(patience_s))
    either: set[asyncio.Future[Any]] = {coming, stopping}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if coming.done():
        return coming.result()
    coming.cancel()
    return None
