"""The bus of the simulated world: each client has a link of its own that loses, delays, doubles, reorders, breaks."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from seeded_loop import CURRENT, Process

from shared.adapters.clock import LoopClock
from shared.contracts.bus.cloudevents import MSG_ID
from shared.contracts.bus.subjects import subject_matches
from shared.errors import IdTaken, NotStored, Unavailable
from shared.fakes.memory_broker import Interest, MemoryBroker, MemoryStream
from shared.fakes.memory_bus import MemoryBus, MemorySubscription
from shared.ports import DurableMessage, Received, Stored
from shared.retry import until_stored

LEAST_S, MOST_S = 0.0002, 0.003
"""Between a publish and its delivery while nothing is wrong."""


def shard_of_node(node: str, shards: int) -> int:
    """Where the hub maps its heartbeats; real ones compute something else that is as good."""
    return sum(node.encode()) % shards


@dataclass
class Link:
    """One client's way to the servers. Chances are of each message."""

    loss: float = 0.0
    doubling: float = 0.0
    late: float = 0.0
    late_s: float = 5.0
    """How late a late message comes at most: others overtake it."""
    deaf: bool = False
    """Nothing arrives, and the client does not notice."""
    mute: bool = False
    """Nothing leaves, and the client does not notice."""
    lost_acks: float = 0.0
    """Of durable messages: stored, and the sender is not told."""


class Interests(list[Interest]):
    """Who listens to what, and whether that has changed since somebody looked."""

    changed = True

    def append(self, interest: Interest) -> None:
        """One more."""
        self.changed = True
        super().append(interest)

    def remove(self, interest: Interest) -> None:
        """One less."""
        self.changed = True
        super().remove(interest)


class Broker(MemoryBroker):
    """The servers. `stored_by` is told of each message that a stream takes for the first time, and who sent it."""

    def __init__(self, shards: int = 1) -> None:
        super().__init__()
        self._shards = shards
        self.stored_by: Callable[[Received, Process | None], None] = lambda _message, _process: None
        self.full = False
        """The streams' disk is full."""
        self.interests: Interests = Interests()
        self._exact: dict[str, list[Interest]] = {}
        self._patterns: list[Interest] = []
        self.recorded: list[Received] = []
        """Every heartbeat that was routed, for whoever replays them."""
        self.sent: dict[bytes, tuple[float, float]] = {}
        """When each heartbeat was first routed, and how far its sender's clock was off."""

    def route(self, message: Received, without: object = None) -> None:
        """Deliver, and keep what somebody may send again."""
        if ".ready." in message.subject:
            self.recorded.append(message)
            sender = CURRENT.get()
            skew_s = sender.skew_s if sender is not None else 0.0
            self.sent.setdefault(message.data, (asyncio.get_running_loop().time(), skew_s))
            message = self._divided(message)
        super().route(message, without)

    def _divided(self, message: Received) -> Received:
        """As the hub maps what comes in by leaves, where heartbeats are divided."""
        if self._shards == 1:
            return message
        ready, _, node = message.subject.rpartition(".")
        return replace(message, subject=f"{ready}.{shard_of_node(node, self._shards)}.{node}")

    def _deliver(self, message: Received, without: object) -> None:
        """As its base, without a look at everybody for each message: most listen to one subject alone."""
        if self.interests.changed:
            self._index()
        for interest in (*self._exact.get(message.subject, ()), *self._patterns):
            if (
                interest.client is not without
                and interest.reachable()
                and subject_matches(interest.subject, message.subject)
            ):
                interest.deliver(message)

    def _index(self) -> None:
        self.interests.changed, self._exact, self._patterns = False, {}, []
        for interest in self.interests:
            if "*" in interest.subject or ">" in interest.subject:
                self._patterns.append(interest)
            else:
                self._exact.setdefault(interest.subject, []).append(interest)

    def leave(self, client: object) -> None:
        """The server notices that a client is gone."""
        for interest in [interest for interest in self.interests if interest.client is client]:
            self.interests.remove(interest)

    def store(self, message: Received, *, expect: int | None, now: float) -> Stored:
        """Keep a message."""
        if self.full and any(stream.takes(message.subject) for stream in self.streams.values()):
            raise Unavailable(f"{message.subject}: the disk of the streams is full", reason="full")
        before = {name: len(stream.messages) for name, stream in self.streams.items()}
        stored = super().store(message, expect=expect, now=now)
        stream: MemoryStream = self.streams[stored.stream]
        if len(stream.messages) > before[stored.stream]:
            self.stored_by(stream.messages[-1], CURRENT.get())
        return stored


