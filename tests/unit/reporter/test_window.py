"""A window over samples: its aggregate, its lifetime, its steps, and laws."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.reporter.core.window import Window, WindowRules, moved
from services.reporter.whatif.smooth_window import WindowQuestion, WindowStep, smooth_window

samples = st.lists(st.tuples(st.floats(0, 60), st.floats(-1e6, 1e6)), max_size=30)
windows = st.builds(
    WindowRules,
    size=st.integers(1, 6),
    ttl_s=st.none() | st.floats(1, 300),
    percentile=st.none() | st.floats(0, 100),
    min_step=st.floats(0, 10),
    max_step=st.none() | st.floats(10, 1000),
)


def values(rules: WindowRules, steps: list[tuple[float, float]]) -> list[float | None]:
    """The window's value after each sample; a step is the time since the one before, and the sample."""
    window, now_s, found = Window(), 0.0, []
    for after_s, sample in steps:
        now_s += after_s
        window = moved(window, rules, now_s, sample)
        found.append(window.value)
    return found


@pytest.mark.parametrize(
    ("rules", "steps", "want"),
    [
        pytest.param(WindowRules(3), [(1, 1), (1, 2), (1, 6), (1, 10)], [None, None, 3, 6], id="average"),
        pytest.param(
            WindowRules(4, percentile=50), [(1, 4), (1, 1), (1, 3), (1, 2)], [None] * 3 + [2], id="percentile"
        ),
        pytest.param(WindowRules(2, percentile=0), [(1, 4), (1, 1)], [None, 1], id="at least the first"),
        pytest.param(WindowRules(2, ttl_s=10), [(0, 4), (10, 2)], [None, None], id="as old as its time: gone"),
        pytest.param(
            WindowRules(2, ttl_s=10), [(0, 4), (9, 2), (90, 8), (1, 8)], [None, 3, 3, 8], id="the last value stays"
        ),
        pytest.param(WindowRules(1, max_step=4), [(1, 0), (1, 10), (1, -10)], [0, 4, 0], id="cut to the largest step"),
        pytest.param(WindowRules(1, max_step=4), [(1, 99)], [99], id="the first value is not cut"),
        pytest.param(WindowRules(1, min_step=2), [(1, 5), (1, 6), (1, 7), (1, 8)], [5, 5, 7, 7], id="small changes"),
        pytest.param(WindowRules(1, min_step=0.3), [(1, 4.0), (1, 4.3)], [4.0, 4.3], id="exactly the smallest step"),
    ],
)
def test_the_value_of_a_window(rules: WindowRules, steps: list[tuple[float, float]], want: list[float | None]) -> None:
    assert values(rules, steps) == want


@given(windows, samples)
def test_a_value_once_there_stays_and_moves_by_no_more_than_the_largest_step(
    rules: WindowRules, steps: list[tuple[float, float]]
) -> None:
    found = [value for value in values(rules, steps) if value is not None]
    assert len(found) in (0, *range(len(steps) - rules.size + 2))
    if rules.max_step is not None:
        for before, after in itertools.pairwise(found):
            assert abs(after - before) <= rules.max_step * (1 + 1e-9) + 1e-6


@given(windows, samples)
def test_a_value_lies_among_the_samples(rules: WindowRules, steps: list[tuple[float, float]]) -> None:
    found = [value for value in values(rules, steps) if value is not None]
    if found:
        low, high = min(sample for _, sample in steps), max(sample for _, sample in steps)
        assert min(found) >= low - 1e-6
        assert max(found) <= high + 1e-6


@given(windows, st.permutations([1.0, 2.0, 4.0, 8.0, 16.0]))
def test_the_order_of_samples_inside_a_window_means_nothing(rules: WindowRules, order: list[float]) -> None:
    rules = WindowRules(5, percentile=rules.percentile)
    assert values(rules, [(1, sample) for sample in order])[-1] == values(rules, [(1, 2.0**n) for n in range(5)])[-1]


@given(windows, st.floats(-1e6, 1e6))
def test_a_window_that_begins_full_has_its_value_at_once(rules: WindowRules, sample: float) -> None:
    window = Window.full_of(sample, 0.0, rules)
    assert window.value == sample
    assert math.isclose(present(moved(window, rules, 0.0, sample).value), sample, rel_tol=1e-12)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        pytest.param({"steps": [{"t_s": 1.0, "value": 1.0}, {"t_s": 0.0, "value": 1.0}]}, "t_s goes back", id="time"),
        pytest.param({"aggregate": "percentile"}, "percentile: needed", id="no percentile"),
        pytest.param({"window_samples": 0}, "window_samples", id="no window"),
    ],
)
def test_a_window_that_cannot_be_is_refused(inputs: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        WindowQuestion.model_validate({"window_samples": 2, "aggregate": "avg", "steps": []} | inputs)


def test_the_kind_ignores_a_percentile_that_is_not_asked_for() -> None:
    steps = [WindowStep(t_s=0.0, value=1.0), WindowStep(t_s=1.0, value=3.0)]
    question = WindowQuestion(window_samples=2, aggregate="avg", percentile=100.0, steps=steps)
    assert [step.value for step in smooth_window(question).steps] == [None, 2.0]
