"""The batch work of a replay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.replay.batch import Batch, BatchRules, after_offer

RULES = BatchRules(pod_cores=2.0, evict_after_s=60.0)


def run(offers: list[tuple[float, float]], rules: BatchRules = RULES) -> list[Batch]:
    found, batch = [], Batch()
    for at_s, offer in offers:
        batch = after_offer(batch, offer, at_s, rules)
        found.append(batch)
    return found


@pytest.mark.parametrize(("offer", "pods"), [(0.0, 0), (1.9, 0), (2.0, 1), (7.9, 3), (8.0, 4)])
def test_batch_work_fills_the_offer_with_whole_pods(offer: float, pods: int) -> None:
    assert run([(0.0, offer)])[-1].pods == pods


def test_what_runs_above_the_offer_is_evicted_after_the_patience_and_not_before() -> None:
    found = run([(0.0, 10.0), (10.0, 3.0), (69.9, 3.0), (70.0, 3.0)])
    assert [(batch.pods, batch.evicted) for batch in found] == [(5, 0), (5, 0), (5, 0), (1, 4)]


def test_a_short_dip_evicts_nobody() -> None:
    found = run([(0.0, 10.0), (10.0, 2.0), (60.0, 10.0), (65.0, 2.0), (120.0, 10.0)])
    assert [batch.evicted for batch in found] == [0] * 5


def test_without_patience_pods_go_at_once() -> None:
    assert run([(0.0, 10.0), (1.0, 4.0)], BatchRules(2.0, 0.0))[-1] == Batch(2, None, 3)


@given(
    steps=st.lists(st.tuples(st.floats(0.1, 100), st.floats(0, 64)), max_size=40),
    rules=st.builds(BatchRules, st.floats(0.5, 8), st.floats(0, 120)),
)
def test_laws_of_the_batch_work(steps: list[tuple[float, float]], rules: BatchRules) -> None:
    """Evictions only add up, pods that fit are never evicted, and nothing runs above the offer for too long."""
    at_s, batch, above_since = 0.0, Batch(), None
    for passed_s, offer in steps:
        at_s += passed_s
        before, batch = batch, after_offer(batch, offer, at_s, rules)
        assert batch.evicted >= before.evicted
        if before.cores(rules) <= offer:
            assert batch.evicted == before.evicted
        above = batch.cores(rules) > offer + 1e-6
        above_since = (at_s if above_since is None else above_since) if above else None
        assert above_since is None or at_s - above_since < rules.evict_after_s
