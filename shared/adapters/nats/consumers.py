"""`Durables` makes, shows and removes the teams' durable consumers, and reads the events that they gave up."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog
from nats.js.api import AckPolicy, ConsumerConfig, ConsumerInfo, DeliverPolicy
from nats.js.errors import APIError, NotFoundError

from shared.adapters.nats.link import Link, unavailable
from shared.contracts.bus.subjects import EVENTS_STREAM
from shared.core.bus.durable import Durable, Start
from shared.errors import Refused, Unavailable
from shared.ports import Received

log = structlog.get_logger()

STREAM_NOT_FOUND = 10059
PAGE = 256
"""Consumers that the server names in one answer."""


@dataclass(frozen=True, slots=True)
class DurableState:
    """How far a durable has come. `oldest` is when its oldest event without an acknowledgement was stored."""

    durable: Durable
    pending: int
    """Events that were not delivered yet."""
    unacknowledged: int
    """Events that were given and are not acknowledged yet."""
    redelivered: int
    """How many of the unacknowledged were given more than once."""
    asking: int
    """Pending requests: 0 means that there is no reader now."""
    oldest: datetime | None


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """A message of the stream, and when the server stored it."""

    message: Received
    stored_at: datetime


class Durables:
    """The durable consumers of the event stream, on one connection."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def named(self, name: str) -> DurableState | None:
        """Return a durable by name; None if there is none.

        Raises:
            Unavailable: the server cannot be asked, or there is no stream.
        """
        with unavailable(f"consumer {name}"):
            try:
                info = await self._link.js.consumer_info(EVENTS_STREAM, name)
            except NotFoundError as error:
                _refuse_missing_stream(error)
                return None
            return await self._state(info)

    async def all(self) -> Sequence[DurableState]:
        """Return all durables by name, without the temporary ones of readers.

        Raises:
            Unavailable: the server cannot be asked, or there is no stream.
        """
        found: list[ConsumerInfo] = []
        with unavailable(f"consumers of {EVENTS_STREAM}"):
            try:
                while page := await self._link.js.consumers_info(EVENTS_STREAM, offset=len(found)):
                    found += page
                    # The client does not hand over the server's total; a page that is not full is the last one.
                    if len(page) < PAGE:
                        break
            except NotFoundError as error:
                _refuse_missing_stream(error)
                raise
            # An ephemeral consumer has no durable name: it is one of `OrderedReader`'s, and goes by itself.
            states = [await self._state(info) for info in found if info.config.durable_name]
        return sorted(states, key=lambda state: state.durable.name)

    async def put(self, wanted: Durable) -> None:
        """Create a durable, or update an existing one; settings that an operator added stay.

        Raises:
            Refused: the server refuses it.
            Unavailable: the server cannot be asked, or there is no stream.
        """
        settings = _settings(wanted)
        with unavailable(f"consumer {wanted.name}"):
            try:
                try:
                    # Read and changed, not rewritten: an omitted field falls back to its default at the server.
                    config = (await self._link.js.consumer_info(EVENTS_STREAM, wanted.name)).config
                except NotFoundError as error:
                    _refuse_missing_stream(error)
                    config = ConsumerConfig(durable_name=wanted.name, **_beginning(wanted.start))
                await self._link.js.add_consumer(EVENTS_STREAM, config, **settings)
            except APIError as error:
                raise Refused(
                    f"consumer {wanted.name}: the server says: {error.description}", reason="server"
                ) from error
        log.info("consumer.put", consumer=wanted.name, filters=wanted.filters)

    async def remove(self, name: str) -> bool:
        """Remove it with its place in the stream; False where there was none.

        Raises:
            Unavailable: the server cannot be asked.
        """
        with unavailable(f"consumer {name}"):
            try:
                await self._link.js.delete_consumer(EVENTS_STREAM, name)
            except NotFoundError:
                return False
        log.info("consumer.removed", consumer=name)
        return True

    async def kept(self, sequence: int) -> StreamMessage | None:
        """The event at a sequence of the stream; None where the stream does not hold it any more.

        Raises:
            Unavailable: the server cannot be asked.
        """
        with unavailable(f"event {sequence}"):
            try:
                raw = await self._link.js.get_msg(EVENTS_STREAM, seq=sequence)
            except NotFoundError:
                return None
        received = Received(raw.subject or "", raw.data or b"", raw.headers or {}, raw.seq or 0)
        return StreamMessage(received, raw.time or datetime.now(UTC))

    async def _state(self, info: ConsumerInfo) -> DurableState:
        durable = _durable(info.config)
        pending, unacknowledged = info.num_pending or 0, info.num_ack_pending or 0
        # The floor, not the last delivery: after it is the first event that is not done.
        after = info.ack_floor.stream_seq if info.ack_floor else 0
        oldest = await self._oldest(durable, after) if pending or unacknowledged else None
        return DurableState(durable, pending, unacknowledged, info.num_redelivered or 0, info.num_waiting or 0, oldest)

    async def _oldest(self, durable: Durable, after: int) -> datetime | None:
        """Return when the first event after the last acknowledged one was stored."""
        times: list[datetime] = []
        # One request for each filter: the server looks for the next message of one subject at a time.
        for subject in durable.filters:
            try:
                raw = await self._link.js.get_msg(EVENTS_STREAM, seq=after + 1, subject=subject, next=True)
            except NotFoundError:
                continue
            if raw.time is not None:
                times.append(raw.time)
        return min(times, default=None)


def _refuse_missing_stream(error: NotFoundError) -> None:
    if error.err_code == STREAM_NOT_FOUND:
        raise Unavailable(
            f"there is no stream {EVENTS_STREAM} on this server: central makes it (sublet up, or services.central)",
            reason="no_stream",
        ) from error


def _durable(config: ConsumerConfig) -> Durable:
    # Servers before 2.10 know the single field alone, so both are read.
    one = (config.filter_subject,) if config.filter_subject else ()
    return Durable(
        name=config.durable_name or "",
        filters=tuple(sorted(config.filter_subjects or one or (">",))),
        start=_start(config),
        ack_wait_s=config.ack_wait or 0.0,
        # The server writes -1 for "no limit".
        max_deliver=config.max_deliver if (config.max_deliver or 0) > 0 else None,
        max_ack_pending=config.max_ack_pending or 0,
        ack_policy=str(config.ack_policy),
        kind="push" if config.deliver_subject else "pull",
    )


def _start(config: ConsumerConfig) -> Start:
    if config.deliver_policy == DeliverPolicy.BY_START_TIME and config.opt_start_time is not None:
        return config.opt_start_time
    if config.deliver_policy == DeliverPolicy.BY_START_SEQUENCE:
        return f"sequence {config.opt_start_seq}"
    return str(config.deliver_policy)


def _beginning(start: Start) -> dict[str, Any]:
    if isinstance(start, datetime):
        return {"deliver_policy": DeliverPolicy.BY_START_TIME, "opt_start_time": start}
    return {"deliver_policy": DeliverPolicy.NEW if start == "new" else DeliverPolicy.ALL}


def _settings(wanted: Durable) -> dict[str, Any]:
    """Return the settings that can be changed; a single filter goes where older clients expect it."""
    one = len(wanted.filters) == 1
    return {
        "filter_subject": wanted.filters[0] if one else None,
        "filter_subjects": None if one else list(wanted.filters),
        "ack_policy": AckPolicy.EXPLICIT,
        "ack_wait": wanted.ack_wait_s,
        "max_deliver": wanted.max_deliver or -1,
        "max_ack_pending": wanted.max_ack_pending,
    }
