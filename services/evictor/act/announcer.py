"""Announces an intent on the stream before anything is done: node and central never both open one for a pod."""

import asyncio
from datetime import datetime
from typing import Literal

from services.evictor.ports import EvictionLedger
from shared.contracts.bus.stored import RefusedMessage, read_intent
from shared.contracts.eviction import EvictionIntent
from shared.core.evictions.intents import IntentRecord
from shared.errors import Conflict, Unavailable
from shared.evictions.announcement import IntentStream
from shared.evictions.messages import Rename
from shared.ports import Bus, Clock, Received
from shared.telemetry import TRACEPARENT

Announced = Literal["stored", "away", "taken"]
"""stored: the stream has it. away: the bus cannot be reached. taken: central has a live intent for this pod."""


class Announcer:
    """Announces the ledger's intents, within a time that the pressure allows."""

    def __init__(self, ledger: EvictionLedger, bus: Bus, clock: Clock, rename: Rename) -> None:
        self._ledger, self._bus, self._clock = ledger, bus, clock
        self._stream = IntentStream(bus, rename, lambda received: _foreign_and_live(received, clock.wall()))

    def discard(self, record: IntentRecord) -> None:
        """Drop an intent's message: it is too late to announce it."""
        self._ledger.discard(record.id)

    def traceparent(self, record: IntentRecord) -> str:
        """Return the trace in which an intent was opened; "" where it was in none, or its message is gone."""
        message = self._ledger.outgoing(record.id)
        return "" if message is None else message.headers.get(TRACEPARENT, "")

    async def announce(self, record: IntentRecord, within_s: float) -> Announced:
        """Try for `within_s`; after that a hard pressure's intent is left to the outbox, a soft one's is dropped."""
        try:
            async with asyncio.timeout(within_s):
                # A bus that is known to be away is not tried: under a hard pressure each half second counts.
                sequence = await self._store(record.intent, within_s) if self._bus.connected else None
        # The stream may have stored it all the same, and only its answer got lost: the same id makes
        # the repetition harmless.
        except (TimeoutError, Unavailable):
            sequence = None
        except Conflict:
            self._ledger.discard(record.id)
            return "taken"
        if sequence is None:
            # The node in trouble comes first: it acts without its announcement, which the outbox brings later.
            if record.hard:
                self._ledger.release(record.id)
            else:
                self._ledger.discard(record.id)
            return "away"
        self._ledger.published(record.id, sequence=sequence, now_s=self._clock.monotonic())
        return "stored"

    async def _store(self, intent: EvictionIntent, within_s: float) -> int:
        """Store it after the last intent for this pod, unless that is a live one of central's."""
        message = self._ledger.outgoing(intent.intent_id)
        if message is None:
            raise Unavailable(f"intent {intent.intent_id} is not in the ledger", reason="ledger")
        # Expecting 0, "nothing yet", costs no read in the usual case; the stream reports if it was wrong.
        return await self._stream.append(message, after=0, budget_s=within_s)


def _foreign_and_live(received: Received, now: datetime) -> bool:
    """Return whether this is central's intent (epoch above 0) for the subject's pod, and still to be carried out.

    Intents of this node are in its ledger. A message that is no intent cannot be carried out at all.
    """
    other = read_intent(received.subject, received.data)
    if isinstance(other, RefusedMessage):
        return False
    # Its deadline bounds it: a central that has died in between must not block this node forever.
    return other.epoch > 0 and (now - other.sent_at).total_seconds() <= other.deadline_s
