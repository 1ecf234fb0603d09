"""How sure a recommendation is, and the range in which a request needs no change
(docs/facts/katalyst-recommendation.md#confidence)."""

import math
from dataclasses import dataclass

from services.central.core.recommendation.request import MIB

DAY_S = 86_400.0
SAMPLES_A_DAY = 1440
MARGIN_RATIO = 0.15
POD_MIN_CPU_MILLIS = 25
POD_MIN_MEMORY_BYTES = 250 * MIB


@dataclass(frozen=True, slots=True)
class UsagePercentiles:
    """Percentiles of use, in milli or bytes: half of the time, usually, and nearly always."""

    lower: float
    target: float
    upper: float


@dataclass(frozen=True, slots=True)
class RequestBounds:
    """A target, and the range around it; `upper` is None while nothing is known."""

    target: int
    lower: int
    upper: int | None


def confidence_days(history_s: float, samples: float) -> float:
    """Return the days of known use: a long history with few samples counts by its samples."""
    return min(history_s / DAY_S, samples / SAMPLES_A_DAY)


def request_bounds(
    usage: UsagePercentiles, confidence: float, at_least: int = 0, margin_ratio: float = MARGIN_RATIO
) -> RequestBounds:
    """Return the bounds of one resource: wide while little is known, close to the percentiles after days."""
    target, lower, upper = (_with_margin(value, margin_ratio) for value in (usage.target, usage.lower, usage.upper))
    spread = 1 / confidence if confidence > 0 else math.inf
    # Without any knowledge the lower bound is 0, and there is no upper one.
    highest = upper * (1 + spread)
    return RequestBounds(
        target=max(target, at_least),
        lower=max(int(lower * (1 + 0.001 * spread) ** -2), at_least),
        upper=max(int(highest), at_least) if math.isfinite(highest) else None,
    )


def _with_margin(value: float, ratio: float) -> int:
    return int(value) + int(int(value) * ratio)
