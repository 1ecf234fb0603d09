"""`audit` compares the stream of events, the stream of intents and the ledger, and names what is missing.

It checks (docs/facts/safety-rules.md#rule-4-one-eviction-of-one-pod) that every fact in the ledger is in the stream
once; that the events of an intent are in the order of its life, each once, whatever their ids; that no pod UID is
evicted twice; and that no pod is evicted without an intent. Rehearsals, which end no pod, are counted separately, and
none of them reports an eviction.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from shared.contracts.eviction import EvictionEvent, EvictionFacts, EvictionIntent
from shared.contracts.eviction_phases import FINAL_PHASES, Phase
from shared.contracts.mode import Mode
from shared.core.evictions.intents import FINAL_STEPS, PHASE_OF_STEP, Step

Kind = Literal["lost", "doubled", "wrong_pod", "wrong_mode", "out_of_order", "unreadable"]
Key = tuple[str, str]
"""Node and id of an intent, because any node may write another one's id into an event of its own."""

_ORDER: Mapping[Phase, int] = {"intended": 0, "created": 1, **dict.fromkeys(FINAL_PHASES, 2)}


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event and its sequence in the stream."""

    sequence: int
    event: EvictionEvent


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """An intent as the node's ledger has it: its step, and its messages that wait to be sent."""

    intent_id: str
    pod_uid: str
    pod: str
    step: Step
    waiting: frozenset[str] = frozenset()
    sent: Mapping[str, int] = field(default_factory=dict)
    """Acknowledged messages with their sequence."""
    begun_at_s: float | None = None
    """When the intent was written, by the node's clock: seconds since 1970."""
    node: str = ""
    """Whose ledger it is."""
    mode: Mode = "enforce"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is not as it must be."""

    kind: Kind
    what: str


@dataclass(frozen=True, slots=True)
class Audit:
    """Counts of real evictions and of rehearsals, and every fault."""

    events: int
    intents: int
    pods: int
    open: int
    """Intents without a last event; they may still be under way."""
    waiting: int
    """Messages that the ledger has not been able to send yet."""
    faults: tuple[Fault, ...]
    rehearsals: int = 0
    """Intents that were not to be carried out, and that no count above includes: dry runs, and test events."""
    rehearsed_events: int = 0

    @property
    def whole(self) -> bool:
        """Nothing lost, doubled, mixed up."""
        return not self.faults


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Since when the streams hold everything; what is older may have aged out and is not lost. None: since ever."""

    events: datetime | None = None
    intents: datetime | None = None


def audit(
    events: Sequence[StoredEvent],
    intents: Sequence[EvictionIntent] | None = None,
    ledger: Sequence[LedgerEntry] = (),
    *,
    kept: StreamStart = StreamStart(),
    unreadable: Sequence[str] = (),
) -> Audit:
    """Check a history.

    Args:
        events: what the stream holds, in its order.
        intents: what the stream of intents holds; None: unknown, then events are not checked against it.
        ledger: what the node's ledger holds; without any, the stream is checked by itself.
        kept: how far back the streams reach.
        unreadable: messages in the streams that are no events or intents, in words.
    """
    by_intent: dict[Key, list[StoredEvent]] = defaultdict(list)
    for stored in events:
        by_intent[_key(stored.event)].append(stored)
    modes = _modes_of(ledger) | _modes_of(intents or ())
    real = {key: history for key, history in by_intent.items() if not _rehearsed(history, modes.get(key))}
    told = [stored for history in real.values() for stored in history]
    faults = [
        *(Fault("unreadable", what) for what in unreadable),
        *(fault for history in by_intent.values() for fault in _disordered(history, kept.events)),
        *_evicted_twice(told),
        *_wrong_pods(by_intent, _uids_of(ledger) | _uids_of(intents or ())),
        *_wrong_modes(by_intent, modes),
        *_lost(by_intent, ledger, kept.events),
        *(_against_intents(real, intents, ledger, kept.intents) if intents is not None else ()),
    ]
    ended = {identity for identity, history in real.items() if any(_final(s.event) for s in history)}
    return Audit(
        events=len(told),
        intents=len(real),
        pods=len({stored.event.pod_uid for stored in told}),
        open=len(real.keys() - ended),
        waiting=sum(len(entry.waiting) for entry in ledger),
        faults=tuple(sorted(faults, key=lambda fault: (fault.kind, fault.what))),
        rehearsals=len(by_intent) - len(real),
        rehearsed_events=len(events) - len(told),
    )


def _rehearsed(history: Sequence[StoredEvent], intended: Mode | None) -> bool:
    """Return whether it was not to be carried out, by its intent, if known, and by each of its events."""
    return intended != "enforce" and all(stored.event.mode != "enforce" for stored in history)


def _final(event: EvictionEvent) -> bool:
    return event.phase in FINAL_PHASES


def _key(about: LedgerEntry | EvictionFacts) -> Key:
    return about.node, about.intent_id


def _uids_of(intents: Iterable[LedgerEntry | EvictionIntent]) -> dict[Key, str]:
    return {_key(intent): intent.pod_uid for intent in intents}


def _modes_of(intents: Iterable[LedgerEntry | EvictionIntent]) -> dict[Key, Mode]:
    return {_key(intent): intent.mode for intent in intents}


def _older(at_s: float | None, kept_since: datetime | None) -> bool:
    """Whether something of that time, in seconds since 1970, may have aged out."""
    return at_s is not None and kept_since is not None and at_s < kept_since.timestamp()


