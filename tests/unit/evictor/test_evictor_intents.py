"""The steps of an intent, what it uses up, and the bucket and the record that bound how many begin."""

import pytest
from ledger_world import record

from shared.contracts.mode import Mode
from shared.core.evictions.intents import Record, Step, TokenBucket


@pytest.mark.parametrize(
    ("step", "attempts", "mode", "spends"),
    [
        pytest.param("intended", 0, "enforce", True, id="it may still evict"),
        pytest.param("accepted", 1, "enforce", True, id="it evicts"),
        pytest.param("succeeded", 1, "enforce", True, id="it has evicted"),
        pytest.param("refused", 1, "enforce", True, id="refused after a call, which may have evicted"),
        pytest.param("cancelled", 0, "enforce", False, id="called off before any call"),
        pytest.param("cancelled", 0, "dry-run", True, id="a rehearsal"),
    ],
)
def test_what_may_have_evicted_uses_up_a_budget(step: Step, attempts: int, mode: Mode, spends: bool) -> None:
    made = record(step=step, attempts=attempts)
    intent = made.intent.model_copy(update={"mode": mode})
    assert record(step=step, attempts=attempts).final is (step not in ("intended", "accepted"))
    assert type(made)(intent, made.pod, True, 10.0, step, attempts).spends is spends


def test_calls_are_counted_and_the_time_of_acceptance_stays() -> None:
    asked = record().follow("requested", now_s=11.0).follow("requested", now_s=12.0)
    assert (asked.attempts, asked.accepted_at_s) == (2, None)
    gone = asked.follow("accepted", now_s=13.0).follow("succeeded", now_s=20.0)
    assert (gone.attempts, gone.accepted_at_s) == (2, 13.0)
    with pytest.raises(ValueError, match="'requested' cannot follow 'succeeded'"):
        gone.follow("requested")
    with pytest.raises(ValueError, match="'accepted' cannot follow 'intended'"):
        record().follow("accepted")


def test_an_intent_begins_until_its_deadline_and_never_after_a_reboot() -> None:
    intent = record()
    last_s = intent.opened_at_s + intent.intent.deadline_s
    assert [intent.expired(at_s) for at_s in (intent.opened_at_s - 0.1, intent.opened_at_s, last_s, last_s + 0.1)] == [
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("bucket", "now_s", "left"),
    [
        pytest.param(TokenBucket(600, 0), 0, 9.0, id="more than the capacity, which was lowered"),
        pytest.param(TokenBucket(9.5, 0), 60, 9.0, id="filled up to the capacity"),
        pytest.param(TokenBucket(0, 0), 9.9, None, id="not a whole one yet"),
        pytest.param(TokenBucket(0, 0), 10, 0.0, id="just one"),
        pytest.param(TokenBucket(0, 1000), 50, 4.0, id="a reboot fills it by the new uptime alone"),
    ],
)
def test_a_bucket_gives_whole_tokens_and_never_more_than_it_holds(
    bucket: TokenBucket, now_s: float, left: float | None
) -> None:
    spent = bucket.spend(now_s, capacity=10, per_s=0.1)
    assert spent == (None if left is None else TokenBucket(left, now_s))


def test_the_wait_for_a_token_is_what_is_missing_and_has_not_passed() -> None:
    assert TokenBucket(0.5, 10).wait_s(12, per_s=0.1) == pytest.approx(3)
    assert TokenBucket(0.5, 10).wait_s(99, per_s=0.1) == TokenBucket(2, 10).wait_s(10, per_s=0.1) == 0


@pytest.mark.parametrize(
    ("before", "opened_at_s", "now_s", "without_relief"),
    [
        pytest.param(Record(), 1, 5, 1, id="the first"),
        pytest.param(Record(1, 5), 4, 6, 1, id="of the same round as the last"),
        pytest.param(Record(1, 5), 5, 6, 2, id="of the next round, opened when the last one had ended"),
        pytest.param(Record(1, 5), 4, 5, 1, id="both have ended in one moment"),
        pytest.param(Record(1, 5), None, 6, 2, id="of which it is not known when it was opened"),
        pytest.param(Record(1, 1000), 4, 6, 2, id="after a reboot"),
    ],
)
def test_the_evictions_of_one_round_count_once(
    before: Record, opened_at_s: float | None, now_s: float, without_relief: int
) -> None:
    assert before.after_eviction(now_s, opened_at_s) == Record(without_relief, now_s)
