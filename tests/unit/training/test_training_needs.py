"""Training sees the past as the policy does."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.prediction.predictor import StepModel
from services.advisor.core.prediction.track import Track, TrackRules
from sublet.training.needs import Needs, needs_of, runs_of, windows

MODEL = StepModel(step_s=10, history_steps=12, horizon_steps=1, coverage=0.95, weights={"max": 1}, margin=1)
gaps = st.one_of(st.floats(0.1, 12), st.floats(0.1, 60), st.just(10.0))


@given(course=st.lists(st.tuples(gaps, st.floats(0, 64)), min_size=1, max_size=80))
def test_the_end_of_a_run_is_the_past_of_a_track_that_saw_the_same(course: list[tuple[float, float]]) -> None:
    readings, now_s = [], 0.0
    for passed_s, need in course:
        now_s += passed_s
        readings.append((now_s, need))
    track = Track(MODEL)
    for at_s, need in readings:
        track = track.observe(need, at_s, TrackRules(1.0, 10, 0.0))
    run = runs_of(readings, MODEL.step_s)[-1]
    assert (*track.past, track.largest)[-12:] == tuple(run[-12:])


def test_needs_are_those_of_all_tenants_in_each_frame(trace: Callable[..., Any]) -> None:
    needs = needs_of("file", trace([2.0, 4.0, 4.0], tenants=4))
    assert needs.interval_s == 10.0
    assert [at_s for at_s, _ in needs.readings] == [0.0, 10.0, 20.0, 30.0]
    assert [need for _, need in needs.readings] == pytest.approx([2.0, 2.0, 4.0, 4.0])


def test_a_single_reading_has_no_interval() -> None:
    assert Needs("file", "node", ((0.0, 1.0),)).interval_s == float("inf")


def test_every_whole_past_is_paired_with_the_largest_need_after_it() -> None:
    assert list(windows([1.0, 5.0, 2.0, 3.0, 4.0], history=2, horizon=2)) == [([1.0, 5.0], 3.0), ([5.0, 2.0], 4.0)]
    assert list(windows([1.0, 2.0, 3.0], history=2, horizon=2)) == []
