"""A decaying histogram counts how much was used, and for what share of the recent past.

Buckets grow by 5 %, so a percentile is exact to 5 % at any size, and their number is bounded. The weight of a sample is
the time that it covers; it halves with every half-life.

Facts: docs/facts/koordinator.md#histograms-that-forget.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, count, takewhile

RATIO = 1.05
"""By how much each bucket is wider than the one before."""
EPSILON = 1e-9
"""A bucket with a smaller share of the weight is forgotten. Far below the share of one sample at any half-life,
because a sample that is dropped as soon as it is added could never gather weight."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Upper ends of the buckets, ascending, in the unit of what is counted. Larger values count as the largest."""

    ends: tuple[float, ...]

    @classmethod
    def of(cls, first: float, largest: float, ratio: float = RATIO) -> "Buckets":
        """Buckets from 0: the first is `first` wide, each next one `ratio` times wider; the last ends at `largest`."""
        widths = (first * ratio**i for i in count())
        return cls((*takewhile(lambda end: end < largest, accumulate(widths)), largest))

    def index(self, value: float) -> int:
        """The bucket of a value."""
        return min(bisect_left(self.ends, value), len(self.ends) - 1)


CPU_CORES = Buckets.of(0.025, 1024.0)
MEMORY_BYTES = Buckets.of(5 * 2.0**20, 2.0**41)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Weights by bucket at the moment of the newest sample."""

    weights: Mapping[int, float] = field(default_factory=dict)
    total: float = field(init=False, repr=False, compare=False)
    """All of them together."""

    def __post_init__(self) -> None:
        """Add the weights up once: every question about a share asks for it."""
        object.__setattr__(self, "total", math.fsum(self.weights.values()))

    def add(self, bucket: int, weight: float, aged_half_lives: float) -> "Histogram":
        """The histogram with one more sample, after what it held has aged by so many half-lives."""
        # Never younger: a clock that went back must not make old samples weigh more.
        factor = 2.0 ** -max(0.0, aged_half_lives)
        weights = {index: old * factor for index, old in self.weights.items()}
        weights[bucket] = weights.get(bucket, 0.0) + weight
        made = Histogram(weights)
        # Buckets that can no longer move a percentile are dropped; the number of buckets bounds memory as well.
        least = EPSILON * made.total
        if min(weights.values()) >= least:
            return made
        return Histogram({index: weight for index, weight in weights.items() if weight >= least})

    def weight_above(self, value: float, buckets: Buckets) -> float:
        """The weight of what certainly lies above a value."""
        bucket = buckets.index(value)
        return math.fsum([weight for index, weight in self.weights.items() if index > bucket])

    def bucket_at(self, percentile: float) -> int | None:
        """Return the lowest bucket up to which `percentile` percent of the weight lie; None without samples."""
        goal = self.total * percentile / 100
        below = 0.0
        for index in sorted(self.weights):
            below += self.weights[index]
            if below >= goal:
                return index
        # Rounding may leave the sum just below the goal.
        return max(self.weights, default=None)
