"""The bridge: processes the stream in order, each event until it is done, whatever its content."""

import contextlib
import random
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from shared import telemetry
from shared.contracts.bus.stored import RefusedMessage, read_event
from shared.contracts.bus.subjects import EVENTS_STREAM
from shared.contracts.eviction import EvictionEvent
from shared.ports import Bus, Clock, Received
from sublet.bridge.lanes import Lanes
from sublet.bridge.position import BridgePosition
from sublet.bridge.request import BROKEN, HttpAnswer, verdict, wait_s

Post = Callable[[EvictionEvent, Mapping[str, str]], Awaitable[HttpAnswer]]
"""Delivers an event that has been checked; beside it, the headers of its trace."""
Say = Callable[[str], None]
# Some seconds: a failure of our own that passes (no memory, no descriptor) has passed by then.
BROKEN_TRIES = 5
# Lanes are named by what events say, so without a bound their number would be a stranger's choice.
MAX_REFUSED_LANES = 1000
_TRACE = {"traceparent": re.compile(r"[0-9a-f-]{1,64}"), "tracestate": re.compile(r"[!-~]{1,512}")}


class WantsNoMore(Exception):
    """The receiver answered 410: it is gone for good."""


@dataclass(frozen=True, slots=True)
class Bridge:
    """From one stream to one receiver. Order is kept within a lane: while an event is tried again, those behind wait.

    What the stream holds has been written by whoever may publish: what is no event, or says that it is another
    node's, is put aside and counted, and so is one that cannot be delivered for a reason of its own.
    """

    bus: Bus
    clock: Clock
    post: Post
    place: BridgePosition
    say: Say
    lane_of: Callable[[EvictionEvent], str] | None = None
    """Events that wait for each other; None: all do, and the stream is read no faster than they are taken."""
    _refused: set[str] = field(default_factory=set)
    """Lanes whose last event was refused for good: the next one is not tried as often."""

    async def run(self, subject: str) -> None:
        """Deliver for as long as the process lives.

        Raises:
            WantsNoMore: the receiver is gone for good.
            Unavailable: the bus client is closed, or the place file cannot be read.
            OSError: the place cannot be written.
        """
        # From the place on disk, not by a durable at the server: the bridge alone knows what its receiver has taken.
        source = self.bus.follow(EVENTS_STREAM, subject, from_sequence=self.place.sequence() + 1)
        try:
            async with Lanes(self._deliver, self.place.done) as lanes, contextlib.aclosing(source) as events:  # type: ignore[type-var]  # typed as the port says
                async for received in events:
                    await self._sort(received, lanes)
        except BaseExceptionGroup as group:
            raise _first(group) from None

    async def _sort(self, received: Received, lanes: Lanes[tuple[Received, EvictionEvent]]) -> None:
        event = read_event(received.subject, received.headers, received.data)
        # Before anything can end it: the place may only pass a sequence that is known and closed.
        lanes.opened(received.sequence)
        if isinstance(event, RefusedMessage):
            self._bury(received, event.reason, f"sequence {received.sequence}", why=event.why)
            lanes.closed(received.sequence)
            return
        lane = self.lane_of(event) if self.lane_of is not None else ""
        waits = self.lane_of is None
        if not await lanes.add(lane, received.sequence, (received, event), waits=waits):
            self._bury(received, "crowded", event.event_id, why=f"too many events of {lane} wait")
            lanes.closed(received.sequence)

    async def _deliver(self, lane: str, item: tuple[Received, EvictionEvent]) -> None:
        (received, event), tries = item, 0
        # Only what has the form of a trace: everything else in the headers is the publisher's own.
        trace = {name: text for name, form in _TRACE.items() if form.fullmatch(text := received.headers.get(name, ""))}
        while True:
            answer = await self._posted(event, trace)
            tries += 1
            match verdict(answer, tries, known=lane in self._refused):
                case "done":
                    self._refused.discard(lane)
                    telemetry.BRIDGED.labels("delivered").inc()
                    self.say(f"delivered {event.event_id}")
                    return
                case "stop":
                    raise WantsNoMore(
                        f"the receiver answered {answer.status} to {event.event_id}: it wants no more events"
                    )
                case "dead":
                    if len(self._refused) < MAX_REFUSED_LANES:
                        self._refused.add(lane)
                    self._bury(received, "refused", event.event_id, status=answer.status)
                    return
                case "again":
                    pause_s = wait_s(answer, tries - 1, random.random())  # noqa: S311 - spreads, hides nothing
                    self.say(f"waiting {pause_s:.1f} s with {event.event_id}: {answer.words}")
                    await self.clock.sleep(pause_s)

    async def _posted(self, event: EvictionEvent, trace: Mapping[str, str]) -> HttpAnswer:
        try:
            return await self.post(event, trace)
        except Exception as error:  # noqa: BLE001 - one event that nobody foresaw must not end the bridge
            self.say(f"cannot deliver {event.event_id}: {error!r}")
            return HttpAnswer(BROKEN, tries=BROKEN_TRIES)

    def _bury(self, received: Received, outcome: str, name: str, *, status: int = 0, why: str = "") -> None:
        """Put aside: counted, kept on disk while there is room, said."""
        telemetry.BRIDGED.labels(outcome).inc()
        try:
            self.place.bury(received, status=status, why=why)
            kept = f"kept in {self.place.dead.name}"
        except OSError as error:
            kept = f"in the stream alone: {error}"
        self.say(f"{outcome} {name}: {why or f'answer {status}'}: {kept}")


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What ended the lanes: one failure ends all."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
