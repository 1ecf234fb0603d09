"""The bus in memory: the same port as over NATS, deterministic, also under a virtual-time event loop.

Messages reach a handler in the order they were sent, on a later turn of the event loop, as they would over a wire.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import structlog

from shared import telemetry
from shared.adapters.clock import LoopClock
from shared.contracts.bus.cloudevents import MSG_ID
from shared.contracts.bus.subjects import StreamSpec
from shared.core.bus.stream_room import Cut
from shared.errors import IdTaken, NotStored, Unavailable
from shared.fakes.memory_broker import Interest, MemoryBroker, MemoryBucket, MemoryStream
from shared.ports import Clock, DurableMessage, Entry, Received, Stored, Subscription
from shared.retry import until_stored

log = structlog.get_logger()


class MemorySubscription:
    """A live subscription; `end` takes the interest back."""

    def __init__(self, end: Callable[[], None]) -> None:
        self.live = True
        self.end = end

    async def stop(self) -> None:
        """No further call to the handler after this returns."""
        self.live = False
        self.end()


class MemoryBus:
    """One client. Several may share a broker; each can lose its connection and get it back by itself."""

    def __init__(
        self, broker: MemoryBroker | None = None, clock: Clock | None = None, *, name: str = "test", echo: bool = True
    ) -> None:
        """Without `echo` its own messages do not come back to it."""
        self.broker = broker or MemoryBroker()
        self._hears_itself = echo
        self.name = name
        self._clock: Clock = clock or LoopClock()
        self._online = True
        self._closed = asyncio.Event()
        self._reason = ""
        self._inbox: deque[tuple[MemorySubscription, Callable[[Any], None], Any]] = deque()
        self._scheduled = False

    @property
    def connected(self) -> bool:
        """Whether a publish would leave now."""
        return self._online and not self._closed.is_set()

    def go_offline(self) -> None:
        """Lose the connection: publishes are dropped, nothing arrives, requests and durable publishes fail."""
        self._online = False

    def go_online(self) -> None:
        """Get it back: subscriptions are in force again, followers and watches catch up."""
        self._online = True
        self.broker.changed()

    def close(self, reason: str) -> None:
        """Close the client for good, as a server's refusal would."""
        if not self._closed.is_set():
            self._reason = reason
            self._closed.set()
            self.broker.changed()

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> bool:
        """Send and forget."""
        if not self.connected:
            telemetry.DROPPED.labels(self.name, "offline").inc()
            return False
        message = Received(subject, data, dict(headers or {}))
        self.broker.route(message, without=None if self._hears_itself else self)
        with contextlib.suppress(Unavailable):  # a plain publish on a stream's subject is stored, and nobody told
            self.broker.store(message, expect=None, now=self._clock.monotonic())
        return True

    async def publish_durable(self, message: DurableMessage, *, budget_s: float = 20.0) -> Stored:
        """Store in a stream, with the same id until acknowledged; raises as the port says."""
        what = f"durable message {message.msg_id} on {message.subject}"
        sent = Received(message.subject, message.data, {**message.headers, MSG_ID: message.msg_id})

        async def once(_timeout_s: float) -> Stored:
            if self._closed.is_set():
                raise NotStored(f"{what}: the bus client is closed", reason="closed")
            if not self._online:
                raise Unavailable(f"{what}: not connected", reason="offline")
            self.broker.route(sent, without=None if self._hears_itself else self)
            stored = self.broker.store(sent, expect=message.expect_last_subject_seq, now=self._clock.monotonic())
            first = self.broker.stored(stored)
            if (first.subject, first.data) != (message.subject, message.data):
                raise IdTaken(f"{what}: sequence {stored.sequence} on {first.subject!r} has its id", reason="id_taken")
            return stored

        return await until_stored(once, clock=self._clock, budget_s=budget_s, what=what, roll=lambda: 0.5)

    async def subscribe(self, subject: str, handler: Callable[[Received], None]) -> Subscription:
        """Every message from now on."""
        self._need_open(subject)
        interest = Interest(
            subject,
            deliver=lambda message: self._post(subscription, handler, message),
            reachable=lambda: self.connected,
            client=self,
        )
        subscription = MemorySubscription(lambda: _take_out(self.broker.interests, interest))
        self.broker.interests.append(interest)
        return subscription

    async def replay(self, stream: str, subject: str, *, last_per_subject: bool = False) -> Sequence[Received]:
        """What a stream holds now; empty where it does not exist."""
        self._need_connection(f"stream {stream}")
        found = self.broker.streams[stream].find(subject) if stream in self.broker.streams else []
        if last_per_subject:
            newest = {message.subject: message for message in found}
            return sorted(newest.values(), key=lambda message: message.sequence)
        return found

    async def follow(self, stream: str, subject: str, *, from_sequence: int = 1) -> AsyncIterator[Received]:
        """The stream from a sequence on, then live."""
        wake, next_sequence = asyncio.Event(), from_sequence
        forget = self.broker.on_change(wake.set)
        try:
            while not self._closed.is_set():
                wake.clear()
                if self._online and stream in self.broker.streams:
                    for message in self.broker.streams[stream].find(subject, from_sequence=next_sequence):
                        next_sequence = message.sequence + 1
                        yield message
                await wake.wait()
        finally:
            forget()
        raise Unavailable(f"stream {stream}: the bus client is closed", reason="closed")

    async def ensure_stream(self, spec: StreamSpec) -> None:
        """Create a stream, or bring it to the specification."""
        self._need_connection(f"stream {spec.name}")
        if spec.name in self.broker.streams:
            self.broker.streams[spec.name].spec = spec
        else:
            self.broker.streams[spec.name] = MemoryStream(spec)
        self.broker.changed()

    async def make_room(self, spec: StreamSpec) -> Sequence[Cut]:
        """There is always room."""
        self._need_connection(f"stream {spec.name}")
        return ()

    async def ensure_bucket(self, bucket: str, *, replicas: int | None = None) -> None:  # noqa: ARG002 - one memory
        """Create a bucket where it is missing."""
        self._need_connection(f"bucket {bucket}")
        self.broker.buckets.setdefault(bucket, MemoryBucket())

    async def put(self, bucket: str, key: str, value: bytes, headers: Mapping[str, str] | None = None) -> int:  # noqa: ARG002
        """Write a value; returns its revision. Nobody reads the history here, so headers are not kept."""
        self._need_connection(f"key {bucket}/{key}")
        if bucket not in self.broker.buckets:
            raise Unavailable(f"key {bucket}/{key}: there is no such bucket", reason="no_bucket")
        revision = self.broker.buckets[bucket].put(key, value)
        self.broker.changed()
        return revision

    async def get(self, bucket: str, key: str) -> Entry | None:
        """Read a value; None where bucket or key does not exist."""
        self._need_connection(f"key {bucket}/{key}")
        return self.broker.buckets[bucket].entries.get(key) if bucket in self.broker.buckets else None

    async def watch(
        self, bucket: str, handler: Callable[[Entry], None], *, keys: Sequence[str] | None = None
    ) -> Subscription:
        """Current values, then every change, of all keys or of these; waits for a bucket that does not exist yet."""
        seen = 0

        def catch_up() -> None:
            nonlocal seen
            if self.connected and bucket in self.broker.buckets:
                for entry in self.broker.buckets[bucket].after(seen):
                    seen = entry.revision
                    if keys is None or entry.key in keys:
                        self._post(subscription, handler, entry)

        subscription = MemorySubscription(self.broker.on_change(catch_up))
        catch_up()
        return subscription

    async def serve(self, subject: str, answer: Callable[[bytes], bytes]) -> Subscription:
        """Answer requests on a subject."""
        self._need_open(subject)
        responders = self.broker.responders
        responders[subject] = (answer, lambda: self.connected)
        return MemorySubscription(lambda: _forget(responders, subject))

    async def request(self, subject: str, data: bytes = b"", *, timeout_s: float = 2.0) -> bytes:  # noqa: ARG002 - answers at once
        """Ask; raises as the port says."""
        self._need_connection(f"request to {subject}")
        answer, reachable = self.broker.responders.get(subject, (None, lambda: False))
        if answer is None or not reachable():
            raise Unavailable(f"request to {subject}: nobody answers there", reason="no_responders")
        await asyncio.sleep(0)
        try:
            return answer(data)
        except Exception as error:
            raise Unavailable(f"request to {subject}: {type(error).__name__}: {error}", reason="answer") from error

    async def wait_closed(self) -> str:
        """Return, with the reason, once the client is closed."""
        await self._closed.wait()
        return self._reason

    async def drain(self) -> None:
        """Deliver what was received, then close."""
        self._run_inbox()
        self.close("closed by this process")

    def _need_open(self, what: str) -> None:
        if self._closed.is_set():
            raise Unavailable(f"{what}: the bus client is closed", reason="closed")

    def _need_connection(self, what: str) -> None:
        if not self.connected:
            raise Unavailable(f"{what}: not connected", reason="offline")

    def _post(self, subscription: MemorySubscription, handler: Callable[[Any], None], thing: Any) -> None:
        self._inbox.append((subscription, handler, thing))
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run_inbox)

    def _run_inbox(self) -> None:
        self._scheduled = False
        while self._inbox and not self._closed.is_set():
            subscription, handler, thing = self._inbox.popleft()
            if subscription.live:
                self._hand_over(handler, thing)

    def _hand_over(self, handler: Callable[[Any], None], thing: Any) -> None:
        try:
            handler(thing)
        except Exception:
            telemetry.DROPPED.labels(self.name, "handler_failed").inc()
            log.exception("bus.handler_failed")


def _take_out(interests: list[Interest], interest: Interest) -> None:
    if interest in interests:
        interests.remove(interest)


def _forget(responders: dict[str, Any], subject: str) -> None:
    responders.pop(subject, None)
