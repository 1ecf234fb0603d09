"""What each answer to a call rules, for a node's evictor and for central."""

from typing import get_args

import pytest

from shared.contracts.eviction_phases import Phase
from shared.core.evictions.intents import Call, Step
from shared.core.evictions.rulings import OUTCOMES, Ruling, Writer, after_call, while_going
from shared.ports import Outcome

BUDGET = "the pod's disruption budget allows no eviction now: no room"


@pytest.mark.parametrize(
    ("outcome", "writer", "step", "detail", "phase"),
    [
        ("accepted", "node", "accepted", "", "created"),
        ("accepted", "central", "accepted", "no room", "created"),
        ("gone", "node", "cancelled", "the pod was gone before its eviction began", "cancelled"),
        ("gone", "central", "succeeded", "no room", "succeeded"),
        ("wait", "node", "cancelled", BUDGET, "cancelled"),
        ("wait", "central", None, "no room", None),
        ("refused", "node", "refused", "no room", "refused"),
        ("refused", "central", "refused", "no room", "refused"),
        ("failed", "node", "failed", 'error when evicting pod "large": no room', "failed"),
        ("failed", "central", "failed", "no room", "failed"),
        ("unknown", "node", None, "no room", None),
        ("unknown", "central", None, "no room", None),
    ],
)
def test_each_outcome_means_one_step_for_each_writer(
    outcome: Outcome, writer: Writer, step: Step | None, detail: str, phase: Phase | None
) -> None:
    call = Call("evict", outcome, "no room")
    ruling = after_call(call, "large", writer)
    assert ruling == Ruling(step, detail, (call,))
    assert ruling.phase == phase


def test_the_table_knows_every_outcome_that_an_actuator_gives() -> None:
    assert set(OUTCOMES) == set(get_args(Outcome))
    assert {frozenset(by_writer) for by_writer in OUTCOMES.values()} == {frozenset(get_args(Writer))}


def test_a_pod_that_is_gone_after_an_earlier_call_was_evicted_by_it() -> None:
    call = Call("evict", "gone")
    assert after_call(call, "large", "node", called_before=True) == Ruling("accepted", "", (call,))


def test_a_refusal_without_words_still_says_something_in_the_ledger() -> None:
    call = Call("evict", "refused")
    assert after_call(call, "large", "node").detail == "refused"
    assert after_call(call, "large", "central").detail == ""


def test_an_answer_with_braces_is_only_text() -> None:
    assert after_call(Call("evict", "failed", "{pod} {"), "a", "node").detail == 'error when evicting pod "a": {pod} {'


@pytest.mark.parametrize("standing", ["running", "terminating"])
def test_only_a_pod_that_is_gone_was_evicted(standing: str) -> None:
    assert while_going("gone", 100.0, 10.0) == "succeeded"
    assert while_going(standing, 9.9, 10.0) is None
    assert while_going(standing, 10.0, 10.0) == "failed"


@pytest.mark.parametrize("waited_s", [0.0, 10.0, 3600.0])
def test_no_time_alone_ends_the_eviction_of_a_pod_that_nobody_could_look_up(waited_s: float) -> None:
    assert while_going("unknown", waited_s, 10.0) is None
