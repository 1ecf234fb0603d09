"""Scores and filters the candidates of an overloaded NUMA node (docs/facts/katalyst-eviction.md#numa-cpu)."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

Filter = Literal["OwnerRef", "OverloadNuma"]
Scorer = Literal["Usage", "WorkloadEvictionFrequency"]

FREQUENCY_LIMITS_PER_H = (0.15, 0.3, 0.5)
"""Evictions per pod and hour: below the first a workload has hardly been touched, from the third on it is spared."""
SPARED_PER_RATIO = -10_000.0
USAGE_REACH = 0.3
USAGE_SCORE = 60.0
TOO_SMALL_SHARE, TOO_SMALL_SCORE = 0.4, -1000
"""A pod that uses no more than this share of the gap would not close it."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RatedPod(Generic[T]):
    """A candidate with what the scorers go by."""

    name: str
    """Orders pods of equal score."""
    usage_ratio: float | None
    """Mean usage as a ratio of the node; None: unknown."""
    of: T
    """The caller's object."""
    eviction_ratio_by_window_h: Mapping[str, float] = field(default_factory=dict)
    """Evictions of its workload per pod, by window in hours."""


def best_first(
    pods: Iterable[RatedPod[T]], scorers: Collection[Scorer], gap_ratio: float | None, limits_per_h: Sequence[float]
) -> list[tuple[RatedPod[T], int]]:
    """Candidates with their scores, the highest first, then by name."""
    scored = [(pod, score(pod, scorers, gap_ratio, limits_per_h)) for pod in pods]
    return sorted(scored, key=lambda item: (-item[1], item[0].name))


def score(pod: RatedPod[T], scorers: Collection[Scorer], gap_ratio: float | None, limits_per_h: Sequence[float]) -> int:
    """The sum over the scorers."""
    total = usage_score(pod.usage_ratio, gap_ratio) if "Usage" in scorers else 0
    if "WorkloadEvictionFrequency" in scorers:
        total += frequency_score(pod.eviction_ratio_by_window_h, limits_per_h)
    return total


def usage_score(usage_ratio: float | None, gap_ratio: float | None) -> int:
    """Return a score that is high if a pod uses just the excess; 0 without history, and if its use is far from that."""
    if usage_ratio is None or gap_ratio is None:
        return 0
    if usage_ratio <= TOO_SMALL_SHARE * gap_ratio:
        return TOO_SMALL_SCORE
    distance = abs(usage_ratio - abs(gap_ratio))
    return _rounded(USAGE_SCORE * (1 - distance / USAGE_REACH)) if distance < USAGE_REACH else 0


def frequency_score(ratio_by_window_h: Mapping[str, float], limits_per_h: Sequence[float]) -> int:
    """High where a workload was seldom evicted: the mean over the windows, short ones count more; 0 without history."""
    windows = [(float(hours), ratio) for hours, ratio in sorted(ratio_by_window_h.items())]
    weights = sum(1 / hours for hours, _ in windows)
    scored = sum(_of_ratio(ratio / hours, limits_per_h) / hours for hours, ratio in windows)
    return _rounded(scored / weights) if windows else 0


def _of_ratio(per_h: float, limits_per_h: Sequence[float]) -> float:
    low, middle, high = limits_per_h
    if per_h >= high:
        return SPARED_PER_RATIO * per_h
    if per_h >= middle:
        return 10 * (1 - (per_h - middle) / (high - middle))
    if per_h >= low:
        return 45 + 10 * (1 - (per_h - low) / (middle - low))
    return 90 + 10 * (1 - per_h / low)


def _rounded(value: float) -> int:
    """To the nearest integer, halves away from zero, as Katalyst rounds; Python rounds halves to even."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def passes(
    filters: Collection[Filter],
    skipped_owner_kinds: Collection[str],
    owner_kind: str | None,
    on_overloaded_numa: bool | None,
) -> bool:
    """Return whether a pod stays a candidate; an unknown owner or NUMA node excludes no pod."""
    if "OwnerRef" in filters and owner_kind is not None and owner_kind in skipped_owner_kinds:
        return False
    return not ("OverloadNuma" in filters and on_overloaded_numa is False)
