"""The typed side of the bus for one service: stamp and publish its messages, keep the newest of what it reads."""

import asyncio
import uuid
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

import structlog

from shared import telemetry
from shared.contracts.envelope import Message
from shared.contracts.subjects import state_subject
from shared.core.newest import NewestGate
from shared.errors import Refused
from shared.ports import Bus, Clock, Received, Subscription

M = TypeVar("M", bound=Message)

log = structlog.get_logger()


@lru_cache(maxsize=4)
def _decoded(message: type[Message], payload: bytes) -> Message:
    """A message is read once, however many services of this process listen: messages are frozen."""
    return message.decode(payload)


class Newest(Generic[M]):
    """A slot for one kind of message from one sender: the newest wins, everything else is refused and counted."""

    def __init__(self, message: type[M], clock: Clock, *, service: str, node: str | None) -> None:
        self._message, self._clock, self._service, self._node = message, clock, service, node
        self._gate = NewestGate()
        self._value: M | None = None
        self._received_at = 0.0
        self._fresh = asyncio.Event()

    @property
    def value(self) -> M | None:
        """The newest message so far, however old; ask `age_s` before using it."""
        return self._value

    @property
    def age_s(self) -> float | None:
        """Seconds since the newest message was received, by this machine's monotonic clock; None before the first."""
        return None if self._value is None else self._clock.monotonic() - self._received_at

    def within(self, max_age_s: float) -> M | None:
        """The newest message if it is not older than that."""
        age = self.age_s
        return self._value if age is not None and age <= max_age_s else None

    def offer(self, received: Received) -> None:
        """Take a message from the bus, or refuse it with a reason that is counted. Never raises."""
        name = self._message.kind
        try:
            message = cast("M", _decoded(self._message, received.data))
            if self._node is not None and message.node != self._node:
                raise Refused(f"{name} speaks for node {message.node!r}, this is {self._node!r}", reason="foreign_node")
            verdict = self._gate.take(message.boot_id, message.seq)
            if verdict != "new":
                raise Refused(f"{name} {message.boot_id}/{message.seq} is {verdict}", reason=verdict)
        except Refused as refusal:
            telemetry.REFUSED.labels(self._service, name, refusal.reason).inc()
            log.warning("message.refused", subject=received.subject, reason=refusal.reason, why=str(refusal))
            return
        telemetry.TAKEN.labels(self._service, name).inc()
        self._value, self._received_at = message, self._clock.monotonic()
        self._fresh.set()

    async def next(self, timeout_s: float | None = None) -> M | None:
        """The newest message not handed out before; None when nothing new came within the time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._fresh.wait()
        except TimeoutError:
            return None
        self._fresh.clear()
        return self._value


class Wire:
    """One service's voice and ears. `boot_id` names this life of the process."""

    def __init__(self, bus: Bus, clock: Clock, *, node: str, service: str) -> None:
        self.bus, self.clock, self.node, self.service = bus, clock, node, service
        self.boot_id = uuid.uuid4().hex[:16]
        self.config_rev = 0
        self._seq: dict[type[Message], int] = {}
        self._subscriptions: list[Subscription] = []

    def stamp(self, message: type[M], /, *, based_on: tuple[str, ...] = (), **fields: Any) -> M:
        """Make a message with the next number of its kind and this service's envelope."""
        seq = self._seq[message] = self._seq.get(message, 0) + 1
        return message(
            node=self.node,
            boot_id=self.boot_id,
            seq=seq,
            sent_at=self.clock.wall(),
            config_rev=self.config_rev,
            based_on=based_on,
            **fields,
        )

    async def publish(self, message: Message, *, suffix: str = "") -> bool:
        """Send a full-state message; False when the bus is away (nothing is kept back: the next one says it all)."""
        return await self.bus.publish(state_subject(type(message), self.node) + suffix, message.encode())

    async def newest(self, message: type[M], *, suffix: str = "") -> Newest[M]:
        """Keep the newest message of one kind of this node."""
        slot = Newest(message, self.clock, service=self.service, node=self.node)
        self._subscriptions.append(await self.bus.subscribe(state_subject(message, self.node) + suffix, slot.offer))
        return slot

    async def serve(self, subject: str, answer: Callable[[bytes], bytes]) -> None:
        """Answer requests on a subject until `stop`."""
        self._subscriptions.append(await self.bus.serve(subject, answer))

    async def stop(self) -> None:
        """End all subscriptions made here."""
        for subscription in self._subscriptions:
            await subscription.stop()
        self._subscriptions.clear()
