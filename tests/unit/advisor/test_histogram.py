"""Decaying histograms: percentiles within a bucket of the truth, forgetting within the stated half-lives."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.advisor.core.prediction.histogram import CPU_CORES, EPSILON, MEMORY_BYTES, RATIO, Buckets, Histogram
from services.advisor.core.prediction.peak import MAX_SAMPLE_S, WINDOW_S, Peak, Scale

values = st.floats(0, 1024)
HOUR_S = 3600.0


def test_buckets_are_those_of_the_notes() -> None:
    assert (CPU_CORES.ends[0], CPU_CORES.ends[-1], len(CPU_CORES.ends)) == (0.025, 1024.0, 157)
    assert (MEMORY_BYTES.ends[0], MEMORY_BYTES.ends[-1], len(MEMORY_BYTES.ends)) == (5 << 20, 2 << 40, 204)


@given(value=values)
def test_a_bucket_holds_its_value_and_is_at_most_five_percent_wide(value: float) -> None:
    index = CPU_CORES.index(value)
    end = CPU_CORES.ends[index]
    assert value <= end <= value * RATIO + CPU_CORES.ends[0] + 1e-9
    assert index == 0 or CPU_CORES.ends[index - 1] < value


def test_what_is_larger_than_all_buckets_counts_as_the_largest() -> None:
    assert Buckets((1.0, 2.0)).index(99.0) == 1


def filled(samples: list[tuple[float, float, float]]) -> Histogram:
    histogram = Histogram()
    for value, weight, aged in samples:
        histogram = histogram.add(CPU_CORES.index(value), weight, aged)
    return histogram


def true_percentile(samples: list[tuple[float, float, float]], percentile: float) -> float:
    """The same from the samples themselves, each with its weight of today."""
    weighed, age = [], 0.0
    for value, weight, aged in reversed(samples):
        weighed.append((value, weight * 2.0**-age))
        age += aged
    goal, below = sum(w for _, w in weighed) * percentile / 100, 0.0
    for value, weight in sorted(weighed):
        below += weight
        if below >= goal * (1 - 1e-9):
            return value
    raise AssertionError(samples)


def test_the_weight_above_is_of_what_certainly_lies_above() -> None:
    histogram = filled([(1.0, 2.0, 0.0), (4.2, 1.0, 0.0), (5.0, 1.0, 0.0), (9.0, 3.0, 1.0)])
    assert histogram.weight_above(4.2, CPU_CORES) == 0.5 + 3.0, "the fifth core, half forgotten, and the ninth"
    assert histogram.weight_above(3.5, CPU_CORES) == 4.0
    assert histogram.weight_above(1024.0, CPU_CORES) == 0.0


samples = st.lists(st.tuples(values, st.floats(0.1, 60), st.floats(0, 0.5)), min_size=1, max_size=40)


@given(samples=samples, percentile=st.sampled_from([50.0, 90.0, 95.0, 98.0]))
def test_a_percentile_is_within_a_bucket_of_the_true_one(
    samples: list[tuple[float, float, float]], percentile: float
) -> None:
    """Forgotten buckets held less than a thousandth of the weight, whichever side of the percentile they were on."""
    end = CPU_CORES.ends[present(filled(samples).bucket_at(percentile))]
    low, high = (true_percentile(samples, percentile + shift) for shift in (-0.5, 0.5))
    assert low <= end <= high * RATIO + CPU_CORES.ends[0] + 1e-9


@given(samples=samples)
def test_a_higher_percentile_is_never_lower(samples: list[tuple[float, float, float]]) -> None:
    histogram = filled(samples)
    ends = [present(histogram.bucket_at(p)) for p in (50, 75, 95, 99, 100)]
    assert all(a <= b for a, b in pairwise(ends))


@given(samples=samples)
def test_no_bucket_lives_on_a_vanishing_weight(samples: list[tuple[float, float, float]]) -> None:
    weights = filled(samples).weights
    assert min(weights.values()) >= EPSILON * math.fsum(weights.values()) * (1 - 1e-9)


def test_a_histogram_without_samples_has_no_percentile() -> None:
    assert Histogram().bucket_at(95) is None


SCALE = Scale(CPU_CORES, 95.0, HOUR_S)


def lived(
    peak: Peak, level: float, start_s: float, seconds: float, scale: Scale = SCALE, step_s: float = WINDOW_S
) -> Peak:
    """A peak after so many seconds at one level."""
    for round_ in range(round(seconds / step_s) + 1):
        peak = peak.observe(level, start_s + round_ * step_s, scale)
    return peak


def test_a_new_level_is_seen_also_with_a_half_life_of_days() -> None:
    """A sample is less than 1e-4 of the weight of a long past, and must gather weight all the same."""
    scale = Scale(CPU_CORES, 75.0, 7 * 24 * HOUR_S)
    old = Peak(Histogram({CPU_CORES.index(10.0): scale.half_life_s / math.log(2)}), largest=10.0, value=10.0)
    risen = lived(old, 30.0, WINDOW_S, 2000 * WINDOW_S, scale)
    assert risen.histogram.weights[CPU_CORES.index(30.0)] == pytest.approx(2000 * WINDOW_S, rel=0.05)


@pytest.mark.parametrize("percentile", [90.0, 95.0, 98.0])
def test_a_level_that_has_ended_is_forgotten_after_the_stated_half_lives(percentile: float) -> None:
    scale = Scale(CPU_CORES, percentile, HOUR_S)
    stated = -math.log2(1 - percentile / 100) * HOUR_S
    high = lived(Peak(), 40.0, 0.0, 10 * HOUR_S, scale)
    before = lived(high, 1.0, 10 * HOUR_S, stated - 3 * 60, scale)
    after = lived(before, 1.0, 10 * HOUR_S + stated - 3 * 60 + WINDOW_S, 6 * 60, scale)
    assert present(before.value) >= 40
    assert present(after.value) <= 1.0 * RATIO + 0.025


def test_a_higher_level_counts_once_it_held_for_the_rest_of_the_percentile() -> None:
    """After h half-lives the new level has 1 - 2**-h of the weight: a twentieth after 0.074 of them."""
    low = lived(Peak(), 1.0, 0.0, 10 * HOUR_S)
    assert present(lived(low, 40.0, 10 * HOUR_S, 0.06 * HOUR_S).value) <= 1.1
    assert present(lived(low, 40.0, 10 * HOUR_S, 0.09 * HOUR_S).value) >= 40


@given(figures=st.lists(st.tuples(values, st.floats(0, 120)), min_size=1, max_size=60))
def test_the_whole_peak_lies_between_the_smallest_and_the_largest_figure(figures: list[tuple[float, float]]) -> None:
    peak, now_s = Peak(), 0.0
    for figure, passed_s in figures:
        now_s += passed_s
        peak = peak.observe(figure, now_s, SCALE)
    if peak.value is not None:
        assert min(figures)[0] <= peak.value <= max(figures)[0] * RATIO + 0.025 + 1e-9
    assert len(peak.histogram.weights) <= len(CPU_CORES.ends)


def test_the_largest_figure_of_a_window_is_what_counts_for_it() -> None:
    peak = Peak()
    for now_s, figure in [(0, 1.0), (3, 9.0), (6, 1.0), (10, 1.0)]:
        peak = peak.observe(figure, now_s, SCALE)
    assert set(peak.histogram.weights) == {CPU_CORES.index(9.0)}


def test_a_gap_without_readings_stands_for_a_minute_at_most() -> None:
    peak = lived(Peak(), 1.0, 0.0, 600.0).observe(30.0, 620.0, SCALE).observe(1.0, 620.0 + HOUR_S, SCALE)
    assert peak.histogram.weights[CPU_CORES.index(30.0)] == MAX_SAMPLE_S


def test_a_clock_that_goes_back_opens_a_new_window_and_forgets_nothing() -> None:
    peak = lived(Peak(), 4.0, 1000.0, 100.0)
    back = peak.observe(1.0, 5.0, SCALE)
    assert (back.opened_s, back.value, back.histogram) == (5.0, peak.value, peak.histogram)
