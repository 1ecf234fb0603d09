"""A bus for several services in one process that pass each other their messages in memory, with and without a
server.

A published message reaches the other services inside the process, and goes to the server for everyone else; the
connection below must not return it (docs/facts/nats.md#no-echo). While the server is away, messages that never leave
the node still flow, so a node keeps measuring, sizing, placing and evicting without NATS
(docs/facts/safety-rules.md#the-same-services-everywhere). Durable publishes fail as they would, and the outbox keeps
them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from shared.contracts.bus.cloudevents import MSG_ID
from shared.contracts.bus.subjects import ROOT, StreamSpec, subject_matches
from shared.core.bus.stream_room import Cut
from shared.ports import Bus, DurableMessage, Entry, Received, Stored, Subscription

log = structlog.get_logger()

# Only subjects of the node: readiness and facts are for others, and "delivered" would be a lie inside this process.
NODE_REACH = f"{ROOT}.node."


@dataclass
class _Interest:
    pattern: str
    handler: Callable[[Received], None]
    inner: Subscription
    ended: Callable[["_Interest"], None]
    live: bool = True

    async def stop(self) -> None:
        """No further call to the handler after this returns."""
        self.live = False
        self.ended(self)
        await self.inner.stop()

    # Asked at the delivery too: between `call_soon` and now the reader may have stopped.
    def hand(self, received: Received) -> None:
        if self.live:
            try:
                self.handler(received)
            except Exception:  # one bad message must not end the subscription
                log.exception("bus.handler_failed", subject=received.subject)


class StandaloneBus:
    """Delegates to `inner`; delivers what this process publishes to its own subscribers itself."""

    def __init__(self, inner: Bus) -> None:
        """`inner` does not bring back what was sent through it."""
        self._inner = inner
        self._interests: list[_Interest] = []
        self._alone = False

    @property
    def connected(self) -> bool:
        """Whether a publish would leave this process now."""
        return self._inner.connected

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> bool:
        """Send and forget; while the server is away, only to this process. True: the message may have been received."""
        sent = await self._inner.publish(subject, data, headers)
        # Said at the change alone: this runs for every message.
        self._say(alone=not sent)
        if not sent and not subject.startswith(NODE_REACH):
            return False
        self._hand_over(subject, data, headers or {})
        return True

    def _hand_over(self, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
        readers = [one for one in self._interests if subject_matches(one.pattern, subject)]
        if readers:
            # On a later turn of the loop, as over a wire: a publisher never runs its readers.
            asyncio.get_running_loop().call_soon(_hand, readers, Received(subject, data, dict(headers)))

    def _say(self, *, alone: bool) -> None:
        if alone and not self._alone:
            log.warning("node.alone", why="NATS is away; the services of this process go on without it")
        elif self._alone and not alone:
            log.info("node.rejoined")
        self._alone = alone

    async def subscribe(self, subject: str, handler: Callable[[Received], None]) -> Subscription:
        """Every message on a subject, from the server and from this process."""
        interest = _Interest(subject, handler, await self._inner.subscribe(subject, handler), self._interests.remove)
        self._interests.append(interest)
        return interest

    async def publish_durable(self, message: DurableMessage, *, budget_s: float = 20.0) -> Stored:
        """Store through the inner bus: facts are never reported as stored when they are not."""
        stored = await self._inner.publish_durable(message, budget_s=budget_s)
        self._hand_over(message.subject, message.data, {**message.headers, MSG_ID: message.msg_id})
        return stored

    async def replay(self, stream: str, subject: str, *, last_per_subject: bool = False) -> Sequence[Received]:
        """As the inner bus."""
        return await self._inner.replay(stream, subject, last_per_subject=last_per_subject)

    def follow(self, stream: str, subject: str, *, from_sequence: int = 1) -> AsyncIterator[Received]:
        """As the inner bus."""
        return self._inner.follow(stream, subject, from_sequence=from_sequence)

    async def ensure_stream(self, spec: StreamSpec) -> None:
        """As the inner bus."""
        await self._inner.ensure_stream(spec)

    async def make_room(self, spec: StreamSpec) -> Sequence[Cut]:
        """As the inner bus."""
        return await self._inner.make_room(spec)

    async def ensure_bucket(self, bucket: str, *, replicas: int | None = None) -> None:
        """As the inner bus."""
        await self._inner.ensure_bucket(bucket, replicas=replicas)

    async def put(self, bucket: str, key: str, value: bytes, headers: Mapping[str, str] | None = None) -> int:
        """As the inner bus."""
        return await self._inner.put(bucket, key, value, headers)

    async def get(self, bucket: str, key: str) -> Entry | None:
        """As the inner bus."""
        return await self._inner.get(bucket, key)

    async def watch(
        self, bucket: str, handler: Callable[[Entry], None], *, keys: Sequence[str] | None = None
    ) -> Subscription:
        """As the inner bus."""
        return await self._inner.watch(bucket, handler, keys=keys)

    async def serve(self, subject: str, answer: Callable[[bytes], bytes]) -> Subscription:
        """As the inner bus."""
        return await self._inner.serve(subject, answer)

    async def request(self, subject: str, data: bytes = b"", *, timeout_s: float = 2.0) -> bytes:
        """As the inner bus."""
        return await self._inner.request(subject, data, timeout_s=timeout_s)

    async def wait_closed(self) -> str:
        """As the inner bus."""
        return await self._inner.wait_closed()

    async def drain(self) -> None:
        """As the inner bus."""
        await self._inner.drain()


def _hand(readers: Sequence[_Interest], received: Received) -> None:
    for reader in readers:
        reader.hand(received)
