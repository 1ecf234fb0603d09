"""`Horizon`: bounds for longer times than a round, what they claim, and what came true."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.advisor.core.model.coverage import Coverage, newest_case
from services.advisor.core.prediction.coverage import MAX_GAP_S, Claim, Horizon, HorizonRules, claim_of, corrected
from services.advisor.core.prediction.histogram import CPU_CORES, Histogram

RULES = HorizonRules(percentile=95.0, half_life_s=10_000.0)
SPAN_S, ROUND_S = 10.0, 2.0
amounts = st.floats(0, 64)


def lived(needs: list[float], expected_cores: float = 5.0, horizon: Horizon | None = None) -> Horizon:
    horizon = horizon or Horizon()
    for number, need in enumerate(needs):
        horizon = horizon.observe(need, expected_cores, ROUND_S * number, SPAN_S, RULES)
    return horizon


def rises(*cores: float) -> Histogram:
    found = Histogram()
    for rise in cores:
        found = found.add(CPU_CORES.index(rise), 1.0, 0.0)
    return found


@given(st.lists(st.tuples(st.floats(0.1, 0.99), st.booleans(), st.floats(0, 3)), min_size=1, max_size=30))
def test_the_newest_case_is_read_from_what_was_known_before_and_after(cases: list[tuple[float, bool, float]]) -> None:
    coverage = Coverage()
    for claimed, covered, aged in cases:
        before, coverage = coverage, coverage.observe(claimed, covered, aged)
        case = present(newest_case(before, coverage))
        assert case.claimed_ratio == pytest.approx(claimed)
        assert case.is_covered == covered
    assert newest_case(coverage, coverage) is None


def test_without_rises_nothing_is_claimed() -> None:
    assert claim_of(Histogram(), 95.0) == Claim()
    assert lived([5.0]).coverage.claimed_ratio is None


@pytest.mark.parametrize(
    ("seen", "cores", "ratio"),
    [
        pytest.param([2.0], 2.0, 1 / 2, id="of one rise half is claimed"),
        pytest.param([0.0] * 98 + [2.0], 0.025, 98 / 100, id="equal rises share a bound: more than the percentile"),
        pytest.param([0.0] * 90 + [2.0] * 9, 2.0, 99 / 100, id="the largest"),
    ],
)
def test_a_bound_claims_what_the_rises_say_of_a_further_one(seen: list[float], cores: float, ratio: float) -> None:
    claim = claim_of(rises(*seen), 95.0)
    assert claim.rise_cores == pytest.approx(cores, rel=0.05)
    assert claim.ratio == pytest.approx(ratio)


def test_a_look_ahead_counts_the_largest_need_until_it_closes() -> None:
    horizon = lived([5.0, 6.0, 9.0, 5.0, 5.0, 5.0])
    assert horizon.rises.weights == {CPU_CORES.index(4.0): 1.0}
    assert present(horizon.look).since_s == SPAN_S
    assert present(horizon.look).claim.rise_cores == CPU_CORES.ends[CPU_CORES.index(4.0)]


@pytest.mark.parametrize("later_s", [SPAN_S + MAX_GAP_S, -5.0])
def test_a_silence_or_a_clock_that_went_back_closes_it_without_a_rise(later_s: float) -> None:
    horizon = lived([5.0, 6.0]).observe(40.0, 5.0, later_s, SPAN_S, RULES)
    assert horizon.rises.weights == {}
    assert present(horizon.look).since_s == later_s


def test_coverage_forgets() -> None:
    coverage = Coverage().observe(0.9, False, 0.0)
    for _ in range(20):
        coverage = coverage.observe(0.5, True, 1.0)
    assert present(coverage.claimed_ratio) == pytest.approx(0.5, abs=1e-3)
    assert present(coverage.covered_ratio) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_claimed_comes_true_within_a_point(seed: int) -> None:
    chance = Random(seed)
    horizon = lived([5.0 + chance.random() ** 8 * 10 for _ in range(40_000)])
    claimed, covered = present(horizon.coverage.claimed_ratio), present(horizon.coverage.covered_ratio)
    assert horizon.coverage.cases > 1000
    assert covered == pytest.approx(claimed, abs=0.01)


@pytest.mark.parametrize(
    ("covered", "ratio"),
    [
        pytest.param(7.4, 0.9, id="as claimed"),
        pytest.param(8.0, 0.95, id="more came true"),
        pytest.param(6.8, 0.85, id="less came true"),
        pytest.param(10.0, 0.975, id="never a certainty"),
        pytest.param(0.0, 0.2833, id="few of many"),
    ],
)
def test_a_claim_is_corrected_by_what_came_true(covered: float, ratio: float) -> None:
    claim = corrected(Claim(3.0, 0.9), Coverage(10.0, 7.4, covered))
    assert claim.rise_cores == 3.0
    assert claim.ratio == pytest.approx(ratio, abs=1e-4)
    assert corrected(Claim(), Coverage(10.0, 7.4, covered)) == Claim()


def test_a_rise_of_the_first_minutes_does_not_keep_claims_low_for_hours() -> None:
    chance = Random(1)
    horizon = lived([45.0] * 6 + [5.0 + chance.random() for _ in range(120)])
    claimed, covered = present(horizon.coverage.claimed_ratio), present(horizon.coverage.covered_ratio)
    assert covered == 1.0
    # Of n rises, the largest alone says n / (n + 1): 0.12 less than comes true, over the first two dozen cases.
    assert claimed > 0.93


@given(st.lists(amounts, min_size=1, max_size=60), amounts)
def test_it_is_bounded_and_claims_no_more_than_all(needs: list[float], expected_cores: float) -> None:
    horizon = lived(needs * 5, expected_cores)
    assert len(horizon.rises.weights) <= len(CPU_CORES.ends)
    assert 0 <= present(horizon.look).claim.ratio < 1
    assert 0 <= (horizon.coverage.covered_ratio or 0.0) <= 1
