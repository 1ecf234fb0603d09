"""From requirement to size over time: rounding, step limits, clamp, the stamp of a step down, and laws."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.model.ramp import Ramp, RampLimits
from services.advisor.core.sizing.regulate import regulated, rounded
from services.advisor.whatif.cpu.regulate import RegulateQuestion, regulate

BASE = {"reserved_for_allocate_cores": 4.0, "lower_cpus": 4, "upper_cpus": 44}


def sizes(steps: list[tuple[float, float, int | None]], **fields: Any) -> list[int]:
    rows = [{"t_s": t, "required_cores": float(need), "effective_cpus": now} for t, need, now in steps]
    return [s.size_cpus for s in regulate(RegulateQuestion.model_validate(BASE | fields | {"steps": rows})).steps]


@pytest.mark.parametrize(
    ("steps", "fields", "want"),
    [
        pytest.param([(0, 1, None)], {}, [6], id="even, up"),
        pytest.param([(0, 1, None)], {"even": "off"}, [5], id="not even"),
        pytest.param([(0, 1.01, None)], {"even": "off"}, [6], id="rounded up"),
        pytest.param([(0, -9, None)], {}, [4], id="never below the lower bound"),
        pytest.param([(0, 99, None)], {}, [44], id="never above the upper bound"),
        pytest.param([(0, 99, None)], {"upper_cpus": 43}, [42], id="even again: down, for up leaves the clamp"),
        pytest.param([(0, 99, None)], {"upper_cpus": 43, "even": "before_limits"}, [43], id="odd after the clamp"),
        pytest.param([(0, -9, None)], {"lower_cpus": 5}, [6], id="even again after the clamp: up"),
        pytest.param([(0, 1, None)], {"lower_cpus": 5, "upper_cpus": 5}, [5], id="no even size inside the clamp"),
        pytest.param([(0, 30, 4)], {}, [34], id="growth has no limit"),
        pytest.param([(0, 30, 5)], {"max_ramp_up_step_cpus": 10}, [16], id="a limited step up is rounded again"),
        pytest.param([(0, 30, 5)], {"max_ramp_up_step_cpus": 10, "even": "before_limits"}, [15], id="or stays odd"),
        pytest.param([(0, 1, 20)], {}, [18], id="a step down"),
        pytest.param([(0, 1, 19)], {}, [18], id="a step down from an odd size"),
        pytest.param([(0, 1, 20)], {"max_ramp_down_step_cpus": 3, "even": "before_limits"}, [17], id="odd down"),
        pytest.param([(0, 1, None), (1, 1, None)], {}, [6, 6], id="unknown size in force"),
        pytest.param([(0, 30, None), (1, 1, None)], {}, [34, 6], id="unknown size in force: no limit down either"),
        pytest.param(
            [(0, 30, 40), (5, 1, 38), (10, 1, 36), (34.9, 1, 36), (35, 1, 36)], {}, [38, 36, 36, 36, 34],
            id="the first size is no step down, so a second may follow at once",
        ),
        pytest.param(
            [(0, 36, 40), (5, 1, 40), (10, 20, 38), (36, 1, 38)], {}, [40, 38, 38, 36], id="the wait is for all sizes"
        ),
        pytest.param([(0, 36, 40), (5, 1, 40), (6, 40, 38)], {}, [40, 38, 44], id="growth does not wait"),
        pytest.param(
            [(0, 36, 40), (1, 1, 40), (2, 1, 38)], {"min_ramp_down_period_s": 0}, [40, 38, 36], id="no wait at all"
        ),
        pytest.param([], {}, [], id="no step"),
    ],
)  # fmt: skip
def test_the_size_follows_the_requirement_within_its_limits(
    steps: list[tuple[float, float, int | None]], fields: dict[str, Any], want: list[int]
) -> None:
    assert sizes(steps, **fields) == want


limits = st.builds(
    lambda lower, more, **fields: RampLimits(lower=lower, upper=lower + more, **fields),
    st.integers(0, 20),
    st.integers(0, 60),
    even=st.sampled_from(["off", "before_limits", "after_limits"]),
    max_up_step=st.none() | st.integers(1, 20),
    max_down_step=st.integers(2, 20),
    down_period_s=st.integers(0, 60),
)
times = st.floats(0, 1000)
needs = st.floats(-10, 200)
ramps = st.builds(Ramp, st.integers(0, 80), times)


@given(ramps, limits, times, needs, st.none() | st.integers(0, 80))
def test_a_size_is_always_inside_the_clamp(
    ramp: Ramp, limits: RampLimits, now_s: float, need: float, effective: int | None
) -> None:
    size = regulated(ramp, limits, now_s, rounded(need, limits.even), effective).size
    assert limits.lower <= size <= limits.upper


@given(ramps, limits, times, needs, st.floats(0, 50), st.none() | st.integers(0, 80))
def test_a_larger_need_never_gives_a_smaller_size(
    ramp: Ramp, limits: RampLimits, now_s: float, need: float, more: float, effective: int | None
) -> None:
    less, greater = (
        regulated(ramp, limits, now_s, rounded(n, limits.even), effective).size for n in (need, need + more)
    )
    assert greater >= less


@given(limits, st.lists(st.tuples(st.integers(0, 20), needs), min_size=1, max_size=30))
def test_within_one_period_a_size_falls_by_one_step_at_most(limits: RampLimits, moves: list[tuple[int, float]]) -> None:
    """Rounding to even may take the last thread of a core with it, hence the 1."""
    ramp, now_s, falls = Ramp(limits.upper), 0, []
    for wait_s, need in moves:
        now_s += wait_s
        after = regulated(ramp, limits, now_s, rounded(need, limits.even), ramp.size)
        if after.size < ramp.size:
            assert ramp.size - after.size <= limits.max_down_step + (limits.even == "after_limits")
            falls.append(now_s)
        ramp = after
    assert all(later - earlier >= limits.down_period_s for earlier, later in pairwise(falls))


@given(st.integers(1, 40), st.integers(0, 40), needs)
def test_an_even_size_stays_even_where_the_clamp_allows_it(lower: int, more: int, need: float) -> None:
    limits = RampLimits(lower * 2, (lower + more) * 2, "after_limits")
    assert regulated(Ramp(), limits, 0, rounded(need, limits.even), None).size % 2 == 0


def test_a_step_down_that_is_taken_back_doubles_the_wait_and_one_that_lasts_ends_that() -> None:
    limits = RampLimits(0, 100, max_wait_s=100.0)
    ramp = Ramp(20)
    falls: list[int] = []
    for now_s in range(800):
        # Someone comes back a second after each of the first four steps down, and is gone by the next second.
        wanted = 20 if falls and len(falls) <= 4 and now_s == falls[-1] + 1 else 0
        after = regulated(ramp, limits, now_s, wanted, ramp.size)
        if after.size < ramp.size:
            falls.append(now_s)
        ramp = after
    waits = [later - earlier for earlier, later in pairwise(falls)]
    assert waits == [60, 100, 100, 100, *[100], *[30] * (len(waits) - 5)]


def test_without_a_longest_wait_nothing_is_doubled() -> None:
    """So it is in Katalyst (docs/facts/katalyst-cpu.md#regulator), and in the what-if kind."""
    ramp = regulated(Ramp(20), RampLimits(0, 100), 0, 0, 20)
    ramp = regulated(ramp, RampLimits(0, 100), 1, 20, 18)
    assert regulated(ramp, RampLimits(0, 100), 30, 0, 20).size == 18
