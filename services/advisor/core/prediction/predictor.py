"""A predictor bounds the tenants' CPU need over the next moments by a weighted sum of features of the recent past.

The past is the largest need in each of the last steps of `step_s`; the bound is for the largest need in the next
`horizon_steps`. Every feature grows with every part of the past and no weight is negative, so more need never lowers
the bound. All are in cores without a constant, so a tenant twice as large gets twice the bound. `sublet train`
(docs/model-policy.md) fits the quantile `coverage`, and then widens it by `margin` until it holds on data that the fit
has not seen.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MIN_CORES = 0.1
"""The least bound: a need below a tenth of a core is not worth a prediction."""
MIN_HISTORY_STEPS = 12
"""The features look back so far at least."""
Past = Sequence[float]
"""Needs in cores, oldest first, as many as the model's `history_steps`."""


def _last(past: Past) -> float:
    return past[-1]


def _largest_of(past: Past, steps: int) -> float:
    return max(past[-steps:])


def _mean_of(past: Past, steps: int) -> float:
    return sum(past[-steps:]) / steps


def _mean(past: Past) -> float:
    return sum(past) / len(past)


def _second(past: Past) -> float:
    return sorted(past)[-2]


def _upper_quarter(past: Past) -> float:
    return sorted(past)[-(len(past) // 4)]


def _median(past: Past) -> float:
    return sorted(past)[len(past) // 2]


FEATURES: Mapping[str, Callable[[Past], float]] = {
    "last": _last,
    "max_3": partial(_largest_of, steps=3),
    "max_6": partial(_largest_of, steps=6),
    "max_12": partial(_largest_of, steps=12),
    "max": max,
    "mean_3": partial(_mean_of, steps=3),
    "mean_12": partial(_mean_of, steps=12),
    "mean": _mean,
    "second": _second,
    "upper_quarter": _upper_quarter,
    "median": _median,
    "min": min,
}
"""Features of the past by name; the number is how many of the last steps count, otherwise all do."""


def features_of(past: Past) -> list[float]:
    """The features of a whole past, in the order of `FEATURES`."""
    return [feature(past) for feature in FEATURES.values()]


class StepModel(BaseModel):
    """The weights for one length of step, how far they hold, and what they were learned from."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    step_s: Annotated[float, Field(gt=0, le=3600)]
    history_steps: Annotated[int, Field(ge=MIN_HISTORY_STEPS, le=360)]
    horizon_steps: Annotated[int, Field(ge=1, le=60)]
    coverage: Annotated[float, Field(ge=0.5, lt=1)]
    """Part of the time in which the need stays within the bound, as promised by the calibration."""
    weights: dict[str, Annotated[float, Field(ge=0, le=100)]]
    """By the name of a feature; one that is not named counts nothing."""
    margin: Annotated[float, Field(ge=1, le=100)]
    """Factor on the weighted sum."""
    trained_on: dict[str, str | int | float] = {}
    """Files, examples and the random seed of the training; for people, not used here."""

    @model_validator(mode="after")
    def _known_features(self) -> Self:
        unknown = sorted(self.weights.keys() - FEATURES.keys())
        if unknown or not any(self.weights.values()):
            raise ValueError(f"weights: {unknown or 'all 0'}: want a weight above 0 of {', '.join(FEATURES)}")
        return self

    @property
    def horizon_s(self) -> float:
        """For how long a bound is meant."""
        return self.horizon_steps * self.step_s

    def bound_cores(self, past: Past) -> float:
        """Return the bound that the need stays below within the horizon, in `coverage` of all cases."""
        weighted = sum(weight * FEATURES[name](past) for name, weight in self.weights.items() if weight)
        return max(MIN_CORES, self.margin * weighted)


class Weights(BaseModel):
    """A weights file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    v: Literal[1] = 1
    models: Annotated[tuple[StepModel, ...], Field(min_length=1, max_length=8)]
    """Ascending by step: the first one whose past is whole is used."""

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        steps = [model.step_s for model in self.models]
        # Two models with one step could not be told apart, because tracks are stored by step.
        if sorted(set(steps)) != steps:
            raise ValueError(f"models: step_s {steps}: want each step once, ascending")
        return self
