"""What is told of an offer that moves: laws over any sequence of allocations."""

import pytest
from fixture_types import NewAllocation
from hypothesis import given
from hypothesis import strategies as st

from services.reporter.core.field import Offered
from services.reporter.core.offer_smoother import OfferSmoother
from services.reporter.core.smoothing import SmoothingRules
from services.reporter.core.window import WindowRules
from services.reporter.reclaimed_node_offer import ReclaimedNodeOffer
from services.reporter.settings import ReporterSettings

PERIOD_S = 5.0
looks = st.lists(
    st.tuples(st.floats(0, 20), st.integers(0, 500_000), st.booleans()), min_size=1, max_size=30
)  # seconds since the look before, milli-cores in force, whether they are fresh


@given(looks, st.sampled_from([5.0, 15.0, 60.0]), st.integers(1, 100_000))
def test_told_is_never_more_than_applied_and_rises_by_a_step_in_a_period_at_most(
    looks: list[tuple[float, int, bool]], window_s: float, step: int
) -> None:
    smoother = OfferSmoother(SmoothingRules(WindowRules.over(PERIOD_S, window_s, max_step=step)), PERIOD_S)
    before, now_s, risen_s = None, 0.0, float("-inf")
    for after_s, applied, fresh in looks:
        now_s += after_s
        told = smoother.smoothed(applied, now_s, may_rise=fresh)
        assert 0 <= told <= applied
        if before is None or applied < before:
            assert told == applied
        elif told > before:
            assert fresh
            assert told - before <= step + 1
            assert now_s - risen_s >= PERIOD_S
            risen_s = now_s
        before = told


@given(st.integers(0, 1 << 45), st.integers(0, 1 << 45))
def test_what_stays_is_told_whole_in_the_end(before: int, after: int) -> None:
    rules = SmoothingRules(WindowRules.over(PERIOD_S, 15.0, max_step=1 << 44))
    smoother = OfferSmoother(rules, PERIOD_S)
    smoother.smoothed(before, 0.0, may_rise=True)
    told = [smoother.smoothed(after, PERIOD_S * n, may_rise=True) for n in range(1, 10)]
    assert told[-1] == after
    assert told == sorted(told)


def test_nothing_is_told_before_the_first_allocation() -> None:
    offers = ReclaimedNodeOffer(ReporterSettings())
    assert offers.smoothed(None, 0.0, fresh=False) is None
    assert offers.state() is None


@pytest.mark.parametrize(
    ("withheld", "reported"),
    [
        (Offered(0, 0), Offered(4000, 4 << 30)),
        (Offered(500, 1 << 30), Offered(3500, 3 << 30)),
        (Offered(4001, (4 << 30) + 1), Offered(0, 0)),
    ],
)
def test_what_was_sold_to_others_is_not_reported_and_the_first_real_offer_is_as_it_is(
    allocation: NewAllocation, withheld: Offered, reported: Offered
) -> None:
    offer = ReclaimedNodeOffer(ReporterSettings())
    assert offer.smoothed(None, 0.0, fresh=True) is None
    floor = allocation(status="floor", reclaimed_cpu_millis=10, reclaimed_memory_bytes=10)
    offer.smoothed(floor, 1.0, fresh=True, withheld=withheld)
    given = {"reclaimed_cpu_millis": 4000, "reclaimed_memory_bytes": 4 << 30}
    assert offer.smoothed(allocation(**given), 2.0, fresh=True, withheld=withheld) == reported
    more = allocation(reclaimed_cpu_millis=8000, reclaimed_memory_bytes=8 << 30)
    assert offer.smoothed(more, 100.0, fresh=False, withheld=withheld) == reported, "a stale one raises nothing"
    fallen = Offered(min(10, reported.cpu_millis), min(10, reported.memory_bytes))
    assert offer.smoothed(floor, 101.0, fresh=False) == fallen, "a fall counts, however old"
    assert offer.smoothed(None, 102.0, fresh=False) == fallen
