"""Recording a cluster: its objects as they change, what nodes say, and what is decided, until told to stop."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from shared.contracts.bus.stored import RefusedMessage, read_decision
from shared.contracts.bus.subjects import DECISIONS_STREAM, decision_filter, state_subject
from shared.contracts.cluster.figures import PodFigures
from shared.contracts.cluster.offer import NodeOffer
from shared.contracts.envelope import Message
from shared.errors import Refused, Unavailable
from shared.ports import Bus, Clock, ObjectMirror, Objects, Received, Subscription
from sublet.replay.decisions.frames import KINDS
from sublet.replay.decisions.recording import ClusterWriter, relevant
from sublet.replay.traces.recorder import TELL_EVERY_S, Ending, Progress, RecordingEnd

LISTED_S = 3.0
"""For the first lists: a kind that is not there by then is recorded from when it is."""
LOOK_S = 0.1
M = TypeVar("M", bound=Message)


class ClusterRecorder:
    """Writes whatever comes, in the order in which it comes."""

    def __init__(self, writer: ClusterWriter, clock: Clock) -> None:
        self._writer, self._clock = writer, clock
        self._began_s = self._heard_s = clock.monotonic()
        self._full = asyncio.Event()
        self.refused = 0
        """Messages that were none that can be read."""

    def mirrors(self, objects: Objects) -> Mapping[str, ObjectMirror[Any]]:
        """One of each kind, to be run."""
        return {
            kind.kind: objects.mirror_each(kind, partial(relevant, kind.kind), partial(self._see, kind.kind))
            for kind in KINDS
        }

    async def record(
        self, bus: Bus, mirrors: Mapping[str, ObjectMirror[Any]], until: RecordingEnd, tell: Callable[[Progress], None]
    ) -> Ending:
        """Write until it is told to stop, the time is over, or the writer takes no more.

        Raises:
            Unavailable: the bus does not give what is to be recorded.
        """
        tasks = [asyncio.ensure_future(mirror.run()) for mirror in mirrors.values()]
        subscriptions: list[Subscription] = []
        try:
            await self._listed(list(mirrors.values()))
            subscriptions = [await self._listen(bus, NodeOffer), await self._listen(bus, PodFigures)]
            # What was decided before has nothing in the recording that led to it.
            stored = await bus.replay(DECISIONS_STREAM, decision_filter(), last_per_subject=True)
            newest = max((one.sequence for one in stored), default=0)
            tasks.append(asyncio.ensure_future(self._follow(bus, newest + 1)))
            return await self._wait(until, tell, tasks[-1])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for subscription in subscriptions:
                with contextlib.suppress(Unavailable):
                    await subscription.stop()

    async def _listen(self, bus: Bus, model: type[M]) -> Subscription:
        return await bus.subscribe(state_subject(model, "*"), partial(self._hear, model))

    async def _listed(self, mirrors: Sequence[ObjectMirror[Any]]) -> None:
        until_s = self._clock.monotonic() + LISTED_S
        while any(mirror.age_s is None for mirror in mirrors) and self._clock.monotonic() < until_s:
            await self._clock.sleep(LOOK_S)

    async def _wait(
        self, until: RecordingEnd, tell: Callable[[Progress], None], following: "asyncio.Future[None]"
    ) -> Ending:
        stopping = asyncio.ensure_future(until.stop.wait())
        full = asyncio.ensure_future(self._full.wait())
        waiting: set[asyncio.Future[Any]] = {stopping, full, following}
        try:
            while True:
                now_s = self._clock.monotonic()
                passed_s = now_s - self._began_s
                tell(Progress(passed_s, self._writer.frames, self._writer.bytes, now_s - self._heard_s))
                left_s = TELL_EVERY_S if until.for_s is None else min(TELL_EVERY_S, until.for_s - passed_s)
                if left_s <= 0:
                    return "time"
                await asyncio.wait(waiting, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
                if stopping.done():
                    return "stopped"
                if full.done():
                    return "full"
                if following.done():
                    following.result()
                    raise Unavailable("the stream of decisions has ended: is the hub still there?", reason="closed")
        finally:
            stopping.cancel()
            full.cancel()

    async def _follow(self, bus: Bus, first: int) -> None:
        async for received in bus.follow(DECISIONS_STREAM, decision_filter(), from_sequence=first):
            decision = read_decision(received.subject, received.data)
            if isinstance(decision, RefusedMessage):
                self.refused += 1
            else:
                self._wrote(self._writer.hear(self._at_s(), decision))

    def _see(self, kind: str, uid: str, document: Mapping[str, Any] | None) -> None:
        self._wrote(self._writer.see(self._at_s(), kind, uid, document))

    def _hear(self, model: type[M], received: Received) -> None:
        try:
            message = model.decode(received.data)
        except Refused:
            self.refused += 1
            return
        self._wrote(self._writer.hear(self._at_s(), message))

    def _at_s(self) -> float:
        self._heard_s = self._clock.monotonic()
        return self._heard_s - self._began_s

    def _wrote(self, taken: bool) -> None:
        if not taken:
            self._full.set()
