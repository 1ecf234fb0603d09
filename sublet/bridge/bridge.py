"""The bridge at work: the stream in order, one event at a time, each until it is done with."""

import contextlib
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from shared.contracts.subjects import EVENTS_STREAM
from shared.ports import Bus, Clock, Received
from sublet.bridge.place import Place
from sublet.bridge.request import Answer, request_headers, verdict, wait_s

Post = Callable[[bytes, Mapping[str, str]], Awaitable[Answer]]
Say = Callable[[str], None]


class WantsNoMore(Exception):
    """The receiver answered 410: it is gone for good."""


@dataclass(frozen=True, slots=True)
class Bridge:
    """From one stream to one receiver. Order is kept: while an event is tried again, those after it wait."""

    bus: Bus
    clock: Clock
    post: Post
    place: Place
    key: bytes | None
    say: Say

    async def run(self, subject: str) -> None:
        """Deliver for as long as the process lives.

        Raises:
            WantsNoMore: the receiver is gone for good.
            Unavailable: the bus client is closed, or the place file cannot be read.
            OSError: the place cannot be written.
        """
        source = self.bus.follow(EVENTS_STREAM, subject, from_sequence=self.place.sequence() + 1)
        async with contextlib.aclosing(source) as events:  # type: ignore[type-var]  # typed as the port says
            async for received in events:
                await self._deliver(received)
                self.place.done(received.sequence)

    async def _deliver(self, received: Received) -> None:
        identity, tries = received.headers.get("ce-id", f"sequence {received.sequence}"), 0
        while True:
            unix_s = int(self.clock.wall().timestamp())
            headers = request_headers(received.headers, received.data, self.key, unix_s)
            answer = await self.post(received.data, headers)
            match verdict(answer):
                case "done":
                    self.say(f"delivered {identity}")
                    return
                case "stop":
                    raise WantsNoMore(f"the receiver answered {answer.status} to {identity}: it wants no more events")
                case "dead":
                    self.place.bury(received.sequence, dict(received.headers), received.data, answer.status)
                    self.say(f"refused {identity} with {answer.status}: kept in {self.place.dead.name}")
                    return
                case "again":
                    pause_s = wait_s(answer, tries, random.random())  # noqa: S311 - spreads, hides nothing
                    self.say(f"waiting {pause_s:.1f} s with {identity}: {answer.status or 'no answer'}")
                    await self.clock.sleep(pause_s)
                    tries += 1
