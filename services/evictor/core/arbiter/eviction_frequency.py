"""How often a workload was evicted, from counted spans of time (docs/facts/katalyst-eviction.md#numa-cpu)."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import Annotated

from pydantic import Field

from shared.contracts.pod import Pod
from shared.core.decisions import Answer, Question, decision
from shared.core.evictions.intents import Spent

WINDOWS_H = (2.0,)
"""Windows over which victim scores count (docs/facts/katalyst-eviction.md#numa-cpu)."""


class Bucket(Question):
    """Evictions in a span of time that began `age_s` ago."""

    age_s: Annotated[float, Field(ge=0)]
    duration_s: Annotated[float, Field(ge=0)]
    count: Annotated[int, Field(ge=0)]

    def within(self, window_s: float) -> int:
        """Evictions inside the window; of a bucket over its edge those of the part inside, rounded."""
        if self.age_s <= window_s:
            return self.count
        inside_s = window_s - (self.age_s - self.duration_s)
        return math.floor(self.count * inside_s / self.duration_s + 0.5) if inside_s > 0 else 0


class FrequencyQuestion(Question):
    """The buckets, the window, and how many pods the workload should have."""

    buckets: list[Bucket]
    window_s: Annotated[float, Field(ge=0)]
    expected_pods: int | None = None


class FrequencyAnswer(Answer):
    """Evictions in the window, in all and by pod, and when the newest bucket with any began."""

    count: int
    ratio: float | None
    last_eviction_age_s: float | None


@decision("eviction_frequency", area="eviction_cpu_load", asks=FrequencyQuestion, answers=FrequencyAnswer)
def eviction_frequency(question: FrequencyQuestion) -> FrequencyAnswer:
    """How often was a workload evicted in a window?"""
    count = evictions(question.buckets, question.window_s)
    ages = [bucket.age_s for bucket in question.buckets if bucket.count > 0]
    return FrequencyAnswer(
        count=count, ratio=per_pod(count, question.expected_pods), last_eviction_age_s=min(ages, default=None)
    )


def evictions(buckets: Iterable[Bucket], window_s: float) -> int:
    """Of all buckets."""
    return sum(bucket.within(window_s) for bucket in buckets)


def per_pod(count: int, expected_pods: int | None) -> float | None:
    """None where it is unknown how many pods there should be."""
    if count == 0:
        return 0.0
    return count / expected_pods if expected_pods else None


def by_window_h(
    pods: Iterable[Pod], spent: Iterable[Spent], now_s: float, windows_h: Collection[float] = WINDOWS_H
) -> dict[str, dict[str, float]]:
    """How often each pod's workload was really evicted here, for each of its pods here: by UID and window in hours.

    A pod that stands alone is no workload, and is left out.
    """
    owner_of = {pod.uid: pod.owner_key for pod in pods if pod.owner_key is not None}
    expected, buckets = Counter(owner_of.values()), defaultdict[str, list[Bucket]](list)
    for one in spent:
        if one.owner is not None and one.mode == "enforce" and one.at_s is not None:
            buckets[one.owner].append(Bucket(age_s=one.age_s(now_s), duration_s=0, count=1))
    ratios: dict[str, dict[str, float]] = {}
    for uid, owner in owner_of.items():
        counted = {f"{hours:g}": evictions(buckets[owner], hours * 3600) for hours in windows_h}
        known = {hours: per_pod(count, expected[owner]) for hours, count in counted.items()}
        ratios[uid] = {hours: ratio for hours, ratio in known.items() if ratio is not None}
    return ratios
