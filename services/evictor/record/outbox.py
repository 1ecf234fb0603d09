"""Sends the ledger's messages to the streams, in order, until each is acknowledged."""

import asyncio

import structlog

from services.evictor.ports import EvictionLedger
from services.evictor.record.look_back import BEFORE_SENDING_S, LookBack
from shared import telemetry
from shared.contracts.bus.cloudevents import MSG_ID
from shared.contracts.bus.subjects import STREAMS, stream_of
from shared.core.evictions.intents import Outgoing
from shared.errors import IdTaken, Unavailable
from shared.evictions.messages import send, under_another_id
from shared.ports import Bus, Clock

log = structlog.get_logger()

AT_ONCE = 100
BUDGET_S = 20.0
"""Outlives the loss of a stream leader, 4 to 9 s (docs/facts/nats.md#publishing-facts)."""
RETRY_S = 1.0
SAFE_TO_REPEAT_S = min(spec.duplicate_window_s for spec in STREAMS) / 2
"""Within this time after its first sending a stream certainly drops a repetition."""
READ_TRIES = 10
"""Tries to read a stream; then the message is sent without: a fact sent twice does less harm than one never sent."""
MOST_READ_TRIES = 640
"""After a message that was sent without was not taken either, for then the hub is away; each time twice as many."""
UNREAD_S = 2.0
"""For a message that is sent without: so short that a hub seldom comes back just in it, and is read first."""
ALL = 1_000_000


class Outbox:
    """One message at a time: a pod's events can never overtake each other.

    A message that may have been stored longer ago than the stream remembers its id is looked for before it is sent.
    """

    def __init__(self, ledger: EvictionLedger, bus: Bus, clock: Clock) -> None:
        self._ledger, self._bus, self._clock = ledger, bus, clock
        self._news = asyncio.Event()
        self._left_over: set[str] | None = None
        """Facts that an earlier life may have sent; None: not read from the ledger yet."""
        self._stored: dict[str, dict[tuple[str, bytes], int]] = {}
        """By subject, the sequences of stored messages by message id and body; empty unless messages are left over."""
        self._unread = 0
        """How often a stream could not be read although the bus was there."""
        self._tries = READ_TRIES
        self.alarm = ""
        """The last message whose id another sender had used; "" if there is none."""
        self.look_back = LookBack(ledger, bus, clock, self.wake)
        self._first_s: dict[str, float] = {}
        """When each message that is not known to be stored was sent for the first time; another one, which was held,
        may have come before it since."""

    def wake(self) -> None:
        """Wake the sender: there may be something to send."""
        self._news.set()

    async def run(self) -> None:
        """Send for as long as the evictor lives; trouble with bus or ledger only delays."""
        while True:
            await self._news.wait()
            # Cleared before the work: a message written meanwhile sets it again, and does not wait for the next
            # eviction.
            self._news.clear()
            try:
                await self._send_all()
            except Unavailable as error:
                log.warning("outbox.delayed", why=str(error), reason=error.reason)
                await self._clock.sleep(RETRY_S)
                self._news.set()

    async def _send_all(self) -> None:
        # Messages waiting at the start may have been sent by the previous run, which ended before it could record that.
        if self._left_over is None:
            self._left_over = {message.fact_id for message in self._ledger.waiting(ALL)}
        # Before anything new: afterwards the newest message would be there, and order would be another.
        if self._bus.connected:
            await self.look_back.find_losses(BEFORE_SENDING_S)
        while waiting := self._ledger.waiting(AT_ONCE):
            telemetry.OUTBOX.set(self._ledger.waiting_count())
            for message in waiting:
                sequence = await self._send(message, self._left_over)
                # Written only now: a crash before this line repeats the message, and its id makes one fact of both.
                self._ledger.published(message.fact_id, sequence=sequence, now_s=self._clock.monotonic())
                self._left_over.discard(message.fact_id)
                self._first_s.pop(message.fact_id, None)
                # The copy of the streams is needed only as long as something may be in them twice.
                if not self._left_over:
                    self._stored.clear()
        telemetry.OUTBOX.set(self._ledger.waiting_count())

    async def _send(self, message: Outgoing, left_over: set[str]) -> int:
        """The sequence under which the stream has it."""
        now_s = self._clock.monotonic()
        first_s = self._first_s.setdefault(message.fact_id, now_s)
        # The stream forgets an id after its window: from then on only a read tells whether an earlier attempt was
        # stored.
        if now_s - first_s > SAFE_TO_REPEAT_S:
            left_over.add(message.fact_id)
            # What was read before that attempt cannot show what the attempt has stored.
            self._stored.pop(message.subject, None)
        if message.fact_id in left_over:
            # Id and body, because another sender may have used the id for its own message.
            found = (await self._stored_on(message.subject)).get((message.msg_id, message.body))
            if found is not None:
                return found
        looked = message.fact_id not in left_over or message.subject in self._stored
        try:
            # If its id is taken, the whole queue pauses and restarts at this message; otherwise later events would
            # overtake it.
            return await send(self._bus, message, self.assign_another_id, budget_s=BUDGET_S if looked else UNREAD_S)
        except Unavailable:
            # Behind a leaf the bus is there while the hub is away, and then no read says anything about the stream.
            if not looked:
                self._unread, self._tries = 0, min(2 * self._tries, MOST_READ_TRIES)
            raise

    def assign_another_id(self, message: Outgoing, error: IdTaken) -> Outgoing:
        """Give a message a new id after somebody has used its own for another message, and raise the alarm."""
        new = under_another_id(message, error)
        self._ledger.rename(message.fact_id, new.msg_id)
        if error.reason != "gone":
            self.alarm = str(error)
        return new

    async def _stored_on(self, subject: str) -> dict[tuple[str, bytes], int]:
        """Return the stream's messages of a subject, read once, because only this node writes on its subjects."""
        if subject not in self._stored:
            try:
                held = await self._bus.replay(stream_of(subject) or "", subject)
            except Unavailable:
                self._unread += self._bus.connected  # a lost connection says nothing about the stream
                if self._unread < self._tries:
                    raise
                # Right after the read that failed: a hub that has come back in between would have been read.
                return {}
            self._unread, self._tries = 0, READ_TRIES
            self._stored[subject] = {(one.headers.get(MSG_ID, ""), one.data): one.sequence for one in held}
        return self._stored.get(subject, {})
