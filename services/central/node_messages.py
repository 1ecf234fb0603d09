"""Hear one kind of message from every node: bounded in rate and size, the newest of each, never a reason to fail."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from services.central.core.heartbeats.heartbeat_rate import NodeRate
from shared import telemetry
from shared.contracts.bus.subjects import state_subject
from shared.contracts.envelope import Message
from shared.contracts.ids import node_token
from shared.core.bus.newest import NewestGate
from shared.core.log_limit import LogLimit
from shared.errors import Refused
from shared.ports import Bus, Clock, Received, Subscription
from shared.wire import SAID_CHARACTERS

M = TypeVar("M", bound=Message)

log = structlog.get_logger()

MAX_NODES = 20_000
"""Most that are listened to at a time; a cluster of Kubernetes has 5 000."""
FORGET_S = 600.0
"""A node that has been silent for longer is forgotten, and its rate with it."""


@dataclass(frozen=True, slots=True)
class MessageBounds:
    """Bounds on the messages of one node."""

    max_bytes: int
    period_s: float
    """Between two messages of a node on which nothing changes."""
    per_s: float
    burst: int


@dataclass(slots=True)
class _Sender:
    gate: NewestGate
    heard_at_s: float
    """Time of the last message, readable or not."""


class NodeMessages(Generic[M]):
    """The door for one kind of message from all nodes: passes new messages on with their arrival time.

    The subject names the node, and the server has checked that the sender may use it. A message whose content names
    another node is refused.
    """

    def __init__(
        self, message: type[M], clock: Clock, bounds: MessageBounds, take: Callable[[M, float], None], *, service: str
    ) -> None:
        """Call `take` for each new message with central's monotonic time; `take` must not fail and must be fast."""
        self._message, self._clock, self._bounds, self._take, self._service = message, clock, bounds, take, service
        self._rate = NodeRate(bounds.per_s, bounds.burst)
        self._senders: dict[str, _Sender] = {}
        self._log_limit = LogLimit()
        self._looked_s = clock.monotonic()

    async def listen(self, bus: Bus) -> Subscription:
        """Begin to hear them."""
        return await bus.subscribe(state_subject(self._message, "*"), self.hear)

    def hear(self, received: Received) -> None:
        """Take one message, or refuse it with a reason that is counted. Never raises."""
        kind, now_s, token = self._message.kind, self._clock.monotonic(), received.subject.rpartition(".")[2]
        self._forget(now_s)
        # Checked before parsing, because a flood must cost as little as possible.
        if not self._may_speak(token, now_s):
            telemetry.REFUSED.labels(self._service, kind, "too_often").inc()
            return
        try:
            message = self._read(received, token, now_s)
        except Refused as refusal:
            telemetry.REFUSED.labels(self._service, kind, refusal.reason).inc()
            held_back = self._log_limit.may_say(kind, now_s)
            if held_back is not None:
                log.warning("message.refused", subject=received.subject, reason=refusal.reason,
                            why=str(refusal)[:SAID_CHARACTERS], held_back=held_back)  # fmt: skip
            return
        telemetry.TAKEN.labels(self._service, kind).inc()
        self._take(message, now_s)

    def retain(self, nodes: Collection[str]) -> None:
        """Forget all nodes but these."""
        known = {node_token(node) for node in nodes}
        self._senders = {token: sender for token, sender in self._senders.items() if token in known}
        self._rate.retain(self._senders)

    def _may_speak(self, token: str, now_s: float) -> bool:
        sender = self._senders.get(token)
        if sender is None:
            # The buckets of invented names would fill the memory.
            if len(self._senders) >= MAX_NODES:
                return False
            sender = self._senders[token] = _Sender(NewestGate(self._bounds.period_s), now_s)
        sender.heard_at_s = now_s
        return self._rate.admit(token, now_s)

    def _read(self, received: Received, token: str, now_s: float) -> M:
        if len(received.data) > self._bounds.max_bytes:
            size = f"{len(received.data)} bytes, at most {self._bounds.max_bytes} are read"
            raise Refused(f"{self._message.kind} on {received.subject}: {size}", reason="too_large")
        message = self._message.decode(received.data)
        if node_token(message.node) != token:
            raise Refused(f"{message.kind} of {message.node!r} came on {received.subject}", reason="foreign_subject")
        verdict = self._senders[token].gate.admit(message.boot_id, message.seq, now_s)
        if verdict != "new":
            raise Refused(f"{message.kind} {message.node} {message.boot_id}/{message.seq} is {verdict}", reason=verdict)
        return message

    def _forget(self, now_s: float) -> None:
        if now_s - self._looked_s < FORGET_S / 10:
            return
        self._looked_s = now_s
        gone = [token for token, sender in self._senders.items() if now_s - sender.heard_at_s > FORGET_S]
        for token in gone:
            del self._senders[token]
        self._rate.retain(self._senders)
