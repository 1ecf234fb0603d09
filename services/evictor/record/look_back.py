"""Looks back at what streams have acknowledged: a hub that comes back from an older copy does not have all of it.

The ledger keeps acknowledged messages for a day (`shared.adapters.ledger.upkeep`), so their facts can be told again.
"""

from collections.abc import Callable

import structlog

from services.evictor.ports import EvictionLedger
from shared.contracts.bus.cloudevents import MSG_ID
from shared.contracts.bus.subjects import stream_of
from shared.core.evictions.intents import Outgoing
from shared.errors import Unavailable
from shared.ports import Bus, Clock, Received

log = structlog.get_logger()

LOOK_BACK_S = 600.0
"""Time between two looks at rest: each is a read of one message a stream, and 10 000 nodes make 33 reads a second."""
BEFORE_SENDING_S = 60.0
"""A look before something new is sent may be so old: what is lost is sent before what came later."""
NEWEST = 64
"""So many acknowledged messages are looked through for the newest of each stream."""
ALL = 1_000_000


class LookBack:
    """Looks for the newest acknowledged message of each stream; where that one is gone, all lost ones wait again."""

    def __init__(self, ledger: EvictionLedger, bus: Bus, clock: Clock, wake: Callable[[], None]) -> None:
        """`wake` tells the outbox that messages wait."""
        self._ledger, self._bus, self._clock, self._wake = ledger, bus, clock, wake
        self._looked_s = float("-inf")

    async def run(self) -> None:
        """Look for as long as the evictor lives."""
        while True:
            await self._clock.sleep(LOOK_BACK_S)
            await self.find_losses()

    async def find_losses(self, max_age_s: float = 0.0) -> None:
        """Look, unless the last look is not older than that; a hub that does not answer is asked the next time."""
        now_s = self._clock.monotonic()
        if now_s - self._looked_s <= max_age_s:
            return
        # Also where it fails: a message that waits must not wait for a look again and again.
        self._looked_s = now_s
        try:
            newest: dict[str, Outgoing] = {}
            for message in self._ledger.acknowledged(NEWEST):
                newest.setdefault(stream_of(message.subject) or "", message)
            for stream, message in newest.items():
                # Streams give way at their old end: where the newest one is missing, more is than was dropped.
                last = await self._bus.replay(stream, message.subject, last_per_subject=True)
                # It may be one of central's, about another pod of this node; then all of them are looked for. Its
                # sequence says nothing: a stream that was restored counts on from what its copy had.
                if not any(_is(one, message) for one in last):
                    await self._send_again(stream)
        except Unavailable as error:
            log.info("look_back.delayed", why=str(error))

    async def _send_again(self, stream: str) -> None:
        kept = [message for message in self._ledger.acknowledged(ALL) if stream_of(message.subject) == stream]
        held = {subject: await self._bus.replay(stream, subject) for subject in {one.subject for one in kept}}
        lost = [one.fact_id for one in kept if not any(_is(there, one) for there in held[one.subject])]
        if not lost:
            return
        self._ledger.send_again(lost)
        self._wake()
        log.warning("facts.sent_again", stream=stream, facts=len(lost), why="the stream does not have them any more")


def _is(stored: Received, message: Outgoing) -> bool:
    # Id and body, because another sender may have used the id for its own message.
    return (stored.headers.get(MSG_ID), stored.data) == (message.msg_id, message.body)
