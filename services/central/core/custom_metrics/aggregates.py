"""Aggregates of a group of samples (docs/facts/katalyst-metrics.md#aggregates)."""

import math
from collections.abc import Callable, Mapping, Sequence

Points = Sequence[tuple[int, float]]
"""Times in milliseconds, and values; at least one, in no order."""


def mean(points: Points) -> float:
    """The mean, of parts of the largest value: the sum of large ones would be beyond every number."""
    largest = max(abs(value) for _, value in points)
    return largest * (math.fsum(value / largest for _, value in points) / len(points)) if largest else 0.0


def percentile(points: Points, percent: int) -> float:
    """The value at a percent of the ordered values, between two of them their middle."""
    values = sorted(value for _, value in points)
    if len(values) == 1:
        return values[0]
    place, rest = divmod(percent * len(values), 100)
    return values[place - 1] if rest == 0 else values[place - 1] / 2 + values[place] / 2


def latest(points: Points) -> float:
    """The value of the newest time, of several the largest."""
    return max(points)[1]


AGGREGATES: Mapping[str, Callable[[Points], float]] = {
    "avg": mean,
    "max": lambda points: max(value for _, value in points),
    "min": lambda points: min(value for _, value in points),
    "p99": lambda points: percentile(points, 99),
    "p95": lambda points: percentile(points, 95),
    "p90": lambda points: percentile(points, 90),
    "latest": latest,
}


def newest_ms(points: Points) -> int:
    """Return the time of the newest sample, which is the time of the aggregate."""
    return max(at_ms for at_ms, _ in points)


def window_s(points: Points) -> int:
    """Whole seconds from the oldest to the newest sample."""
    return (newest_ms(points) - min(at_ms for at_ms, _ in points)) // 1000
