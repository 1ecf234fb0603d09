"""Sends what the ledger keeps to the streams, in order, until each message is acknowledged."""

import asyncio

import structlog

from services.evictor.ledger import Ledger
from shared import telemetry
from shared.errors import Unavailable
from shared.ports import Bus, Clock

log = structlog.get_logger()

AT_ONCE = 100
BUDGET_S = 20.0
"""Outlives the loss of a stream leader, 4 to 9 s (notes/nats-practice.md section 4)."""
RETRY_S = 1.0


class Outbox:
    """One message at a time: a pod's events can never overtake each other."""

    def __init__(self, ledger: Ledger, bus: Bus, clock: Clock) -> None:
        self._ledger, self._bus, self._clock = ledger, bus, clock
        self._news = asyncio.Event()

    def wake(self) -> None:
        """There may be something to send."""
        self._news.set()

    async def run(self) -> None:
        """Send for as long as the evictor lives; trouble with bus or ledger only delays."""
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._send_all()
            except Unavailable as error:
                log.warning("outbox.delayed", why=str(error), reason=error.reason)
                await self._clock.sleep(RETRY_S)
                self._news.set()

    async def _send_all(self) -> None:
        while waiting := self._ledger.waiting(AT_ONCE):
            telemetry.OUTBOX.set(self._ledger.waiting_count())
            for message in waiting:
                stored = await self._bus.publish_durable(
                    message.subject,
                    message.body,
                    msg_id=message.msg_id,
                    headers=message.headers,
                    budget_s=BUDGET_S,
                )
                self._ledger.published(message.msg_id, sequence=stored.sequence, now_s=self._clock.monotonic())
        telemetry.OUTBOX.set(self._ledger.waiting_count())
