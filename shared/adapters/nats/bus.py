"""`NatsBus` is `shared.ports.Bus` on one connection to NATS."""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

import nats.errors
import structlog
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription as ClientSubscription

from shared import telemetry
from shared.adapters.nats.config import ConfigStore
from shared.adapters.nats.consumers import Durables
from shared.adapters.nats.link import FAILURES, Link, cancellable, unavailable
from shared.adapters.nats.streams import Streams
from shared.contracts.bus.subjects import StreamSpec
from shared.core.bus.stream_room import Cut
from shared.errors import Unavailable
from shared.ports import Clock, DurableMessage, Entry, Received, Stored, Subscription

log = structlog.get_logger()

PENDING_MESSAGES = 65_536
"""Received and not yet handed to a handler; more are dropped and counted. Handlers only store, so this is a burst."""
SAID_CHARACTERS = 300
ERROR_HEADER = "Nats-Service-Error"
"""An answer with this header is an error with its reason (NATS ADR-32)."""


def _said(text: str) -> str:
    """A stranger's words as far as a line has room for them, without what a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in text[:SAID_CHARACTERS])


class NatsSubscription:
    """A live subscription."""

    def __init__(self) -> None:
        self.live = True
        self.inner: ClientSubscription | None = None

    async def stop(self) -> None:
        """No further call to the handler after this returns."""
        self.live = False
        # `live` alone already stops the handler; unsubscribing stops the server from sending.
        if self.inner is not None:
            with contextlib.suppress(*FAILURES), cancellable():
                await self.inner.unsubscribe()


async def connect(
    url: str, *, name: str, connect_timeout_s: float, clock: Clock, pending_messages: int = PENDING_MESSAGES
) -> "NatsBus":
    """Connect as `name` ("<service>/<node>"), waiting for a server that is not there yet.

    Raises:
        BadConfig: `url` is not an address.
        Unavailable: no server answered within `connect_timeout_s`.
    """
    link = Link(url, name=name, clock=clock)
    await link.open(connect_timeout_s)
    return NatsBus(link, pending_messages=pending_messages)


async def connect_without_echo(url: str, *, name: str, connect_timeout_s: float, clock: Clock) -> "NatsBus":
    """Connect as `connect`, for a process whose services hand each other their messages: the server does not return
    what this connection published.

    Raises:
        BadConfig: as `connect`.
        Unavailable: as `connect`.
    """
    link = Link(url, name=name, clock=clock, echo=False)
    await link.open(connect_timeout_s)
    return NatsBus(link)


async def connect_at_once(url: str, *, name: str, timeout_s: float, clock: Clock) -> "NatsBus":
    """Connect to a running server: do not wait for one that refuses, or is silent for `timeout_s`.

    Raises:
        BadConfig: `url` is not an address.
        Unavailable: no server answers there, or it refuses the login.
    """
    link = Link(url, name=name, clock=clock)
    await link.open(timeout_s, wait=False)
    return NatsBus(link)


class NatsBus:
    """`shared.ports.Bus` over one NATS connection; made by `connect`. `durables` are the teams', for operators."""

    def __init__(self, link: Link, *, pending_messages: int = PENDING_MESSAGES) -> None:
        self._link = link
        self._pending_messages = pending_messages
        self._streams = Streams(link)
        self._config = ConfigStore(link)
        self.durables = Durables(link)

    @property
    def connected(self) -> bool:
        """Whether a publish would leave now."""
        return self._link.connected

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> bool:
        """Send and forget; while disconnected the message is dropped and counted, never sent late."""
        reason = "offline"
        # Asked first: the client itself would keep the message for after the outage, when it is no longer true
        # (docs/facts/nats.md#the-python-client).
        if self._link.connected:
            try:
                with cancellable():
                    await self._link.client.publish(subject, data, headers=dict(headers) if headers else None)
            except nats.errors.MaxPayloadError:
                # The connection is fine and stays; only this message is lost, and counted under its own reason.
                reason = "too_large"
            except FAILURES as error:
                self._link.report("publish_failed", subject=subject, why=str(error))
            else:
                return True
        telemetry.DROPPED.labels(self._link.service, reason).inc()
        return False

    async def publish_durable(self, message: DurableMessage, *, budget_s: float = 20.0) -> Stored:
        """Store in a stream, with the same id until acknowledged.

        Raises:
            NotStored: no acknowledgement within the budget, or a repetition cannot help (reason "too_large", "closed").
            Conflict: `expect_last_subject_seq` is not the subject's last sequence.
        """
        # An outbox sends long after the step that wrote the message: its span belongs to that step's trace.
        parent = message.headers.get(telemetry.TRACEPARENT, "")
        with telemetry.span("bus.publish_durable", {"messaging.destination.name": message.subject}, parent=parent):
            return await self._streams.store(message, budget_s)

    async def subscribe(self, subject: str, handler: Callable[[Received], None]) -> Subscription:
        """Every message from now on; when this returns, the server knows."""

        async def take(message: Msg) -> None:
            # The client may deliver what it had received before it was told to stop.
            if subscription.live:
                self._hand_over(Received(message.subject, message.data, message.headers or {}), handler)

        subscription = NatsSubscription()
        await self._listen(subscription, subject, take)
        return subscription

    def _hand_over(self, received: Received, handler: Callable[[Received], None]) -> None:
        try:
            handler(received)
        except Exception:  # one bad message must not end the subscription
            telemetry.DROPPED.labels(self._link.service, "handler_failed").inc()
            log.exception("bus.handler_failed", subject=received.subject)

    async def _listen(self, subscription: NatsSubscription, subject: str, take: Callable[[Msg], object]) -> None:
        with unavailable(f"subscription to {subject}"):
            subscription.inner = await self._link.client.subscribe(
                subject,
                cb=take,  # type: ignore[arg-type]  # a coroutine function, as the client wants it
                pending_msgs_limit=self._pending_messages,
            )
        if self._link.connected:
            # After a lost connection the client subscribes again by itself.
            with contextlib.suppress(Unavailable), unavailable(f"subscription to {subject}"):
                await self._link.settle()

    async def replay(self, stream: str, subject: str, *, last_per_subject: bool = False) -> Sequence[Received]:
        """Return what a stream holds now for a subject filter, in order; empty if the stream does not exist.

        Raises:
            Unavailable: the stream cannot be read now.
        """
        return await self._streams.replay(stream, subject, last_per_subject=last_per_subject)

    def follow(self, stream: str, subject: str, *, from_sequence: int = 1) -> AsyncIterator[Received]:
        """The stream from a sequence on, then live; reconnects and restarts of the server only delay it."""
        return self._streams.follow(stream, subject, from_sequence=from_sequence)

    async def ensure_stream(self, spec: StreamSpec) -> None:
        """Create a stream, or bring its limits to the specification.

        Raises:
            Unavailable: the server cannot be asked now, or refuses the specification.
        """
        await self._streams.ensure(spec)

    async def make_room(self, spec: StreamSpec) -> Sequence[Cut]:
        """Drop what has to give way in a stream that is nearly full.

        Raises:
            Unavailable: the server cannot be asked.
        """
        return await self._streams.make_room(spec)

    async def ensure_bucket(self, bucket: str, *, replicas: int | None = None) -> None:
        """Create a configuration bucket if it is missing, or bring it to these replicas.

        Raises:
            Unavailable: the server cannot be asked now, or cannot place so many.
        """
        await self._config.ensure(bucket, replicas)

    async def put(self, bucket: str, key: str, value: bytes, headers: Mapping[str, str] | None = None) -> int:
        """Write a configuration value; return its revision.

        Raises:
            Unavailable: it was not stored, or not acknowledged.
        """
        return await self._config.put(bucket, key, value, headers)

    async def get(self, bucket: str, key: str) -> Entry | None:
        """Read a configuration value; None where bucket or key does not exist.

        Raises:
            Unavailable: the server cannot be asked now.
        """
        return await self._config.get(bucket, key)

    async def watch(
        self, bucket: str, handler: Callable[[Entry], None], *, keys: Sequence[str] | None = None
    ) -> Subscription:
        """Current values, then every change, of all keys or of these; waits for a bucket that does not exist yet."""
        return await self._config.watch(bucket, handler, keys)

    async def serve(self, subject: str, answer: Callable[[bytes], bytes]) -> Subscription:
        """Answer requests; a question that `answer` fails on is answered with the error."""

        async def reply(message: Msg) -> None:
            # Without a reply inbox, computing the answer would be useless.
            if not (subscription.live and message.reply):
                return
            try:
                body, headers = answer(message.data), None
                # The client would raise at the publish, and the asker would wait for his whole time.
                if len(body) > self._link.client.max_payload:
                    raise ValueError(f"the answer has {len(body)} bytes, the server takes less")
            except Exception as error:  # the asker must hear of it
                log.exception("bus.answer_failed", subject=subject)
                body, headers = b"", {ERROR_HEADER: f"{type(error).__name__}: {error}"}
            await self._link.client.publish(message.reply, body, headers=headers)

        subscription = NatsSubscription()
        await self._listen(subscription, subject, reply)
        return subscription

    async def request(self, subject: str, data: bytes = b"", *, timeout_s: float = 2.0) -> bytes:
        """Send a request and wait for the answer.

        Raises:
            Unavailable: no answer on that subject within the time, or an error.
        """
        if not self._link.connected:
            raise Unavailable(f"request to {subject}: not connected", reason="offline")
        with unavailable(f"request to {subject}"):
            answer = await self._link.client.request(subject, data, timeout=timeout_s)
        if ERROR_HEADER in (answer.headers or {}):
            raise Unavailable(f"request to {subject}: {_said((answer.headers or {})[ERROR_HEADER])}", reason="answer")
        return answer.data

    async def wait_closed(self) -> str:
        """Return the reason once the client is closed permanently; the process must then end."""
        return await self._link.wait_closed()

    async def drain(self) -> None:
        """Deliver what was received, send what was published, then close; never raises."""
        await self._config.stop()
        await self._link.drain()