class SimBus(MemoryBus):
    """One client over its link."""

    def __init__(self, broker: Broker, process: Process, link: Link, random: Random, *, echo: bool = True) -> None:
        super().__init__(broker, LoopClock(), name=process.name, echo=echo)
        self.servers, self.process, self.link, self._random = broker, process, link, random
        process.on_kill.append(lambda: broker.leave(self))
        self.heard: Callable[[Received], None] = lambda _message: None
        self.sent: Callable[[Received], None] = lambda _message: None
        """Told of each state message that the process has said, wherever it got to."""

    async def publish(self, subject: str, data: bytes, headers: Mapping[str, str] | None = None) -> bool:
        """Send and forget; a mute client believes that it was sent."""
        message = Received(subject, data, dict(headers or {}))
        self.sent(message)
        if not self.connected:
            return False
        self.process.step()
        if not self._lost(self.link.mute):
            self.broker.route(message, without=None if self._hears_itself else self)
        return True

    async def publish_durable(self, message: DurableMessage, *, budget_s: float = 20.0) -> Stored:
        """Store in a stream, with the same id until acknowledged; raises as the port says."""
        what = f"durable message {message.msg_id} on {message.subject}"
        sent = Received(message.subject, message.data, {**message.headers, MSG_ID: message.msg_id})

        async def once(timeout_s: float) -> Stored:
            if self._closed.is_set():
                raise NotStored(f"{what}: the bus client is closed", reason="closed")
            if not self._online:
                raise Unavailable(f"{what}: not connected", reason="offline")
            self.process.step()
            await asyncio.sleep(self._random.uniform(LEAST_S, MOST_S))
            if self._lost(self.link.mute):
                await asyncio.sleep(timeout_s)
                raise Unavailable(f"{what}: no answer", reason="timeout")
            stored = self.broker.store(
                sent, expect=message.expect_last_subject_seq, now=asyncio.get_running_loop().time()
            )
            self.broker.route(sent, without=None if self._hears_itself else self)
            first = self.broker.stored(stored)
            self.process.step()
            if self.link.deaf or self._random.random() < self.link.lost_acks:
                await asyncio.sleep(timeout_s)
                raise Unavailable(f"{what}: the acknowledgement got lost", reason="no_ack")
            if (first.subject, first.data) != (message.subject, message.data):
                raise IdTaken(f"{what}: sequence {stored.sequence} on {first.subject!r} has its id", reason="id_taken")
            return stored

        return await until_stored(once, clock=self._clock, budget_s=budget_s, what=what, roll=self._random.random)

    def _lost(self, cut: bool) -> bool:
        return cut or (self.link.loss > 0 and self._random.random() < self.link.loss)

    def _post(self, subscription: MemorySubscription, handler: Callable[[Any], None], thing: Any) -> None:
        """Over the wire, in the receiver's own turn."""
        if not self.process.alive or self._lost(self.link.deaf):
            return
        for _ in range(1 + (self.link.doubling > 0 and self._random.random() < self.link.doubling)):
            delay_s = self._random.uniform(LEAST_S, MOST_S)
            if self.link.late > 0 and self._random.random() < self.link.late:
                delay_s += self._random.uniform(0.0, self.link.late_s)
            asyncio.get_running_loop().call_later(
                delay_s, self._arrive, subscription, handler, thing, context=self.process.context
            )

    def _arrive(self, subscription: MemorySubscription, handler: Callable[[Any], None], thing: Any) -> None:
        if subscription.live and not self._closed.is_set():
            if isinstance(thing, Received):
                self.heard(thing)
            self._hand_over(handler, thing)
