"""Announces an intent on the stream before anything is done: node and central never both open one for a pod."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Literal

from services.evictor.ports import EvictionLedger
from shared.contracts.bus.stored import RefusedMessage, read_intent
from shared.contracts.bus.subjects import INTENTS_STREAM, intent_subject
from shared.contracts.eviction import EvictionIntent
from shared.core.evictions.intents import IntentRecord, Outgoing
from shared.errors import Conflict, IdTaken, Unavailable
from shared.ports import Bus, Clock, DurableMessage, Received

Announced = Literal["stored", "away", "taken"]
"""stored: the stream has it. away: the bus cannot be reached. taken: central has a live intent for this pod."""


class Announcer:
    """Publishes an intent together with the sequence of the pod's last intent: of two writers the stream refuses one.

    Facts: docs/facts/nats.md#publishing-facts.
    """

    def __init__(
        self, ledger: EvictionLedger, bus: Bus, clock: Clock, assign_another_id: Callable[[Outgoing, IdTaken], Outgoing]
    ) -> None:
        self._ledger, self._bus, self._clock = ledger, bus, clock
        self._assign_another_id = assign_another_id

    def discard(self, record: IntentRecord) -> None:
        """Drop an intent's message: it is too late to announce it."""
        self._ledger.discard(record.id)

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
        """Store it behind the last intent for this pod, unless that is a live one of central's."""
        # Expecting 0, "nothing yet", costs no read in the usual case; a Conflict says when it was wrong.
        subject, last, message = intent_subject(intent), 0, self._ledger.outgoing(intent.intent_id)
        if message is None:
            raise Unavailable(f"intent {intent.intent_id} is not in the ledger", reason="ledger")
        while True:
            try:
                stored = await self._bus.publish_durable(
                    DurableMessage(subject, message.body, msg_id=message.msg_id, expect_last_subject_seq=last),
                    budget_s=within_s,
                )
            # Another message bears this id, so the stream took ours for its repetition and dropped it.
            except IdTaken as error:
                message = self._assign_another_id(message, error)
            except Conflict:
                for received in await self._bus.replay(INTENTS_STREAM, subject, last_per_subject=True):
                    if _foreign_and_live(received, self._clock.wall()):
                        raise
                    # What is there is over or nobody's order: publish again, behind it.
                    last = received.sequence
            else:
                return stored.sequence


def _foreign_and_live(received: Received, now: datetime) -> bool:
    """Whether it is central's intent (epoch above 0) for the subject's pod, still to be carried out.

    Intents of this node are in its ledger. A message that is no intent can be carried out by nobody.
    """
    other = read_intent(received.subject, received.data)
    if isinstance(other, RefusedMessage):
        return False
    # Its deadline bounds it: a central that has died in between must not block this node for ever.
    return other.epoch > 0 and (now - other.sent_at).total_seconds() <= other.deadline_s
