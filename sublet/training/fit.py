"""Quantile regression with weights that are never negative, by stochastic gradient descent on the pinball loss.

Plain Python and deterministic for a seed: no numerical library is needed on the node or to train. Each example is put
in proportion to the largest need of its past, so that large nodes do not count more than small ones.
Loss: Koenker and Bassett, "Regression Quantiles" (1978); averaging of the second half of the way: Polyak (1992).
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

from services.advisor.core.prediction.predictor import MIN_CORES, features_of

EPOCHS = 40
BATCH = 64
RATE = 0.5
SLOWING = 3.0
"""The step of epoch e is RATE / (1 + e / SLOWING)."""
DECIMALS = 4


@dataclass(frozen=True, slots=True)
class Example:
    """Features of a past and the largest need after it, both in proportion to `scale_cores`."""

    features: tuple[float, ...]
    need: float
    scale_cores: float


def example_of(past: Sequence[float], need_cores: float) -> Example:
    """The example of one past."""
    scale = max(past) + MIN_CORES
    return Example(tuple(feature / scale for feature in features_of(past)), need_cores / scale, scale)


def fit(examples: Sequence[Example], quantile: float, seed: int, epochs: int = EPOCHS) -> list[float]:
    """Weights whose sum over the features the need stays below in `quantile` of the examples.

    Raises:
        ValueError: there are no examples.
    """
    if not examples:
        raise ValueError("no examples")
    chance = random.Random(seed)  # noqa: S311 - the same seed must give the same weights
    shuffled = chance.sample(examples, len(examples))
    batches = [shuffled[start : start + BATCH] for start in range(0, len(shuffled), BATCH)]
    # The part of the gradient that every example of a batch has, whichever side of the sum its need is on.
    totals = [[(1 - quantile) * sum(column) for column in zip(*(e.features for e in b), strict=True)] for b in batches]
    weights = [1.0 / len(examples[0].features)] * len(examples[0].features)
    sums, counted = [0.0] * len(weights), 0
    for epoch in range(epochs):
        rate = RATE / (1 + epoch / SLOWING)
        for number in chance.sample(range(len(batches)), len(batches)):
            weights = _step(weights, batches[number], totals[number], rate)
            if epoch >= epochs // 2:
                sums, counted = [s + w for s, w in zip(sums, weights, strict=True)], counted + 1
    return [round(total / counted, DECIMALS) for total in sums]


def _step(weights: list[float], batch: Sequence[Example], total: Sequence[float], rate: float) -> list[float]:
    """One step down the pinball loss of a batch, then back to weights that are not negative."""
    slopes = list(total)
    for example in batch:
        if sum(map(mul, weights, example.features)) < example.need:
            slopes = [slope - feature for slope, feature in zip(slopes, example.features, strict=True)]
    pace = rate / len(batch)
    return [max(0.0, weight - pace * slope) for weight, slope in zip(weights, slopes, strict=True)]


def margin_of(ratios: Sequence[float], coverage: float) -> float:
    """The factor on the weighted sum that covers `coverage` of examples that the fit has not seen, at least 1.

    `ratios` are need / sum of such examples. The rank is that of split conformal prediction, ceil((n + 1) coverage):
    for exchangeable cases the next one is covered with at least that probability (Vovk; Lei et al. 2018).
    """
    rank = min(len(ratios), math.ceil((len(ratios) + 1) * coverage))
    return max(1.0, round(sorted(ratios)[rank - 1], DECIMALS)) if ratios else 1.0
