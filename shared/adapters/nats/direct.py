"""Direct answers read a stream in order, a batch at a time, for a login that may have no consumers (NATS ADR-31).

Nothing is made at the server and nothing is acknowledged there, so such a login can neither take an event from somebody
nor make one. It polls: a batch that is empty is asked for again after a pause that grows.
"""

import json
from collections import deque
from collections.abc import Mapping
from typing import Self

from nats.aio.msg import Msg
from nats.js.errors import APIError

from shared.adapters.nats.link import API_TIMEOUT_S, FAILURES, Link, cancellable, unavailable, words
from shared.adapters.nats.reader import BATCH, STATUS, Broken, not_found_or_unavailable
from shared.contracts.bus.subjects import DIRECT_GET
from shared.core.backoff import delay_s
from shared.errors import Unavailable
from shared.ports import Received

POLL_BASE_S, POLL_CAP_S = 0.05, 1.0
QUIET_POLLS = 5
"""Empty batches after which the pause is longest, and the stream itself is checked as well."""
NO_STREAMS_HERE = 10039
"""The server's code for an account without JetStream: what it may ask of another account's stream is imported."""
SUBJECT, SEQUENCE, BEFORE, WAITING = "Nats-Subject", "Nats-Sequence", "Nats-Last-Sequence", "Nats-Num-Pending"
"""Headers that the server adds to an answer after the message's own: no sender's header overrides them."""
ADDED = {SUBJECT, SEQUENCE, BEFORE, WAITING, "Nats-Stream", "Nats-Time-Stamp"}
BATCH_OVER, NOTHING = "204", "404"


async def has_no_consumers(link: Link) -> bool:
    """Return whether the login's account has no streams of its own, so that it cannot create consumers."""
    try:
        with unavailable("account"):
            await link.js.account_info()
    except Unavailable as error:
        return isinstance(error.__cause__, APIError) and error.__cause__.err_code == NO_STREAMS_HERE
    return False


class DirectReader:
    """One pass over a stream, in order. `pending` is what it held for this filter at the opening."""

    def __init__(self, link: Link, stream: str, subject: str, start: int) -> None:
        self._link, self._stream, self._subject, self._next = link, stream, subject, start
        self._held: deque[tuple[Received, int]] = deque()
        self.pending = 0

    @classmethod
    async def open(cls, link: Link, stream: str, subject: str, *, start: int = 1) -> Self:
        """Start at a stream sequence.

        Raises:
            NotFoundError: the stream does not exist.
            Broken, Unavailable: the stream cannot be read now.
        """
        with not_found_or_unavailable(f"stream {stream}"):
            await link.js.stream_info(stream)
        reader = cls(link, stream, subject, max(1, start))
        await reader._ask()
        reader.pending = reader._held[0][1] + 1 if reader._held else 0
        return reader

    async def next(self) -> tuple[Received, int]:
        """Return the next message, and how many more wait after it.

        Raises:
            Broken: the connection or a message on the way was lost.
        """
        attempt = 0
        while not self._held:
            await self._link.clock.sleep(delay_s(attempt, base_s=POLL_BASE_S, cap_s=POLL_CAP_S, roll=0.5))
            await self._ask()
            attempt += 1
            if not self._held and attempt >= QUIET_POLLS:
                await self._notice_a_new_stream()
        return self._held.popleft()

    async def _notice_a_new_stream(self) -> None:
        """Notice a recreated stream: it ends before what was already read, and will not answer.

        Raises:
            Broken: it was recreated, or does not exist.
        """
        try:
            with unavailable(f"stream {self._stream}"):
                last = (await self._link.js.stream_info(self._stream)).state.last_seq
        except Unavailable as error:
            raise Broken(str(error)) from error
        if last + 1 < self._next:
            raise Broken(f"stream {self._stream}: ends at {last}, {self._next - 1} was read")

    async def _ask(self) -> None:
        """Request one batch to a fresh inbox, which others with the same login do not know before the answer
        arrives."""
        client = self._link.client
        asked = {"seq": self._next, "next_by_subj": self._subject, "batch": BATCH}
        try:
            with cancellable():
                # One per batch, so that late answers to an earlier one do not count for this one.
                inbox = await client.subscribe(client.new_inbox())
                try:
                    await client.publish(
                        f"{DIRECT_GET}.{self._stream}", json.dumps(asked).encode(), reply=inbox.subject
                    )
                    before = 0
                    while self._take(message := await inbox.next_msg(timeout=API_TIMEOUT_S), before):
                        before = sequence_of(message)
                finally:
                    await inbox.unsubscribe()
        except FAILURES as error:
            raise Broken(f"stream {self._stream}: {words(error)}") from error

    def _take(self, message: Msg, before: int) -> bool:
        """Keep an answer; False for what ends a batch.

        Raises:
            Broken: it does not follow the one before it, or the server refuses.
        """
        headers: Mapping[str, str] = message.headers or {}
        if SUBJECT not in headers:  # no message of the stream, however it may look
            if headers.get(STATUS) not in (BATCH_OVER, NOTHING):
                raise Broken(f"stream {self._stream}: {headers.get(STATUS, '')} {headers.get('Description', '')}")
            return False
        # Each answer names the one before it, with 0 for the first: a gap means that one was lost on the way.
        if int(headers[BEFORE]) != before:
            raise Broken(f"stream {self._stream}: {headers[SEQUENCE]} after {headers[BEFORE]}, got {before}")
        sequence = sequence_of(message)
        own = {name: value for name, value in headers.items() if name not in ADDED}
        self._held.append((Received(headers[SUBJECT], message.data, own, sequence), int(headers[WAITING])))
        # Advanced with every message, not at the end: if a batch breaks, the next request continues after the last
        # stored one.
        self._next = sequence + 1
        return True

    async def newest(self) -> int:
        """Return 0: a login without consumers may not ask the leader either, and has what its server holds."""
        return 0

    async def close(self) -> None:
        """Nothing is left at the server."""


def sequence_of(message: Msg) -> int:
    """The place in the stream."""
    return int((message.headers or {})[SEQUENCE])
