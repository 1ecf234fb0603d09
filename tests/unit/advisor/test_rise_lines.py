"""The bound that holds where CPUs are shared: what it learns, what it is at least, and how often it is exceeded."""

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.advisor.core.prediction.coverage import MAX_GAP_S
from services.advisor.core.prediction.histogram import CPU_CORES
from services.advisor.core.prediction.rise_lines import (
    MOST_SCALE,
    UNSEEN_CPU_RATIO,
    RiseLines,
    SeenRises,
)
from services.advisor.policies.adaptive import AdaptiveSettings

CPUS, ROUND_S = 48, 2.0
HALF_LIFE_S, CAUTION = 10_000.0, 6.0
needs = st.lists(st.floats(0, 48), min_size=1, max_size=40)


def lived(needs: Sequence[float], before: RiseLines | None = None) -> RiseLines:
    lines = before or RiseLines()
    for need in needs:
        at_s = 0.0 if lines.at_s is None else lines.at_s + ROUND_S
        lines = lines.observe(need, at_s, HALF_LIFE_S)
    return lines


def bound(lines: RiseLines, caution: float = CAUTION) -> float:
    return lines.bound_cores(CPUS, caution)


def noise(rounds: int, base: float, height: float, seed: int = 1) -> list[float]:
    chance = Random(seed)
    return [base + (height * chance.random() if chance.random() < 0.1 else 0.0) for _ in range(rounds)]


def test_a_node_that_is_not_known_keeps_a_part_of_the_machine_for_each_unit_of_caution() -> None:
    assert bound(lived([5.0])) == pytest.approx(5.0 + 6 * UNSEEN_CPU_RATIO * CPUS)


def test_a_node_that_never_rises_keeps_less_than_the_least_margin_within_the_hour() -> None:
    assert bound(lived([5.0] * 1800)) < 5.0 + AdaptiveSettings().min_margin_cores


def test_a_node_that_goes_to_and_fro_is_bounded_by_its_upper_level_from_both() -> None:
    chance = Random(3)
    past = lived([10.0 if chance.random() < 0.3 else 2.0 for _ in range(3600)])
    low, high = lived([2.0], past), lived([10.0], past)
    assert 10.0 <= bound(low) < 11.0
    assert 10.0 <= bound(high) < 14.5, "rises of 8 are no rises of the upper level: half of one is kept in any case"


def test_a_level_that_moved_is_bounded_by_its_rises() -> None:
    climbing = [5.0 + number / 200 + (number % 2) for number in range(3600)]
    lines = lived(climbing)
    assert climbing[-1] < bound(lines) < climbing[-1] + 2.5


def test_one_jump_of_a_restless_node_says_no_more_than_it_weighs() -> None:
    calm = lived(noise(600, 10.0, 2.0))
    jumped = lived([30.0, *noise(20, 10.0, 2.0, seed=2)], calm)
    assert bound(jumped) - jumped.need_cores < 12.0, "the jump was 20"


@pytest.mark.parametrize("caution", [3.0, 4.0, 5.0])
@pytest.mark.parametrize("height", [1.0, 4.0, 16.0])
def test_the_need_exceeds_the_bound_in_no_more_rounds_than_is_said(caution: float, height: float) -> None:
    lines, exceeded = lived(noise(3600, 10.0, height)), 0
    after = noise(7200, 10.0, height, seed=4)
    for need in after:
        exceeded += need > bound(lines, caution)
        lines = lived([need], lines)
    assert exceeded / len(after) <= math.exp(-caution) + 3 * math.sqrt(math.exp(-caution) / len(after))


@given(before=needs, now=st.floats(0, 48), more=st.floats(0, 20))
@settings(deadline=None)
def test_more_need_never_lowers_the_bound(before: list[float], now: float, more: float) -> None:
    past = lived(before)
    less, larger = lived([now], past), lived([now + more], past)
    assert now <= bound(less) <= bound(larger) + 1e-9


@given(before=needs, less=st.floats(0, 12), more=st.floats(0, 12))
@settings(deadline=None)
def test_more_caution_never_lowers_the_bound(before: list[float], less: float, more: float) -> None:
    bounds = [bound(lived(before), caution) for caution in sorted((less, more))]
    assert bounds[0] <= bounds[1] + 1e-9


@given(before=needs, factor=st.sampled_from([2.0, 4.0]))
@settings(deadline=None)
def test_the_unit_of_the_weights_decides_nothing(before: list[float], factor: float) -> None:
    past = lived(before)
    tails = tuple(tuple(weight * factor for weight in tail) for tail in past.seen.tails)
    same = replace(past, seen=SeenRises(tails, past.seen.total * factor, past.seen.scale * factor))
    assert bound(lived([7.0], same)) == pytest.approx(bound(lived([7.0], past)))


def test_weights_of_a_long_life_stay_finite() -> None:
    old = lived(noise(600, 10.0, 4.0))
    lines = lived([10.0], replace(old, seen=replace(old.seen, scale=2 * MOST_SCALE)))
    assert lines.seen.scale < 2.0
    assert all(math.isfinite(weight) for tail in lines.seen.tails for weight in tail)


@given(needs)
@settings(deadline=None)
def test_the_state_is_bounded_by_its_buckets_and_every_line_counts_every_rise(before: list[float]) -> None:
    seen = lived(before * 3).seen
    assert all(len(tail) <= len(CPU_CORES.ends) for tail in seen.tails)
    assert [math.fsum(tail) for tail in seen.tails] == pytest.approx([seen.total] * len(seen.tails))


@pytest.mark.parametrize("at_s", [MAX_GAP_S + 7200.0, -1.0], ids=["a silence", "a clock that went back"])
def test_what_is_not_known_is_no_rise(at_s: float) -> None:
    past = lived([5.0] * 100)
    assert past.observe(40.0, at_s, HALF_LIFE_S).seen == past.seen
