"""`Streams` creates streams as specified, stores facts with an acknowledgement, and reads streams."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import nats.errors
import structlog
from nats.js.api import (
    DiscardPolicy,
    PubAck,
    RawStreamMsg,
    RetentionPolicy,
    StorageType,
    StoreCompression,
    StreamConfig,
)
from nats.js.errors import APIError, NotFoundError

from shared import telemetry
from shared.adapters.nats.direct import DirectReader
from shared.adapters.nats.link import Link, unavailable
from shared.adapters.nats.reader import Broken, OrderedReader
from shared.adapters.nats.room import make_room
from shared.adapters.nats.tail import opened, tail
from shared.contracts.bus.cloudevents import MSG_ID
from shared.contracts.bus.subjects import StreamSpec, stream_of
from shared.core.bus.stream_room import Cut
from shared.errors import Conflict, IdTaken, NotStored, Unavailable
from shared.ports import DurableMessage, Received, Stored
from shared.retry import until_stored

log = structlog.get_logger()

EXPECTED_LAST = "Nats-Expected-Last-Subject-Sequence"
# The first names the sequence that was found, the second is the same refusal without a number.
WRONG_LAST_SEQUENCE = (10071, 10164)
# A reader breaks when the server restarts or a message is lost on the way; a new one may come through.
READ_ATTEMPTS = 3
CATCH_UP_S = 3.0
"""Time for a replica to receive what its stream's leader has acknowledged."""
UNCHANGEABLE = {"retention": RetentionPolicy.LIMITS.value, "storage": StorageType.FILE.value}


