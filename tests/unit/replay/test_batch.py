"""The batch work of a replay."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.replay.batch import Batch, BatchRules

RULES = BatchRules(pod_cores=2.0, evict_after_s=60.0, work_s=math.inf)


def run(offers: list[tuple[float, float]], rules: BatchRules = RULES) -> list[tuple[int, int]]:
    """Pods, and pods evicted so far, after each offer; on as many CPUs as they want."""
    found, batch, before_s = [], Batch(rules), 0.0
    for at_s, offer in offers:
        batch.run(at_s - before_s, batch.cores)
        batch.offer(offer, at_s)
        found.append((batch.pods, batch.evicted))
        before_s = at_s
    return found


@pytest.mark.parametrize(("offer", "pods"), [(0.0, 0), (1.9, 0), (2.0, 1), (7.9, 3), (8.0, 4)])
def test_batch_work_fills_the_offer_with_whole_pods(offer: float, pods: int) -> None:
    assert run([(0.0, offer)])[-1] == (pods, 0)


def test_what_runs_above_the_offer_is_evicted_after_the_patience_and_not_before() -> None:
    found = run([(0.0, 10.0), (10.0, 3.0), (69.9, 3.0), (70.0, 3.0)])
    assert found == [(5, 0), (5, 0), (5, 0), (1, 4)]


def test_a_short_dip_evicts_nobody() -> None:
    found = run([(0.0, 10.0), (10.0, 2.0), (60.0, 10.0), (65.0, 2.0), (120.0, 10.0)])
    assert [evicted for _, evicted in found] == [0] * 5


def test_without_patience_pods_go_at_once() -> None:
    assert run([(0.0, 10.0), (1.0, 4.0)], BatchRules(2.0, 0.0))[-1] == (2, 3)


def test_a_pod_ends_after_its_work_and_another_one_starts() -> None:
    batch = Batch(BatchRules(2.0, 60.0, work_s=100.0))
    batch.offer(4.0, 0.0)
    batch.run(100.0, 2.0)  # two pods of 2 cores on 2 CPUs are half as fast
    assert (batch.pods, batch.finished) == (2, 0)
    batch.run(50.0, 4.0)
    assert (batch.pods, batch.finished) == (0, 2)
    batch.offer(4.0, 150.0)
    assert (batch.pods, batch.evicted, batch.wasted_core_s) == (2, 0, 0.0)


def test_the_youngest_go_first_and_what_they_did_is_lost() -> None:
    batch = Batch(BatchRules(2.0, 0.0))
    batch.offer(2.0, 0.0)
    batch.run(100.0, 2.0)
    batch.offer(4.0, 100.0)
    batch.run(10.0, 4.0)
    batch.offer(2.0, 110.0)
    assert (batch.evicted, batch.wasted_core_s, batch.evicted_lives_s) == (1, 20.0, 10.0)
    batch.offer(0.0, 110.0)
    assert (batch.evicted, batch.wasted_core_s, batch.evicted_lives_s) == (2, 240.0, 120.0)


def test_what_ends_in_time_need_not_be_evicted() -> None:
    batch = Batch(BatchRules(2.0, 60.0, work_s=50.0))
    batch.offer(8.0, 0.0)
    batch.offer(2.0, 1.0)
    batch.run(50.0, 8.0)
    batch.offer(2.0, 61.0)
    assert (batch.pods, batch.finished, batch.evicted) == (1, 4, 0)


@given(
    steps=st.lists(st.tuples(st.floats(0.1, 100), st.floats(0, 64), st.floats(0, 1)), max_size=40),
    rules=st.builds(BatchRules, st.floats(0.5, 8), st.floats(0, 120), st.floats(1, 500) | st.just(math.inf)),
)
def test_laws_of_the_batch_work(steps: list[tuple[float, float, float]], rules: BatchRules) -> None:
    """Pods that fit are never evicted, nothing runs above the offer for too long, and no more is lost than was done."""
    at_s, batch, above_since, done_core_s, before = 0.0, Batch(rules), None, 0.0, (0, 0.0)
    for passed_s, offer, speed in steps:
        at_s += passed_s
        done_core_s += passed_s * batch.cores * speed
        batch.run(passed_s, batch.cores * speed)
        fits = batch.cores <= offer
        batch.offer(offer, at_s)
        assert (batch.evicted, batch.wasted_core_s) >= before
        if fits:
            assert (batch.evicted, batch.wasted_core_s) == before
        before = batch.evicted, batch.wasted_core_s
        assert batch.wasted_core_s <= done_core_s + 1e-6
        above = batch.cores > offer + 1e-6
        above_since = (at_s if above_since is None else above_since) if above else None
        assert above_since is None or at_s - above_since < rules.evict_after_s
