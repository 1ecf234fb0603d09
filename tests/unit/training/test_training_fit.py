"""The fit finds the quantile it is asked for, and the margin keeps its promise."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.prediction.predictor import FEATURES
from sublet.training.fit import Example, example_of, fit, margin_of

STEPS = 12


def examples(count: int, spread: float, seed: int = 1) -> list[Example]:
    """Needs that are an even draw between 1 and 1 + spread times the last need."""
    chance = Random(seed)
    pasts = [[1 + 9 * chance.random() for _ in range(STEPS)] for _ in range(count)]
    return [example_of(past, past[-1] * (1 + spread * chance.random())) for past in pasts]


def covered(weights: list[float], found: list[Example]) -> float:
    return sum(sum(w * f for w, f in zip(weights, e.features, strict=True)) >= e.need for e in found) / len(found)


@pytest.mark.parametrize("quantile", [0.5, 0.8, 0.95])
def test_so_many_needs_lie_below_the_weighted_sum_as_asked(quantile: float) -> None:
    found = examples(4000, spread=1.0)
    weights = fit(found, quantile, seed=0)
    assert covered(weights, examples(2000, 1.0, seed=2)) == pytest.approx(quantile, abs=0.04)
    assert min(weights) >= 0


def test_the_feature_that_tells_the_need_gets_the_weight() -> None:
    weights = dict(zip(FEATURES, fit(examples(4000, spread=0.0), 0.95, seed=0), strict=True))
    assert weights["last"] == max(weights.values())
    assert weights["last"] > 0.8


def test_the_same_seed_gives_the_same_weights() -> None:
    found = examples(500, 1.0)
    assert fit(found, 0.9, seed=3, epochs=4) == fit(found, 0.9, seed=3, epochs=4)
    assert fit(found, 0.9, seed=3, epochs=4) != fit(found, 0.9, seed=4, epochs=4)


def test_nothing_is_learned_from_nothing() -> None:
    with pytest.raises(ValueError, match="no examples"):
        fit([], 0.95, seed=0)


@given(ratios=st.lists(st.floats(0.1, 10), min_size=1, max_size=200), coverage=st.floats(0.5, 0.99))
def test_the_margin_covers_what_was_held_out(ratios: list[float], coverage: float) -> None:
    margin = margin_of(ratios, coverage)
    assert margin >= 1
    assert sum(ratio <= margin + 1e-4 for ratio in ratios) >= min(len(ratios), coverage * len(ratios))


def test_the_margin_never_narrows_and_is_none_without_held_out_examples() -> None:
    assert margin_of([0.5] * 100, 0.95) == 1.0
    assert margin_of([], 0.95) == 1.0


def test_the_margin_is_the_conformal_rank() -> None:
    """Of 19 ratios the 19th: ceil(20 x 0.95)."""
    assert margin_of([1 + number / 100 for number in range(19)], 0.95) == 1.18
