"""Puts an intent on the stream before anything is done, so that node and central never both open one for a pod."""

import asyncio
from datetime import datetime
from typing import Literal

from services.evictor.ledger import Ledger
from shared.contracts.eviction import EvictionIntent
from shared.contracts.subjects import INTENTS_STREAM, intent_subject
from shared.core.intents import IntentRecord
from shared.errors import Conflict, Refused, Unavailable
from shared.ports import Bus, Clock

Announced = Literal["stored", "away", "taken"]
"""stored: the stream has it. away: the bus is. taken: central has a live intent for this pod."""


class Announcer:
    """Publishes with the pod's last sequence that the writer has read (notes/nats-practice.md section 4)."""

    def __init__(self, ledger: Ledger, bus: Bus, clock: Clock) -> None:
        self._ledger, self._bus, self._clock = ledger, bus, clock

    def drop(self, record: IntentRecord) -> None:
        """It is too late to announce this intent."""
        self._ledger.withdraw(record.id)

    async def announce(self, record: IntentRecord, within_s: float) -> Announced:
        """Try for so long; the ledger then lets the message go later, or never."""
        try:
            async with asyncio.timeout(within_s):
                sequence = await self._store(record.intent, within_s) if self._bus.connected else None
        except (TimeoutError, Unavailable):
            sequence = None
        except Conflict:
            self._ledger.withdraw(record.id)
            return "taken"
        if sequence is None:
            if record.hard:
                self._ledger.release(record.id)
            else:
                self._ledger.withdraw(record.id)
            return "away"
        self._ledger.published(record.id, sequence=sequence, now_s=self._clock.monotonic())
        return "stored"

    async def _store(self, intent: EvictionIntent, within_s: float) -> int:
        """Store after the last intent for this pod, whichever that is, unless it is a live one of central's."""
        subject, last = intent_subject(intent), 0
        while True:
            try:
                stored = await self._bus.publish_durable(
                    subject,
                    intent.encode(),
                    msg_id=intent.intent_id,
                    expect_last_subject_seq=last,
                    budget_s=within_s,
                )
            except Conflict:
                for received in await self._bus.replay(INTENTS_STREAM, subject, last_per_subject=True):
                    if _foreign_and_live(received.data, intent, self._clock.wall()):
                        raise
                    last = received.sequence
            else:
                return stored.sequence


def _foreign_and_live(data: bytes, own: EvictionIntent, now: datetime) -> bool:
    """Whether it is central's intent (epoch above 0) for this very pod, still to be done; own ones the ledger has."""
    try:
        other = EvictionIntent.decode(data)
    except Refused:  # nobody can carry it out
        return False
    about_it = (other.node, other.pod_uid) == (own.node, own.pod_uid)
    return about_it and other.epoch > 0 and (now - other.sent_at).total_seconds() <= other.deadline_s
