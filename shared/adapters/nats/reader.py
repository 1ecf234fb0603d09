"""`OrderedReader` reads a stream in order without acknowledgements, and notices every gap.

The client library's own ordered consumer and `fetch` are not used: the one fails with newer acknowledgement subjects
and with domains, the other holds back a live message until its batch is full or its time over, and both can fall silent
after a restart of the server (docs/facts/nats.md#the-python-client).
"""

import asyncio
import contextlib
import json
import uuid
from collections.abc import Iterator
from typing import Self

from nats.aio.msg import Msg
from nats.js.api import DEFAULT_PREFIX, AckPolicy, ConsumerConfig, DeliverPolicy
from nats.js.errors import NotFoundError

from shared.adapters.nats.link import FAILURES, Link, cancellable, unavailable, words
from shared.errors import SubletError, Unavailable
from shared.ports import Received

BATCH = 256
EXPIRES_S = 30.0
# The server sends one when it has nothing to deliver, so that silence means that the request is lost.
HEARTBEAT_S = 5.0
SILENCE_S = 2 * HEARTBEAT_S + 1.0
"""A pull request under way that is silent for longer is lost."""
INACTIVE_S = 60.0
"""Idle time after which the server removes the consumer."""
NANOS = 1_000_000_000
DATA_REPLY = "$JS.ACK."
STATUS, HEARTBEAT, REQUEST_OVER = "Status", "100", ("404", "408")
LAST_DELIVERY = "Nats-Last-Consumer"
"""Header of a heartbeat: the last delivery. If that one was lost, no later message would show the gap."""


@contextlib.contextmanager
def not_found_or_unavailable(what: str) -> Iterator[None]:
    """Like `unavailable`, but distinguishes a missing stream from one that cannot be asked."""
    try:
        with unavailable(what):
            yield
    except Unavailable as error:
        if isinstance(error.__cause__, NotFoundError):
            raise error.__cause__ from error
        raise


class Broken(SubletError):
    """This reader cannot continue; a new one, from the next sequence on, can."""


class OrderedReader:
    """One pass over a stream, in order. `pending` is what it held for this filter at the opening."""

    def __init__(self, link: Link, stream: str, config: ConsumerConfig) -> None:
        self._link, self._stream, self._config = link, stream, config
        self._inbox: asyncio.Queue[Msg | None] = asyncio.Queue()
        self._asked = 0
        self._consumer_sequence = 0
        self.pending = 0

    @classmethod
    async def open(cls, link: Link, stream: str, subject: str, *, start: int = 1, last_per_subject: bool) -> Self:
        """Start at a stream sequence, or with the last message of every subject.

        Raises:
            NotFoundError: the stream does not exist.
            Unavailable: the stream cannot be read now.
        """
        config = ConsumerConfig(
            name=uuid.uuid4().hex,
            deliver_policy=DeliverPolicy.LAST_PER_SUBJECT if last_per_subject else DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=None if last_per_subject else max(1, start),
            ack_policy=AckPolicy.NONE,
            filter_subject=subject,
            # Where `close` cannot reach the server any more, the consumer removes itself.
            inactive_threshold=INACTIVE_S,
            # Its place in the stream is this reader's; nothing of it is worth a disk or a replica.
            mem_storage=True,
            num_replicas=1,
        )
        reader = cls(link, stream, config)
        await reader._start()
        return reader

    async def _start(self) -> None:
        client = self._link.client
        with not_found_or_unavailable(f"stream {self._stream}"):
            # The consumer before the inbox, so that a missing stream leaves no subscription behind.
            info = await self._link.js.add_consumer(self._stream, self._config)
            self._subscription = await client.subscribe(client.new_inbox(), cb=self._take)
        self.pending = info.num_pending or 0
        # A pull request does not survive the connection; None in the inbox ends the wait for it.
        self._forget = self._link.on_reconnect(lambda: self._inbox.put_nowait(None))

    async def _take(self, message: Msg) -> None:
        self._inbox.put_nowait(message)

    async def next(self) -> tuple[Received, int]:
        """Return the next message, and how many more wait after it.

        Raises:
            Broken: the connection, the consumer, or a message on the way was lost.
        """
        while True:
            if self._asked == 0:
                await self._ask()
            message = await self._receive()
            # Deliveries carry an acknowledgement subject, the server's own words (heartbeat, end of a request) do not.
            if message.reply.startswith(DATA_REPLY):
                return self._in_order(message)
            self._note(message.headers or {})

    async def _receive(self) -> Msg:
        try:
            async with asyncio.timeout(SILENCE_S):
                message = await self._inbox.get()
        except TimeoutError as error:
            raise Broken(f"stream {self._stream}: nothing for {SILENCE_S:g} s, not even a heartbeat") from error
        if message is None:
            raise Broken(f"stream {self._stream}: the connection was replaced")
        return message

    async def _ask(self) -> None:
        want = {"batch": BATCH, "expires": int(EXPIRES_S * NANOS), "idle_heartbeat": int(HEARTBEAT_S * NANOS)}
        subject = f"{DEFAULT_PREFIX}.CONSUMER.MSG.NEXT.{self._stream}.{self._config.name}"
        try:
            with cancellable():
                await self._link.client.publish(subject, json.dumps(want).encode(), reply=self._subscription.subject)
        except FAILURES as error:
            raise Broken(f"stream {self._stream}: {words(error)}") from error
        self._asked = BATCH

    def _note(self, headers: dict[str, str]) -> None:
        status = headers.get(STATUS, "")
        if status in REQUEST_OVER:
            self._asked = 0
        elif status != HEARTBEAT:
            raise Broken(f"stream {self._stream}: {status} {headers.get('Description', '')}")
        elif (delivered := int(headers.get(LAST_DELIVERY, 0))) > self._consumer_sequence:
            raise Broken(f"stream {self._stream}: idle after delivery {delivered}, got {self._consumer_sequence}")

    def _in_order(self, message: Msg) -> tuple[Received, int]:
        meta = message.metadata
        # Counted for this consumer, so a filter leaves no gaps: one that is missing was lost on the way.
        if meta.sequence.consumer != self._consumer_sequence + 1:
            raise Broken(f"stream {self._stream}: delivery {meta.sequence.consumer} after {self._consumer_sequence}")
        self._consumer_sequence += 1
        self._asked -= 1
        received = Received(message.subject, message.data, message.headers or {}, meta.sequence.stream)
        return received, meta.num_pending

    async def newest(self) -> int:
        """Return the sequence of the last message that the stream's leader holds for this filter; 0 for none.

        Raises:
            Unavailable: the leader cannot be asked now.
        """
        with unavailable(f"stream {self._stream}: its last message"):
            try:
                return (await self._link.js.get_last_msg(self._stream, self._config.filter_subject or ">")).seq or 0
            except NotFoundError:
                return 0

    async def close(self) -> None:
        """End the subscription and remove the consumer, where the server can be reached."""
        self._forget()
        if self._link.closed:
            return
        with contextlib.suppress(*FAILURES), cancellable():
            # Both are courtesies: a closed connection ends the one, and idleness the other.
            await self._subscription.unsubscribe()
            if self._link.connected:
                await self._link.js.delete_consumer(self._stream, self._config.name or "")
