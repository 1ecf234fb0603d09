"""The audit finds every way in which a history can be broken, and nothing in one that is not."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.eviction import EvictionEvent, EvictionIntent
from shared.contracts.eviction_phases import Phase
from shared.contracts.ids import intent_id
from shared.core.evictions.audit import Audit, LedgerEntry, StoredEvent, StreamStart, audit

WHOLE_LIVES: tuple[tuple[Phase, ...], ...] = (
    ("intended", "created", "succeeded"),
    ("intended", "created", "failed"),
    ("intended", "refused"),
    ("intended", "cancelled"),
    ("intended", "failed"),
)
OPEN_LIVES: tuple[tuple[Phase, ...], ...] = (("intended",), ("intended", "created"))


def facts(number: int) -> dict[str, object]:
    uid = f"{number:08x}"
    return {
        "node": "n", "boot_id": "0" * 8, "seq": 1, "sent_at": datetime(2026, 1, 1, tzinfo=UTC), "namespace": "default",
        "intent_id": intent_id("n", uid, "p", number), "pod": f"pod-{number}", "pod_uid": uid, "qos": "reclaimed_cores",
        "plugin": "p", "scope": "memory",
    }  # fmt: skip


def event(number: int, phase: Phase, **other: object) -> EvictionEvent:
    return EvictionEvent.model_validate({**facts(number), "phase": phase, **other})


def intent(number: int) -> EvictionIntent:
    return EvictionIntent.model_validate(facts(number) | {"episode": number})


def stored(events: Sequence[EvictionEvent], first: int = 1) -> list[StoredEvent]:
    return [StoredEvent(first + place, one) for place, one in enumerate(events)]


def life(number: int, phases: Sequence[Phase]) -> list[EvictionEvent]:
    return [event(number, phase) for phase in phases]


def kinds(found: Audit) -> list[str]:
    return [fault.kind for fault in found.faults]


def entry(number: int, phases: Sequence[Phase], first: int = 1, waiting: Sequence[Phase] = ()) -> LedgerEntry:
    events = life(number, [*phases, *waiting])
    phase = events[-1].phase
    step = "accepted" if phase == "created" else phase
    sent = {one.event_id: first + place for place, one in enumerate(events[: len(phases)])}
    open_ids = frozenset(one.event_id for one in events[len(phases) :])
    return LedgerEntry(events[0].intent_id, events[0].pod_uid, events[0].pod, step, open_ids, sent, node="n")


@given(st.lists(st.sampled_from([*WHOLE_LIVES, *OPEN_LIVES]), max_size=6), st.randoms(use_true_random=False))
def test_whole_lives_in_any_interleaving_are_a_whole_history(lives: list[tuple[Phase, ...]], chance: Random) -> None:
    queues = [life(number, phases) for number, phases in enumerate(lives)]
    mixed = []
    while any(queues):
        mixed.append(chance.choice([queue for queue in queues if queue]).pop(0))
    found = audit(stored(mixed), [intent(number) for number in range(len(lives))])
    assert found.whole
    assert found.intents == found.pods == len(lives)
    assert found.open == sum(phases in OPEN_LIVES for phases in lives)


@given(st.sampled_from(WHOLE_LIVES), st.data())
def test_an_event_that_the_ledger_has_sent_and_the_stream_has_not_is_lost(
    phases: tuple[Phase, ...], data: st.DataObject
) -> None:
    gone = data.draw(st.integers(0, len(phases) - 1))
    there = [one for one in stored(life(1, phases)) if one.sequence != gone + 1]
    assert "lost" in kinds(audit(there, ledger=[entry(1, phases)]))


@given(st.sampled_from(WHOLE_LIVES), st.data())
def test_an_event_that_is_there_twice_is_doubled(phases: tuple[Phase, ...], data: st.DataObject) -> None:
    again = data.draw(st.sampled_from(phases))
    assert "doubled" in kinds(audit(stored([*life(1, phases), event(1, again)])))


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([event(1, "created"), event(1, "intended"), event(1, "succeeded")], "out_of_order"),
        ([*life(1, ("intended", "created", "failed")), event(1, "succeeded", attempt=2)], "doubled"),
        ([event(9, "intended"), event(1, "created"), event(1, "succeeded")], "lost"),
        ([event(9, "intended"), event(1, "intended"), event(1, "succeeded")], "lost"),
        ([*life(1, ("intended", "created", "succeeded")),
          *(event(2, p, pod_uid=facts(1)["pod_uid"]) for p in ("intended", "created", "succeeded"))], "doubled"),
    ],
    ids=["out of order", "ended twice", "no beginning", "nothing between", "one UID evicted twice"],
)  # fmt: skip
def test_a_broken_history_is_named(events: list[EvictionEvent], kind: str) -> None:
    assert kind in kinds(audit(stored(events)))


def test_an_event_for_another_pod_than_its_intent_named() -> None:
    found = audit(stored([event(1, "intended", pod_uid="ffff")]), [intent(1)])
    assert "wrong_pod" in kinds(found)


def test_a_last_step_that_was_never_told_and_waits_nowhere_is_lost() -> None:
    told = entry(1, ("intended", "created"))
    silent = replace(told, step="succeeded")
    assert "lost" in kinds(audit(stored(life(1, ("intended", "created"))), ledger=[silent]))


def test_what_waits_to_be_sent_is_not_lost() -> None:
    waits = entry(1, ("intended",), waiting=("created", "succeeded"))
    found = audit(stored(life(1, ("intended",))), ledger=[waits])
    assert found.whole
    assert found.waiting == 2


BEFORE, NOW = datetime(2025, 12, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
SINCE = StreamStart(datetime(2025, 12, 20, tzinfo=UTC), datetime(2025, 12, 25, tzinfo=UTC))


def test_what_has_aged_out_of_the_streams_is_not_lost() -> None:
    old = replace(entry(1, ("intended", "created", "succeeded")), begun_at_s=BEFORE.timestamp())
    kept = stored(life(2, ("intended", "refused")), first=100)
    assert audit(kept, [], ledger=[old], kept=SINCE).whole
    half = stored([event(1, "created", sent_at=BEFORE), event(1, "succeeded"), *life(2, ("intended", "refused"))])
    assert audit(half, [], ledger=[replace(old, sent={})], kept=SINCE).whole
    assert not audit(half, [], ledger=[replace(old, sent={})]).whole


@given(st.sampled_from(WHOLE_LIVES), st.data())
def test_the_oldest_event_of_a_stream_is_missed_as_well(phases: tuple[Phase, ...], data: st.DataObject) -> None:
    gone = data.draw(st.integers(0, len(phases) - 1))
    left = life(1, phases)
    del left[gone]
    there = stored([*left, *life(2, ("intended", "refused"))], first=2)
    whole = replace(entry(1, phases), begun_at_s=NOW.timestamp())
    assert "lost" in kinds(audit(there, ledger=[whole], kept=SINCE))


@given(st.sampled_from(WHOLE_LIVES), st.data())
def test_an_event_told_again_under_another_id_is_doubled(phases: tuple[Phase, ...], data: st.DataObject) -> None:
    again = data.draw(st.sampled_from(phases))
    assert "doubled" in kinds(audit(stored([*life(1, phases), event(1, again, attempt=7)])))


@given(st.sampled_from(WHOLE_LIVES), st.data())
def test_an_event_that_names_another_uid_is_found_with_and_without_intents(
    phases: tuple[Phase, ...], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(phases) - 1))
    told = life(1, phases)
    told[place] = event(1, phases[place], pod_uid="ffff")
    for known in ({"intents": [intent(1)]}, {"ledger": [entry(1, phases)]}, {}):
        assert "wrong_pod" in kinds(audit(stored(told), **known))


def test_an_eviction_that_no_intent_named_is_found_until_intents_of_its_time_have_aged_out() -> None:
    told = stored(life(1, ("intended", "created", "succeeded")))
    assert kinds(audit(told, [])) == ["wrong_pod"]
    assert audit(told).whole
    assert audit(told, [intent(1)]).whole
    assert audit(told, [], [entry(1, ("intended", "created", "succeeded"))]).whole
    assert audit(told, [], kept=StreamStart(None, datetime(2026, 2, 1, tzinfo=UTC))).whole
    assert audit(stored(life(1, ("intended", "cancelled"))), []).whole, "called off before it was announced"


def test_an_intent_twice_in_its_stream_or_no_more_there() -> None:
    assert kinds(audit([], [intent(1), intent(1)])) == ["doubled"]
    told = stored(life(1, ("intended",)))
    announced = entry(1, ("intended",))
    announced = replace(announced, step="intended", sent={**announced.sent, announced.intent_id: 1})
    assert kinds(audit(told, [], [announced])) == ["lost"]
    assert audit(told, [intent(1)], [announced]).whole


def rehearsal(number: int, *phases: Phase) -> list[EvictionEvent]:
    return [event(number, phase, mode="dry-run") for phase in phases]


def test_rehearsals_are_counted_apart_and_need_no_intent() -> None:
    real = stored(life(1, ("intended", "created", "succeeded")))
    tried = stored([*rehearsal(2, "intended", "cancelled"), *rehearsal(3, "intended", "created", "succeeded")], first=9)
    found = audit([*real, *tried], [intent(1)])
    assert found.whole
    assert (found.events, found.intents, found.pods, found.open) == (3, 1, 1, 0)
    assert (found.rehearsed_events, found.rehearsals) == (5, 2)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(WHOLE_LIVES)), max_size=6))
def test_every_event_is_counted_once_as_real_or_as_rehearsed(lives: list[tuple[bool, tuple[Phase, ...]]]) -> None:
    told = [
        one for n, (real, phases) in enumerate(lives) for one in (life(n, phases) if real else rehearsal(n, *phases))
    ]
    found = audit(stored(told))
    assert found.whole
    assert found.events == sum(len(phases) for real, phases in lives if real)
    assert found.events + found.rehearsed_events == len(told)
    assert (found.intents, found.rehearsals) == (sum(real for real, _ in lives), sum(not real for real, _ in lives))


@pytest.mark.parametrize("known", ["intent", "ledger", "neither"])
def test_one_event_that_says_rehearsal_does_not_hide_an_eviction(known: str) -> None:
    told = life(1, ("intended", "created", "succeeded"))
    told[2] = event(1, "succeeded", mode="dry-run")
    intents = [intent(1)] if known == "intent" else None
    ledger = [entry(1, ("intended", "created", "succeeded"))] if known == "ledger" else []
    found = audit(stored(told), intents, ledger)
    assert kinds(found) == ["wrong_mode"]
    assert (found.events, found.rehearsals) == (3, 0)


def test_a_real_intent_whose_events_all_say_rehearsal_counts_as_real_and_is_a_fault() -> None:
    found = audit(stored(rehearsal(1, "intended", "created", "succeeded")), [intent(1)])
    assert set(kinds(found)) == {"wrong_mode"}
    assert (found.intents, found.rehearsals) == (1, 0)


@pytest.mark.parametrize("phase", ["created", "succeeded"])
def test_a_rehearsal_of_the_ledgers_that_evicts_is_a_fault(phase: Phase) -> None:
    told = rehearsal(1, "intended", "created", "succeeded")[: 2 if phase == "created" else 3]
    known = replace(entry(1, tuple(one.phase for one in told)), mode="dry-run")
    assert "wrong_mode" in kinds(audit(stored(told), ledger=[known]))
    ends = replace(entry(1, ("intended", "cancelled")), mode="dry-run")
    assert audit(stored(rehearsal(1, "intended", "cancelled")), ledger=[ends]).whole


def test_what_cannot_be_read_is_a_fault() -> None:
    assert kinds(audit([], unreadable=["SUBLET_EVENTS 7: no JSON"])) == ["unreadable"]


def test_an_empty_history_is_whole() -> None:
    assert audit([]).whole
