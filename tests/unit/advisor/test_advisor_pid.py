"""Corrections by indicators: deadband, limits, sums over time, and laws."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.demand.pid import Controller, Gains, Indicator, SizeRange, corrected
from services.advisor.whatif.cpu.rama import RamaQuestion, provision_rama

GAINS = Gains(kpp=0.1, kpn=0.04, deadband_upper=0.05, deadband_lower=0.2)
SIZES = SizeRange(40, 4, 90)


def asked(
    current: float,
    target: float = 1.0,
    gains: Gains = GAINS,
    sizes: SizeRange = SIZES,
    before: Controller | None = None,
) -> tuple[Controller, float]:
    after, cores = corrected({"x": Indicator(current, target, gains)}, sizes, {} if before is None else {"x": before})
    return after["x"], cores["x"]


@pytest.mark.parametrize(
    ("current", "cores"),
    [
        pytest.param(2.0, 40 + 0.1 * 90 * math.log(2), id="twice the target"),
        pytest.param(0.5, 40 - 0.04 * 90 * math.log(2) if 0.04 * 90 * math.log(2) < 2 else 38, id="half the target"),
        pytest.param(1.0, 40, id="the target"),
        pytest.param(1.05, 40, id="the upper edge of the deadband is inside"),
        pytest.param(0.8, 40, id="the lower edge as well"),
        pytest.param(1.06, 40 + 9 * math.log(1.06), id="above the deadband"),
        pytest.param(0.79, 40 + 3.6 * math.log(0.79), id="below the deadband"),
        pytest.param(1e9, 50, id="never more than the upper adjustment"),
        pytest.param(0.0, 38, id="a figure of 0: never more than the lower adjustment"),
    ],
)
def test_one_indicator(current: float, cores: float) -> None:
    assert asked(current)[1] == pytest.approx(cores)


def test_corrections_add_up_while_the_size_stays_and_begin_anew_when_it_changes() -> None:
    one, cores = asked(1.5)
    step = cores - 40
    assert asked(1.5, before=one)[1] == pytest.approx(40 + 2 * step)
    assert asked(1.5, sizes=SizeRange(42, 4, 90), before=one)[1] == pytest.approx(42 + step)


def test_an_error_that_grows_asks_for_more_and_one_that_shrinks_for_less_than_its_size_alone() -> None:
    damped = Gains(kpp=0.1, kpn=0.1, kdp=1.0, kdn=1.0)
    alone = 9 * math.log(2)
    assert asked(2.0, gains=damped)[1] == pytest.approx(40 + alone)
    assert asked(2.0, gains=damped, before=Controller(error=math.log(1.5)))[1] > 40 + alone
    assert asked(2.0, gains=damped, before=Controller(error=math.log(4)))[1] < 40 + alone


def test_a_correction_does_not_pile_up_beyond_the_bounds() -> None:
    one, cores = asked(1e9, sizes=SizeRange(88, 4, 90))
    assert (cores, one.adjustment_cores) == (90, 2)


def test_the_most_demanding_indicator_decides_and_without_any_the_size_stays() -> None:
    pid = {"kpp": 0.1, "kpn": 0.1, "kdp": 0, "kdn": 0, "adjustment_upper": 10, "adjustment_lower": -2,
           "deadband_upper": 0, "deadband_lower": 0}  # fmt: skip
    rows = [{"name": n, "current": c, "target": 1.0, "pid": pid} for n, c in (("a", 0.5), ("b", 1.5))]
    bounds = {"current_cores": 40, "lower_cores": 4, "upper_cores": 90}

    def ask(indicators: list[dict[str, Any]]) -> float:
        return provision_rama(RamaQuestion.model_validate(bounds | {"indicators": indicators})).required_cores

    assert ask(rows) == ask(rows[::-1]) == pytest.approx(40 + 9 * math.log(1.5))
    assert ask([]) == 40


gains = st.builds(
    Gains, *[st.floats(0, 5)] * 4, adjustment_upper=st.floats(0, 20), adjustment_lower=st.floats(-20, 0),
    deadband_upper=st.floats(0, 1), deadband_lower=st.floats(0, 0.9),
)  # fmt: skip


@given(st.floats(0, 1e6), st.floats(0.01, 1e6), gains, st.floats(4, 90), st.none() | st.floats(-5, 5))
def test_a_result_is_always_within_the_adjustments_and_the_bounds(
    current: float, target: float, gains: Gains, size: float, error: None
) -> None:
    before = Controller(size, 0.0, error)
    cores = asked(current, target, gains, SizeRange(size, 4, 90), before)[1]
    assert 4 <= cores <= 90
    assert size + gains.adjustment_lower - 1e-9 <= cores <= size + gains.adjustment_upper + 1e-9


@given(st.floats(0.01, 100), st.floats(0, 100), gains)
def test_a_worse_figure_never_asks_for_less(current: float, more: float, gains: Gains) -> None:
    plain = Gains(gains.kpp, gains.kpn, deadband_upper=gains.deadband_upper, deadband_lower=gains.deadband_lower)
    assert asked(current + more, 1.0, plain)[1] >= asked(current, 1.0, plain)[1] - 1e-9
