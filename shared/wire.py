"""The typed side of the bus for one service: stamp and publish its messages, keep the newest of what it reads."""

import asyncio
import secrets
import uuid
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

import structlog

from shared import telemetry
from shared.contracts.bus.subjects import state_subject
from shared.contracts.envelope import Message
from shared.core.bus.newest import NewestGate
from shared.core.log_limit import LogLimit
from shared.errors import Refused
from shared.ports import Bus, Clock, Received, Subscription

M = TypeVar("M", bound=Message)

log = structlog.get_logger()

# A refusal quotes what a stranger sent: a line of the log has room for so much of it.
SAID_CHARACTERS = 300


# One per kind: all listeners of this process get the same payload one right after the other. A message published here
# is in it already and is not decoded at all; messages are frozen, so services may share one.
_newest: dict[type[Message], tuple[bytes, Message]] = {}


def _decoded(message: type[Message], payload: bytes) -> Message:
    known = _newest.get(message)
    if known is not None and known[0] == payload:
        return known[1]
    read = message.decode(payload)
    _newest[message] = payload, read
    return read


def message_id(fact_id: str) -> str:
    """Return a NATS message id for a fact: a stream drops a second message of the same id, whoever sends it.

    The id of a fact follows from what others can know, so another sender could use it first and have the fact dropped.
    The random part prevents that; the writer keeps the whole id for as long as it may repeat the message.
    """
    return f"{fact_id}/{secrets.token_hex(8)}"


class Newest(Generic[M]):
    """A slot for one kind of message from one sender: the newest wins, everything else is refused and counted.

    It is the door for state messages: bounded in size before parsing, compared with the node in its subject, and never
    a reason to fail. An unreadable message changes nothing; the last valid one ages, which its users see.
    """

    def __init__(self, message: type[M], clock: Clock, *, service: str, node: str | None) -> None:
        self._message, self._clock, self._service, self._node = message, clock, service, node
        self._gate = NewestGate()
        self._value: M | None = None
        self.traceparent = ""
        """Header of the newest message, by which its reader continues its trace; "" where it has none."""
        self._received_at = 0.0
        self._fresh = asyncio.Event()
        self._log_limit = LogLimit()

    @property
    def two_senders(self) -> str:
        """Why the messages are not one sender's, as a condition; empty while they are."""
        if not self._gate.two_senders(self._clock.monotonic()):
            return ""
        return f"TwoSenders: two live processes send {self._message.kind} for this node; stop one of them"

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
        name, now_s = self._message.kind, self._clock.monotonic()
        try:
            message = cast("M", _decoded(self._message, received.data))
            # The server's rights already keep a node from another's subjects; without them (one host, an operator's own
            # server) this is the only check. See docs/facts/safety-rules.md#rule-8-least-right.
            if self._node is not None and message.node != self._node:
                raise Refused(f"{name} speaks for node {message.node!r}, this is {self._node!r}", reason="foreign_node")
            # With the dots, node "a" does not pass for node "ab"; a suffix (`.evictor`) may follow the subject.
            if not (received.subject + ".").startswith(state_subject(self._message, message.node) + "."):
                raise Refused(f"{name} of {message.node!r} came on {received.subject}", reason="foreign_subject")
            verdict = self._gate.admit(message.boot_id, message.seq, now_s)
            if verdict != "new":
                raise Refused(f"{name} {message.boot_id}/{message.seq} is {verdict}", reason=verdict)
        except Refused as refusal:
            self._refuse(received, refusal, now_s)
            return
        # Only what is admitted makes the slot younger: refused messages must never make old input look fresh
        # (docs/facts/safety-rules.md#rule-1-absent-is-not-zero).
        telemetry.TAKEN.labels(self._service, name).inc()
        self._value, self._received_at = message, now_s
        self.traceparent = received.headers.get(telemetry.TRACEPARENT, "")
        self._fresh.set()

    def _refuse(self, received: Received, refusal: Refused, now_s: float) -> None:
        """Count a refusal, and log it unless another one of this kind was just logged."""
        telemetry.REFUSED.labels(self._service, self._message.kind, refusal.reason).inc()
        held_back = self._log_limit.may_say(self._message.kind, now_s)
        if held_back is not None:
            why = str(refusal)[:SAID_CHARACTERS]
            log.warning(
                "message.refused", subject=received.subject, reason=refusal.reason, why=why, held_back=held_back
            )

    async def next(self, timeout_s: float | None = None) -> M | None:
        """The newest message not handed out before; None when nothing new came within the time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._fresh.wait()
        except TimeoutError:
            return None
        # Between the wait and this line nothing else runs, so no message can come in that is then forgotten.
        self._fresh.clear()
        return self._value


class Wire:
    """One service's voice and ears. `boot_id` names this life of the process."""

    def __init__(self, bus: Bus, clock: Clock, *, node: str, service: str) -> None:
        self.bus, self.clock, self.node, self.service = bus, clock, node, service
        # Boots are compared for equality, never ordered: a clock that is set back must not make a new one look old.
        self.boot_id = uuid.uuid4().hex[:16]
        self.config_rev = 0
        self._seq: dict[type[Message], int] = {}
        self._subscriptions: list[Subscription] = []
        self._slots: list[Newest[Any]] = []

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

    async def publish(self, message: Message, *, suffix: str = "", payload: bytes | None = None) -> bool:
        """Send a full-state message under the node that it names, which for central may be another one.

        Returns False if the bus is away: nothing is queued, because the next message contains everything. `payload` is
        the encoded message, if the sender has encoded it already.
        """
        payload = message.encode() if payload is None else payload
        _newest[type(message)] = payload, message
        headers = telemetry.trace_headers() or None
        return await self.bus.publish(state_subject(type(message), message.node) + suffix, payload, headers)

    async def newest(self, message: type[M], *, suffix: str = "") -> Newest[M]:
        """Keep the newest message of one kind of this node."""
        slot = Newest(message, self.clock, service=self.service, node=self.node)
        self._slots.append(slot)
        self._subscriptions.append(await self.bus.subscribe(state_subject(message, self.node) + suffix, slot.offer))
        return slot

    @property
    def two_senders(self) -> str:
        """Which of the messages read here come from two live senders, as conditions; empty where none do."""
        return "; ".join(why for slot in self._slots if (why := slot.two_senders))

    async def serve(self, subject: str, answer: Callable[[bytes], bytes]) -> None:
        """Answer requests on a subject until `stop`."""
        self._subscriptions.append(await self.bus.serve(subject, answer))

    async def stop(self) -> None:
        """End all subscriptions made here."""
        for subscription in self._subscriptions:
            await subscription.stop()
        self._subscriptions.clear()
        self._slots.clear()
