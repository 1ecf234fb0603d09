"""A histogram of usage whose samples weigh less the older they are (docs/facts/katalyst-recommendation.md#histogram).

Buckets grow by a ratio, so that one scheme serves a hundredth of a core and a thousand cores with the same error.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from shared.errors import Refused

Weights = Mapping[int, float]


@dataclass(frozen=True, slots=True)
class BucketScheme:
    """Where buckets begin: the first is `first` wide, each next one wider by `growth_ratio`."""

    first: float
    most: float
    growth_ratio: float = 0.05
    epsilon: float = 0.0001
    """Buckets that weigh less are not looked for a percentile in."""
    half_life_s: float | None = None
    """A sample of this age weighs half; None: all weigh the same."""

    def __post_init__(self) -> None:
        sizes = {
            "first_bucket": self.first,
            "max": self.most,
            "growth_ratio": self.growth_ratio,
            "epsilon": self.epsilon,
            "half_life_s": 1.0 if self.half_life_s is None else self.half_life_s,
        }
        for name, size in sizes.items():
            if not size > 0:
                raise Refused(f"{name} {size}: want more than 0", reason="invalid_histogram")
        if self.most <= self.first:
            raise Refused(f"max {self.most}: want more than first_bucket {self.first}", reason="invalid_histogram")
        # A ratio that is too near to 1 is 1 for a computer, and then no bucket is wider than another.
        if self.ratio == 1 or not math.isfinite(self._place(self.most)):
            raise Refused(
                f"growth_ratio {self.growth_ratio}: buckets up to max {self.most} cannot be counted",
                reason="invalid_histogram",
            )

    @property
    def ratio(self) -> float:
        """Width of a bucket by that of the one before."""
        return 1 + self.growth_ratio

    @property
    def buckets(self) -> int:
        """How many there are; the last one has no end."""
        return math.ceil(self._place(self.most)) + 1

    def bucket(self, value: float) -> int:
        """The one that a value belongs to."""
        if value < self.first:
            return 0
        place = self._place(value)
        return self.buckets - 1 if place >= self.buckets else min(math.floor(place), self.buckets - 1)

    def start(self, bucket: int) -> float:
        """The smallest value of a bucket."""
        if bucket == 0:
            return 0.0
        return self.first * (self.ratio**bucket - 1) / (self.ratio - 1)

    def decay(self, age_s: float) -> float:
        """Return the remaining weight after this age."""
        return 1.0 if self.half_life_s is None else 2.0 ** (-age_s / self.half_life_s)

    def _place(self, value: float) -> float:
        return math.log(value * (self.ratio - 1) / self.first + 1, self.ratio)


@dataclass(frozen=True, slots=True)
class Percentile:
    """A percentile of usage, and the bucket that it is the end of."""

    value: float
    bucket: int


@dataclass(frozen=True, slots=True)
class UsageHistogram:
    """Weights by bucket, as they are at `at_s`; buckets without any are absent."""

    scheme: BucketScheme
    at_s: float
    weights: Weights

    @classmethod
    def empty(cls, scheme: BucketScheme, at_s: float) -> "UsageHistogram":
        """One without samples."""
        return cls(scheme, at_s, {})

    def add(self, value: float, at_s: float, weight: float = 1.0) -> "UsageHistogram":
        """With one more sample; one that is newer than all others makes those weigh less."""
        aged = self.aged(at_s)
        bucket = self.scheme.bucket(value)
        heavier = aged.weights.get(bucket, 0.0) + weight * self.scheme.decay(aged.at_s - at_s)
        return replace(aged, weights={**aged.weights, bucket: heavier})

    def aged(self, at_s: float) -> "UsageHistogram":
        """As it is at a later time; an earlier time changes nothing."""
        if at_s <= self.at_s:
            return self
        left = self.scheme.decay(at_s - self.at_s)
        return replace(self, at_s=at_s, weights={bucket: held * left for bucket, held in self.weights.items()})

    def percentile(self, part: float) -> Percentile | None:
        """The value that so large a part of the weight does not exceed; None without samples that weigh anything.

        It is the end of its bucket, never less than what was seen; the last bucket has no end and answers its start.
        """
        if not 0 < part <= 1:
            raise Refused(f"percentile {part}: want more than 0, at most 1", reason="invalid_histogram")
        heavy = [bucket for bucket, weight in self.weights.items() if weight >= self.scheme.epsilon]
        if not heavy:
            return None
        wanted, reached, found = part * sum(self.weights.values()), 0.0, max(heavy)
        for bucket in sorted(bucket for bucket in self.weights if min(heavy) <= bucket < max(heavy)):
            reached += self.weights[bucket]
            if reached >= wanted:
                found = bucket
                break
        last = self.scheme.buckets - 1
        return Percentile(self.scheme.start(found if found == last else found + 1), found)