class Streams:
    """The bus's operations on streams, on one connection."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def store(self, message: DurableMessage, budget_s: float) -> Stored:
        """Store one fact; see the port."""
        headers = {**message.headers, **telemetry.trace_headers(), MSG_ID: message.msg_id}
        if message.expect_last_subject_seq is not None:
            headers[EXPECTED_LAST] = str(message.expect_last_subject_seq)
        sent = replace(message, headers=headers)
        what = f"durable message {message.msg_id} on {message.subject}"

        async def once(timeout_s: float) -> Stored:
            return await self._store(sent, timeout_s, what)

        return await until_stored(once, clock=self._link.clock, budget_s=budget_s, what=what, roll=random.random)

    async def _store(self, sent: DurableMessage, timeout_s: float, what: str) -> Stored:
        if self._link.closed:
            # No repetition can help a closed client; Unavailable below is tried again within the budget.
            raise NotStored(f"{what}: the bus client is closed", reason="closed")
        if not self._link.connected:
            raise Unavailable(f"{what}: not connected", reason="offline")
        try:
            with unavailable(what):
                ack = await self._link.js.publish(
                    # With the stream's name a message that another stream has caught by its subjects is refused, not
                    # stored there.
                    sent.subject,
                    sent.data,
                    timeout=timeout_s,
                    stream=stream_of(sent.subject),
                    headers=dict(sent.headers),
                )
        except Unavailable as error:
            if isinstance(error.__cause__, nats.errors.MaxPayloadError):
                raise NotStored(
                    f"{what}: {len(sent.data)} bytes are more than the server takes", reason="too_large"
                ) from error
            if isinstance(error.__cause__, APIError) and error.__cause__.err_code in WRONG_LAST_SEQUENCE:
                return await self._stored_before(sent, what, str(error.__cause__.description))
            raise
        # "Duplicate" only means that the id was seen: whether it was this message must be looked up.
        if ack.duplicate:
            await self._compare(ack, sent, what)
        return Stored(ack.stream, ack.seq, bool(ack.duplicate))

    async def _compare(self, ack: PubAck, sent: DurableMessage, what: str) -> None:
        """A stream has one space of message ids for all senders: the first message with an id takes it.

        Raises:
            IdTaken: the first one was not this message, or is not there any more.
        """
        with unavailable(f"{what}: comparing"):
            try:
                first = await self._link.js.get_msg(ack.stream, seq=ack.seq)
            except NotFoundError as error:
                raise IdTaken(f"{what}: sequence {ack.seq} is gone", reason="gone") from error
        if (first.subject, first.data or b"") != (sent.subject, sent.data):
            raise IdTaken(f"{what}: sequence {ack.seq} on {first.subject!r} has its id", reason="id_taken")

    async def _stored_before(self, sent: DurableMessage, what: str, why: str) -> Stored:
        """Find out whether a conflict is a repetition: the server compares sequences before ids.

        If it was stored, it is the first one on its subject after the expected sequence.

        Raises:
            Conflict: another sender's message is there.
        """
        # Whatever was stored first after the expected sequence is what made this attempt fail.
        after = int(sent.headers[EXPECTED_LAST]) + 1
        with unavailable(f"{what}: looking for it"):
            stream = stream_of(sent.subject) or await self._link.js.find_stream_name_by_subject(sent.subject)
            try:
                first = await self._link.js.get_msg(stream, seq=after, subject=sent.subject, next=True)
            except NotFoundError as error:
                raise Conflict(f"{what}: {why}", reason="wrong_sequence") from error
        if (first.headers or {}).get(MSG_ID) != sent.headers[MSG_ID]:
            raise Conflict(f"{what}: {why}", reason="wrong_sequence")
        return Stored(stream, first.seq or 0, duplicate=True)

    async def replay(self, stream: str, subject: str, *, last_per_subject: bool) -> Sequence[Received]:
        """Return what the stream holds now; see the port."""
        why: Exception | None = None
        for _ in range(READ_ATTEMPTS):
            if not self._link.connected:
                raise Unavailable(f"stream {stream}: not connected", reason="offline")
            read = self._read_singly if self._link.at_leaf else self._read_all
            try:
                return await read(stream, subject, last_per_subject=last_per_subject)
            except NotFoundError:
                # Central creates the streams: before its first start there is nothing to read, which is no error.
                return ()
            except Broken as error:
                why = error
        raise Unavailable(f"stream {stream}: could not be read in {READ_ATTEMPTS} tries, last: {why}", reason="bus")

    async def _read_singly(self, stream: str, subject: str, *, last_per_subject: bool) -> Sequence[Received]:
        """Read message by message, for a login that may have no consumer: slow, meant for the few of one node."""
        found: list[Received] = []
        with unavailable(f"stream {stream}"):
            # The last one of one subject is one question.
            if last_per_subject and not {"*", ">"}.intersection(subject):
                with contextlib.suppress(NotFoundError):
                    found.append(_received(await self._link.js.get_last_msg(stream, subject)))
                return found
            while True:
                start = found[-1].sequence + 1 if found else 1
                try:
                    found.append(_received(await self._link.js.get_msg(stream, seq=start, subject=subject, next=True)))
                except NotFoundError:
                    break
        if not last_per_subject:
            return found
        return _last_of_each(found)

    async def _read_all(self, stream: str, subject: str, *, last_per_subject: bool) -> Sequence[Received]:
        reader = await opened(self._link, stream, subject, last_per_subject=last_per_subject)
        found: list[Received] = []
        try:
            # Up to what was there at the opening: a stream that is being written would never end.
            while len(found) < reader.pending:
                received, waiting = await reader.next()
                found.append(received)
                # Messages may have been dropped by a limit since the opening; then fewer come than were announced.
                if waiting == 0:
                    break
            await _caught_up(reader, found, stream)
        finally:
            await reader.close()
        return _last_of_each(found) if last_per_subject else found

    async def make_room(self, spec: StreamSpec) -> Sequence[Cut]:
        """Drop what has to give way; see the port."""
        return await make_room(self._link, spec)

    def follow(self, stream: str, subject: str, *, from_sequence: int) -> AsyncIterator[Received]:
        """The stream from a sequence on, then live; see the port."""
        return tail(self._link, stream, subject, start=from_sequence)

    async def ensure(self, spec: StreamSpec) -> None:
        """Create the stream, or bring what the specification names to it.

        Raises:
            Unavailable: the server cannot be asked, refuses, or holds a stream of another kind under that name.
        """
        limits: dict[str, float] = {
            "max_age": spec.max_age_s,
            "max_bytes": spec.max_bytes,
            "max_msgs": spec.max_messages,
            "max_msgs_per_subject": spec.max_per_subject,
            "max_msg_size": spec.max_message_bytes,
        }
        wanted: dict[str, Any] = {
            **limits,
            "subjects": list(spec.subjects),
            "duplicate_window": spec.duplicate_window_s,
            # A stream that nodes write refuses new messages when it is full: dropping the oldest would let one node's
            # flood erase the facts of all others. `make_room` then chooses.
            "discard": DiscardPolicy.NEW if spec.of_node else DiscardPolicy.OLD,
            # Without a wish the operator's number stays: bringing a cluster of three back to one replica would lose its
            # safety.
            **({} if spec.replicas is None else {"num_replicas": spec.replicas}),
        }
        with unavailable(f"stream {spec.name}"):
            try:
                info = await self._link.js.stream_info(spec.name)
            except NotFoundError:
                info = await self._link.js.add_stream(_new_stream(spec.name), **wanted)
                log.info("stream.created", stream=spec.name, subjects=spec.subjects)
            _refuse_other_kind(info.config)
            # An operator's own limits stay where they are the lower ones; no window is longer than an age.
            wanted |= {name: _lower(getattr(info.config, name), limit) for name, limit in limits.items()}
            wanted["duplicate_window"] = min(spec.duplicate_window_s, wanted["max_age"])
            drift = [name for name, value in wanted.items() if getattr(info.config, name) != value]
            if drift:
                await self._link.js.update_stream(info.config, **wanted)
                log.info("stream.reconciled", stream=spec.name, changed=drift)
        telemetry.STREAM_MESSAGES.labels(spec.name).set(info.state.messages)
        telemetry.STREAM_BYTES.labels(spec.name).set(info.state.bytes)


def _refuse_other_kind(config: StreamConfig) -> None:
    """Refuse differences that the server does not permit to change.

    Raises:
        Unavailable: names the setting, its value, the wanted one, and what to do.
    """
    for setting, want in UNCHANGEABLE.items():
        now = getattr(config, setting)
        if now != want:
            raise Unavailable(
                f"stream {config.name}: {setting} is {now}, wanted {want}, and cannot be changed; save what is in it, "
                f"then remove it (nats stream rm {config.name}): it is made anew at once",
                reason="other_kind",
            )


def _lower(now: float | None, wanted: float) -> float:
    """The lower of two limits; 0 or less is no limit."""
    given = [limit for limit in (now, wanted) if limit is not None and limit > 0]
    return min(given, default=wanted)


def _new_stream(name: str) -> StreamConfig:
    """Limits retention and no deletion of single messages: a log (docs/facts/nats.md#what-travels-how)."""
    return StreamConfig(
        name=name,
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        # Events are JSON with the same keys over and over.
        compression=StoreCompression.S2,
        # `DirectReader` asks by it.
        allow_direct=True,
        deny_delete=True,
        num_replicas=1,
    )


def _received(raw: RawStreamMsg) -> Received:
    return Received(raw.subject or "", raw.data or b"", raw.headers or {}, raw.seq or 0)


async def _caught_up(reader: OrderedReader | DirectReader, found: list[Received], stream: str) -> None:
    """Read on to what the stream's leader holds: the reader's own server may be a replica that is behind it.

    Raises:
        Broken: the last message does not come. It may be gone by now; a new reading asks again which one is last.
    """
    newest = await reader.newest()
    try:
        async with asyncio.timeout(CATCH_UP_S):
            while newest > (found[-1].sequence if found else 0):
                found.append((await reader.next())[0])
    except TimeoutError as error:
        raise Broken(f"stream {stream}: its leader holds sequence {newest}, which did not come") from error


def _last_of_each(found: Sequence[Received]) -> Sequence[Received]:
    newest = {received.subject: received for received in found}
    return sorted(newest.values(), key=lambda received: received.sequence)
