"""The server side of the in-memory bus: subscriptions, streams, buckets, and faults to order."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from shared.contracts.bus.cloudevents import MSG_ID
from shared.contracts.bus.subjects import StreamSpec, subject_matches
from shared.errors import Conflict, Unavailable
from shared.ports import Entry, Received, Stored

Fault = Literal["drop", "duplicate", "reorder"]


@dataclass
class MemoryStream:
    """One stream: what it keeps, and the ids it has seen."""

    spec: StreamSpec
    messages: list[Received] = field(default_factory=list)
    _ids: dict[str, tuple[int, float]] = field(default_factory=dict)

    def takes(self, subject: str) -> bool:
        """Whether a subject is one of the stream's."""
        return any(subject_matches(pattern, subject) for pattern in self.spec.subjects)

    def find(self, pattern: str, *, from_sequence: int = 1) -> list[Received]:
        """What it holds for a filter, in order."""
        return [m for m in self.messages[max(0, from_sequence - 1) :] if subject_matches(pattern, m.subject)]

    def store(self, message: Received, *, expect: int | None, now: float) -> Stored:
        """Keep a message once per id within the duplicate window; see the port for `expect`."""
        msg_id = message.headers.get(MSG_ID)
        if expect is not None:
            after = self.find(message.subject, from_sequence=expect + 1)
            if after and after[0].headers.get(MSG_ID) == msg_id:
                return Stored(self.spec.name, after[0].sequence, duplicate=True)
            last = max((m.sequence for m in self.find(message.subject)), default=0)
            if last != expect:
                raise Conflict(f"{message.subject}: last sequence is {last}, not {expect}", reason="wrong_sequence")
        if msg_id is not None and msg_id in self._ids:
            sequence, stored_at = self._ids[msg_id]
            if now - stored_at < self.spec.duplicate_window_s:
                return Stored(self.spec.name, sequence, duplicate=True)
        sequence = len(self.messages) + 1
        self.messages.append(Received(message.subject, message.data, message.headers, sequence))
        if msg_id is not None:
            self._ids[msg_id] = (sequence, now)
        return Stored(self.spec.name, sequence)

    def roll_back(self, count: int) -> None:
        """Come back from a copy of when there were so many messages."""
        self.messages = self.messages[:count]
        self._ids = {msg_id: known for msg_id, known in self._ids.items() if known[0] <= count}


@dataclass
class MemoryBucket:
    """One configuration bucket: the newest value of each key; the revision counts over all keys."""

    revision: int = 0
    entries: dict[str, Entry] = field(default_factory=dict)

    def put(self, key: str, value: bytes) -> int:
        """Write a value."""
        self.revision += 1
        self.entries[key] = Entry(key, value, self.revision)
        return self.revision

    def after(self, revision: int) -> list[Entry]:
        """The newest value of each key that was written after a revision, in the order of writing."""
        return sorted((e for e in self.entries.values() if e.revision > revision), key=lambda e: e.revision)


@dataclass(eq=False)
class Interest:
    """One subscription at the broker."""

    subject: str
    deliver: Callable[[Received], None]
    reachable: Callable[[], bool]
    client: object


@dataclass
class _Order:
    kind: Fault
    pattern: str
    left: int


class MemoryBroker:
    """What the clients of one in-memory bus share; faults are ordered in advance, for so many messages."""

    def __init__(self) -> None:
        self.streams: dict[str, MemoryStream] = {}
        self.buckets: dict[str, MemoryBucket] = {}
        self.interests: list[Interest] = []
        self.responders: dict[str, tuple[Callable[[bytes], bytes], Callable[[], bool]]] = {}
        self.published: Counter[str] = Counter()
        self._orders: list[_Order] = []
        self._held: dict[str, tuple[Received, object]] = {}
        self._acks_to_lose = 0
        self._changed: set[Callable[[], None]] = set()

    def drop(self, pattern: str, *, times: int = 1) -> None:
        """Lose the next messages of a subject on their way to the subscribers."""
        self._orders.append(_Order("drop", pattern, times))

    def duplicate(self, pattern: str, *, times: int = 1) -> None:
        """Deliver the next messages of a subject twice."""
        self._orders.append(_Order("duplicate", pattern, times))

    def reorder(self, pattern: str, *, times: int = 1) -> None:
        """Hold the next message of a subject back until the one after it was delivered."""
        self._orders.append(_Order("reorder", pattern, times))

    def lose_acks(self, *, times: int = 1) -> None:
        """Store the next durable messages without telling their senders."""
        self._acks_to_lose += times

    def on_change(self, call: Callable[[], None]) -> Callable[[], None]:
        """Have a function called when a stream or bucket changes; the result takes that back."""
        self._changed.add(call)
        return lambda: self._changed.discard(call)

    def changed(self) -> None:
        """Wake everybody who waits for streams, buckets or the connection."""
        for call in tuple(self._changed):
            call()

    def route(self, message: Received, without: object = None) -> None:
        """Deliver a message to every subscriber that can be reached, but for those of one client, with the faults that
        were ordered."""
        self.published[message.subject] += 1
        kind = self._fault(message.subject)
        if kind == "drop":
            return
        if kind == "reorder":
            self._held[message.subject] = message, without
            return
        self._deliver(message, without)
        if kind == "duplicate":
            self._deliver(message, without)
        held = self._held.pop(message.subject, None)
        if held is not None:
            self._deliver(*held)

    def store(self, message: Received, *, expect: int | None, now: float) -> Stored:
        """Keep a message in the stream that takes its subject.

        Raises:
            Unavailable: no stream takes it, or the acknowledgement got lost.
            Conflict: `expect` is not the subject's last sequence.
        """
        stream = next((s for s in self.streams.values() if s.takes(message.subject)), None)
        if stream is None:
            raise Unavailable(f"no stream takes {message.subject}", reason="no_stream")
        stored = stream.store(message, expect=expect, now=now)
        self.changed()
        if self._acks_to_lose > 0:
            self._acks_to_lose -= 1
            raise Unavailable(f"the acknowledgement for {message.subject} got lost", reason="no_ack")
        return stored

    def stored(self, where: Stored) -> Received:
        """The message of an acknowledgement."""
        return next(m for m in self.streams[where.stream].messages if m.sequence == where.sequence)

    def _deliver(self, message: Received, without: object) -> None:
        for interest in tuple(self.interests):
            if interest.client is without:
                continue
            if interest.reachable() and subject_matches(interest.subject, message.subject):
                interest.deliver(message)

    def _fault(self, subject: str) -> Fault | None:
        for order in self._orders:
            if order.left > 0 and subject_matches(order.pattern, subject):
                order.left -= 1
                return order.kind
        return None