def _name(event: EvictionEvent) -> str:
    return f"intent {event.intent_id} of pod {event.namespace}/{event.pod} on {event.node}"


def _disordered(history: Sequence[StoredEvent], kept_since: datetime | None) -> Iterator[Fault]:
    phases = [stored.event.phase for stored in history]
    name = _name(history[0].event)
    for phase, count in Counter(phases).items():
        if count > 1:
            ids = sorted({stored.event.event_id for stored in history if stored.event.phase == phase})
            yield Fault("doubled", f"{name}: {phase} is in the stream {count} times, as {', '.join(ids)}")
    if sum(phase in FINAL_PHASES for phase in set(phases)) > 1:
        yield Fault("doubled", f"{name} ended more than once: {', '.join(phases)}")
    if [_ORDER[phase] for phase in phases] != sorted(_ORDER[phase] for phase in phases):
        yield Fault("out_of_order", f"{name}: {', '.join(phases)}")
    if _older(history[0].event.sent_at.timestamp(), kept_since):
        return
    if phases[0] != "intended":
        yield Fault("lost", f"{name} begins with {phases[0]}: its first event is not in the stream")
    if "succeeded" in phases and "created" not in phases:
        yield Fault("lost", f"{name} succeeded without having been created")


def _evicted_twice(events: Sequence[StoredEvent]) -> Iterator[Fault]:
    intents: dict[tuple[str, str], set[str]] = defaultdict(set)
    names: dict[tuple[str, str], str] = {}
    for stored in events:
        event = stored.event
        if event.phase == "succeeded":
            intents[(event.node, event.pod_uid)].add(event.intent_id)
            names[(event.node, event.pod_uid)] = f"{event.namespace}/{event.pod} ({event.pod_uid})"
    for key, found in intents.items():
        if len(found) > 1:
            yield Fault("doubled", f"pod {names[key]} was evicted by {len(found)} intents: {', '.join(sorted(found))}")


def _wrong_pods(by_intent: Mapping[Key, Sequence[StoredEvent]], meant: Mapping[Key, str]) -> Iterator[Fault]:
    """Where neither stream nor ledger has the intent any more, its events must at least agree with each other."""
    for identity, history in by_intent.items():
        uid = meant.get(identity, history[0].event.pod_uid)
        for stored in history:
            if stored.event.pod_uid != uid:
                what = f"event {stored.event.event_id} names UID {stored.event.pod_uid}, its intent {uid}"
                yield Fault("wrong_pod", what)


def _wrong_modes(by_intent: Mapping[Key, Sequence[StoredEvent]], modes: Mapping[Key, Mode]) -> Iterator[Fault]:
    """Check that a rehearsal stays one to its end, and ends no pod."""
    for key, history in by_intent.items():
        mode = modes.get(key, history[0].event.mode)
        for stored in history:
            event = stored.event
            if event.mode != mode:
                yield Fault("wrong_mode", f"event {event.event_id} says {event.mode}, its intent {mode}")
            # Known to the ledger or the stream of intents: events by themselves may be there to try a subscriber.
            elif key in modes and mode != "enforce" and event.phase in ("created", "succeeded"):
                yield Fault("wrong_mode", f"{_name(event)} is a rehearsal ({mode}), and {event.phase} says otherwise")


def _lost(
    by_intent: Mapping[Key, Sequence[StoredEvent]], ledger: Sequence[LedgerEntry], kept_since: datetime | None
) -> Iterator[Fault]:
    for entry in ledger:
        if _older(entry.begun_at_s, kept_since):
            continue
        there = {stored.event.event_id for stored in by_intent.get(_key(entry), ())}
        phases = {stored.event.phase for stored in by_intent.get(_key(entry), ())}
        for message, sequence in entry.sent.items():
            if message != entry.intent_id and message not in there:
                yield Fault("lost", f"event {message} was stored as {sequence} and is not in the stream")
        last = PHASE_OF_STEP.get(entry.step)
        # An event that still waits in the outbox is late, not lost.
        known = any(message.startswith(f"{entry.intent_id}/{last}/") for message in {*entry.waiting, *entry.sent})
        if entry.step in FINAL_STEPS and last not in phases and not known:
            yield Fault("lost", f"intent {entry.intent_id} of pod {entry.pod} has {last}, and no event says so")


def _against_intents(
    by_intent: Mapping[Key, Sequence[StoredEvent]],
    intents: Sequence[EvictionIntent],
    ledger: Sequence[LedgerEntry],
    kept_since: datetime | None,
) -> Iterator[Fault]:
    """An intent goes to its stream once, and before the pod is touched."""
    there = Counter(map(_key, intents))
    for (node, identity), count in there.items():
        if count > 1:
            yield Fault("doubled", f"intent {identity} of {node} is in the stream {count} times")
    for entry in ledger:
        if entry.intent_id in entry.sent and not there[_key(entry)] and not _older(entry.begun_at_s, kept_since):
            sequence = entry.sent[entry.intent_id]
            yield Fault("lost", f"intent {entry.intent_id} was stored as {sequence} and is not in the stream")
    known = there.keys() | _uids_of(ledger).keys()
    for key, history in by_intent.items():
        first = history[0].event
        evicts = any(stored.event.phase == "created" for stored in history)
        if evicts and key not in known and not _older(first.sent_at.timestamp(), kept_since):
            yield Fault("wrong_pod", f"{_name(first)} evicts, and no such intent was ever written")
