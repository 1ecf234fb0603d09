"""The learned predictor: laws of its bound, its past step by step, and when it counts as wrong."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from services.advisor.core.demand.need import need_cores
from services.advisor.core.model.figures import Figures
from services.advisor.core.prediction.predictor import FEATURES, MIN_CORES, StepModel, Weights, features_of
from services.advisor.core.prediction.track import Track, TrackRules, step_of, tracks_of

STEPS = 12
needs = st.floats(0, 128)
pasts = st.lists(needs, min_size=STEPS, max_size=STEPS)
weightings = st.dictionaries(st.sampled_from(sorted(FEATURES)), st.floats(0.001, 2), min_size=1)
RULES = TrackRules(max_miss_ratio=0.1, window_steps=20, return_after_s=100.0)


def model(weights: dict[str, float] | None = None, **over: Any) -> StepModel:
    fields: dict[str, Any] = {
        "step_s": 10.0,
        "history_steps": STEPS,
        "horizon_steps": 2,
        "coverage": 0.95,
        "margin": 1.0,
    }
    return StepModel(weights=weights or {"max": 1.0}, **fields | over)


@given(weights=weightings, past=pasts, extra=needs, at=st.integers(0, STEPS - 1))
def test_more_need_at_any_time_never_lowers_the_bound(
    weights: dict[str, float], past: list[float], extra: float, at: int
) -> None:
    more = [*past[:at], past[at] + extra, *past[at + 1 :]]
    assert model(weights).bound_cores(more) >= model(weights).bound_cores(past) - 1e-9


@given(weights=weightings, past=pasts, factor=st.floats(1, 16))
def test_a_tenant_so_many_times_as_large_gets_so_many_times_the_bound(
    weights: dict[str, float], past: list[float], factor: float
) -> None:
    bound = model(weights).bound_cores(past)
    larger = model(weights).bound_cores([factor * need for need in past])
    assert larger == pytest.approx(factor * bound) or bound == MIN_CORES


def test_each_feature_sums_up_what_its_name_says() -> None:
    past = [float(n) for n in (5, 1, 7, 3, 9, 2, 8, 4, 6, 0, 11, 10)]
    assert dict(zip(FEATURES, features_of(past), strict=True)) == {
        "last": 10, "max_3": 11, "max_6": 11, "max_12": 11, "max": 11, "mean_3": 7, "mean_12": 5.5, "mean": 5.5,
        "second": 10, "upper_quarter": 9, "median": 6, "min": 0,
    }  # fmt: skip


def test_the_margin_is_on_top_and_the_idle_keep_a_little() -> None:
    assert model(margin=1.2).bound_cores([2.0] * STEPS) == pytest.approx(2.4)
    assert model().bound_cores([0.0] * STEPS) == MIN_CORES


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"weights": {"max": -0.1}}, id="a weight below 0 would let more need lower the bound"),
        pytest.param({"weights": {"maximum": 1.0}}, id="an unknown feature"),
        pytest.param({"weights": {"max": 0.0}}, id="no weight at all"),
        pytest.param({"margin": 0.9}, id="a margin that narrows"),
        pytest.param({"margin": math.nan}, id="a margin that is no number"),
        pytest.param({"coverage": 1.0}, id="a promise that cannot be kept"),
        pytest.param({"history_steps": 3}, id="a past shorter than the features"),
        pytest.param({"step_s": 0}, id="no step"),
    ],
)
def test_weights_that_make_no_sense_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model(**fields)


def test_a_file_holds_each_step_once_ascending() -> None:
    with pytest.raises(ValidationError, match="ascending"):
        Weights(models=(model(step_s=300), model(step_s=10)))
    with pytest.raises(ValidationError, match="ascending"):
        Weights(models=(model(), model()))


@pytest.mark.parametrize(
    ("figures", "cores"),
    [
        (Figures(2.0, 5.0, 9.0), 5.0),
        (Figures(2.0, None, 9.0), 2.0),
        (Figures(2.0, 1.0, None), 2.0),
        (Figures(0.0), 0.0),
        (Figures(None, 5.0, 5.0), None),
    ],
)
def test_need_is_use_or_what_queues(figures: Figures, cores: float | None) -> None:
    assert need_cores(figures.usage_cores, figures.load1) == cores


def followed(readings: list[tuple[float, float]], track: Track | None = None, rules: TrackRules = RULES) -> Track:
    """A track after readings of (time, need)."""
    track = Track(model()) if track is None else track
    for at_s, need in readings:
        track = track.observe(need, at_s, rules)
    return track


def steady(seconds: int, need: float = 1.0, start_s: float = 0.0, every_s: float = 5.0) -> list[tuple[float, float]]:
    return [(start_s + every_s * n, need) for n in range(1, round(seconds / every_s) + 1)]


@pytest.mark.parametrize(("at_s", "step"), [(0.0, -1), (0.1, 0), (10.0, 0), (10.1, 1), (20.0, 1)])
def test_a_reading_belongs_to_the_step_that_it_speaks_for(at_s: float, step: int) -> None:
    assert step_of(at_s, 10.0) == step


def test_the_past_is_the_largest_need_of_each_step() -> None:
    track = followed([(5, 1.0), (10, 3.0), (15, 2.0), (20, 1.5), (25, 9.0)])
    assert (track.past, track.largest) == ((3.0, 2.0), 9.0)


def test_one_step_without_a_reading_repeats_the_one_before() -> None:
    assert followed([(10, 1.0), (20, 2.0), (40, 3.0), (50, 4.0)]).past == (1.0, 2.0, 2.0, 3.0)


@pytest.mark.parametrize(
    "later_s", [pytest.param(140.0, id="two steps without a reading"), pytest.param(5.0, id="the clock went back")]
)
def test_a_past_with_a_hole_begins_anew(later_s: float) -> None:
    track = followed(steady(110))
    track = track.observe(4.0, later_s, RULES)
    assert (track.past, track.pending, track.largest, track.is_whole) == ((), (), 4.0, False)


@given(readings=st.lists(st.tuples(st.floats(-20, 60), needs), max_size=80))
def test_a_track_stays_small_whatever_comes(readings: list[tuple[float, float]]) -> None:
    now_s, track = 0.0, Track(model())
    for passed_s, need in readings:
        now_s += passed_s
        track = track.observe(need, now_s, RULES)
        assert len(track.past) <= STEPS
        assert len(track.pending) <= track.model.horizon_steps
        assert len(track.outcomes) <= RULES.window_steps


def test_a_bound_is_given_once_the_past_is_whole() -> None:
    almost = followed(steady(10 * (STEPS - 1)))
    assert not almost.is_whole
    whole = almost.observe(5.0, 10.0 * (STEPS - 1) + 5, RULES)
    assert whole.is_whole
    assert whole.bound_cores() == 5.0, "the open step counts"


def lived(pattern: list[float], rules: TrackRules = RULES, track: Track | None = None, start_s: float = 0.0) -> Track:
    """One reading a step."""
    return followed([(start_s + 10.0 * (n + 1), need) for n, need in enumerate(pattern)], track, rules)


def test_a_need_within_its_bound_is_no_miss() -> None:
    track = lived([1.0] * 60)
    assert len(track.outcomes) == RULES.window_steps
    assert track.misses == 0
    assert not track.is_wrong(600.0, RULES)


def test_each_prediction_whose_horizon_a_need_exceeded_is_a_miss() -> None:
    """A jump is in the horizon of as many predictions as the horizon has steps."""
    track = lived([*([1.0] * 20), 2.0, *([1.0] * 5)])
    assert track.misses == track.model.horizon_steps


def test_more_misses_than_the_stated_part_and_the_predictor_is_wrong_until_it_was_right_for_long_enough() -> None:
    """Of 20 predictions 2 may miss: the second jump is one too many. Bounds are the largest need of the past 12 steps:
    each jump is higher than all before."""
    first = lived([*([1.0] * 20), 2.0, *([1.0] * 4)])
    assert not first.is_wrong(250.0, RULES)
    second = lived([3.0, 1.0, 1.0, 1.0], track=first, start_s=250.0)
    assert second.misses == 4
    assert second.is_wrong(290.0, RULES)
    calm = lived([1.0] * 40, track=second, start_s=290.0)
    assert calm.misses == 0
    assert calm.wrong_s < 690.0 - RULES.return_after_s
    assert not calm.is_wrong(690.0, RULES)
    assert calm.is_wrong(calm.wrong_s + RULES.return_after_s - 1, RULES)
    assert not calm.is_wrong(calm.wrong_s + RULES.return_after_s, RULES)


def test_misses_are_remembered_over_a_hole_in_the_past() -> None:
    track = lived([*([1.0] * 20), 2.0, 1.0, 1.0])
    assert track.observe(1.0, 1000.0, RULES).misses == track.misses == 2


def test_tracks_go_on_while_their_model_is_the_same() -> None:
    fine, coarse = model(), model(step_s=300.0)
    before = (followed(steady(100)), Track(coarse))
    again = tracks_of([StepModel.model_validate(fine.model_dump()), coarse], before)
    assert again == before
    assert tracks_of([model(margin=2.0), coarse], before) == (Track(model(margin=2.0)), before[1])
    assert tracks_of([coarse], before) == (before[1],)
