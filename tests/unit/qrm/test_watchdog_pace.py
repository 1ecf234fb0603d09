"""How often the lease's watchdog looks: seldom while a lease runs, never later than its end."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.qrm.adapters.lease.watchdog import LONG_TICK_S, TICK_S, pause_s


@given(st.floats(min_value=0.001, max_value=1e6))
def test_no_look_comes_later_than_the_end_of_the_lease_or_a_long_tick(due_in_s: float) -> None:
    assert 0 < pause_s(due_in_s) <= min(due_in_s, LONG_TICK_S)


@pytest.mark.parametrize(
    ("due_in_s", "pause"),
    [
        pytest.param(10.0, LONG_TICK_S, id="a fresh lease of the default length: four looks and not twenty"),
        pytest.param(4.0, 1.0, id="nearer to its end more often"),
        pytest.param(1.0, TICK_S, id="a short one as often as none"),
        pytest.param(0.1, 0.1, id="just before its end"),
        pytest.param(math.inf, TICK_S, id="no lease, or its floor is in force: the next one may be short"),
        pytest.param(0.0, TICK_S, id="due, and the floor could not be applied"),
        pytest.param(-3.0, TICK_S, id="overdue"),
    ],
)
def test_the_pause_follows_what_is_left_of_the_lease(due_in_s: float, pause: float) -> None:
    assert pause_s(due_in_s) == pause
