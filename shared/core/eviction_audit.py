"""Is the history of evictions whole? The stream of events, the stream of intents and the ledger, held side by side.

What must be true (DESIGN section 7 rule 4; notes/reliability.md sections 2 and 5): every fact that the ledger holds is
in the stream once; the events of an intent come in the order of its life and end once; no pod UID is evicted twice; and
nobody is evicted whom no intent named.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from shared.contracts.eviction import FINAL_PHASES, EvictionEvent, EvictionIntent, Phase
from shared.core.intents import FINAL_STEPS, PHASE_OF_STEP, Step

Kind = Literal["lost", "doubled", "wrong_pod", "out_of_order", "unreadable"]

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


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is not as it must be."""

    kind: Kind
    what: str


@dataclass(frozen=True, slots=True)
class Audit:
    """Counts, and every fault."""

    events: int
    intents: int
    pods: int
    open: int
    """Intents without a last event; they may still be under way."""
    waiting: int
    """Messages that the ledger has not been able to send yet."""
    faults: tuple[Fault, ...]

    @property
    def whole(self) -> bool:
        """Nothing lost, doubled, mixed up."""
        return not self.faults


def audit(
    events: Sequence[StoredEvent],
    intents: Sequence[EvictionIntent] = (),
    ledger: Sequence[LedgerEntry] = (),
    *,
    first_sequence: int = 1,
) -> Audit:
    """Check a history.

    Args:
        events: what the stream holds, in its order.
        intents: what the stream of intents holds; without any, whom an event names is not checked against them.
        ledger: what the node's ledger holds; without any, the stream is checked by itself.
        first_sequence: the oldest that the stream still keeps: what was stored before has aged out and is not lost.
    """
    by_intent: dict[str, list[StoredEvent]] = defaultdict(list)
    for stored in events:
        by_intent[stored.event.intent_id].append(stored)
    faults = [
        *_doubled(events),
        *(fault for history in by_intent.values() for fault in _disordered(history, first_sequence)),
        *_evicted_twice(events),
        *_wrong_pods(events, intents),
        *_lost(by_intent, ledger, first_sequence),
    ]
    ended = {identity for identity, history in by_intent.items() if any(_final(s.event) for s in history)}
    return Audit(
        events=len(events),
        intents=len(by_intent),
        pods=len({stored.event.pod_uid for stored in events}),
        open=len(by_intent.keys() - ended),
        waiting=sum(len(entry.waiting) for entry in ledger),
        faults=tuple(sorted(faults, key=lambda fault: (fault.kind, fault.what))),
    )


def _final(event: EvictionEvent) -> bool:
    return event.phase in FINAL_PHASES


def _doubled(events: Sequence[StoredEvent]) -> Iterator[Fault]:
    for identity, count in Counter(stored.event.event_id for stored in events).items():
        if count > 1:
            yield Fault("doubled", f"event {identity} is in the stream {count} times")


def _disordered(history: Sequence[StoredEvent], first_sequence: int) -> Iterator[Fault]:
    phases = [stored.event.phase for stored in history]
    name = f"intent {history[0].event.intent_id} of pod {history[0].event.namespace}/{history[0].event.pod}"
    if sum(phase in FINAL_PHASES for phase in set(phases)) > 1:
        yield Fault("doubled", f"{name} ended more than once: {', '.join(phases)}")
    if [_ORDER[phase] for phase in phases] != sorted(_ORDER[phase] for phase in phases):
        yield Fault("out_of_order", f"{name}: {', '.join(phases)}")
    if phases[0] != "intended" and history[0].sequence > first_sequence:
        yield Fault("lost", f"{name} begins with {phases[0]}: its first event is not in the stream")
    if "succeeded" in phases and "created" not in phases and history[0].sequence > first_sequence:
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


def _wrong_pods(events: Sequence[StoredEvent], intents: Sequence[EvictionIntent]) -> Iterator[Fault]:
    uids = {intent.intent_id: intent.pod_uid for intent in intents}
    for stored in events:
        event = stored.event
        meant = uids.get(event.intent_id, event.pod_uid)
        if event.pod_uid != meant:
            yield Fault("wrong_pod", f"event {event.event_id} names UID {event.pod_uid}, its intent {meant}")


def _lost(
    by_intent: Mapping[str, Sequence[StoredEvent]], ledger: Sequence[LedgerEntry], first_sequence: int
) -> Iterator[Fault]:
    for entry in ledger:
        there = {stored.event.event_id for stored in by_intent.get(entry.intent_id, ())}
        phases = {stored.event.phase for stored in by_intent.get(entry.intent_id, ())}
        for message, sequence in entry.sent.items():
            if message != entry.intent_id and message not in there and sequence >= first_sequence:
                yield Fault("lost", f"event {message} was stored as {sequence} and is not in the stream")
        last = PHASE_OF_STEP.get(entry.step)
        known = any(message.startswith(f"{entry.intent_id}/{last}/") for message in {*entry.waiting, *entry.sent})
        aged_out = not phases and first_sequence > 1
        if entry.step in FINAL_STEPS and last not in phases and not known and not aged_out:
            yield Fault("lost", f"intent {entry.intent_id} of pod {entry.pod} has {last}, and no event says so")
