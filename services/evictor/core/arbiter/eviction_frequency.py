"""Counts how often a workload was evicted within a window (docs/facts/katalyst-eviction.md#numa-cpu)."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from shared.contracts.pod import Pod
from shared.core.evictions.intents import Spent

WINDOWS_H = (2.0,)
"""Windows over which victim scores count (docs/facts/katalyst-eviction.md#numa-cpu)."""


@dataclass(frozen=True, slots=True)
class EvictionSpan:
    """Evictions in a span of time that began `age_s` ago."""

    age_s: float
    duration_s: float
    count: int

    def within(self, window_s: float) -> int:
        """Evictions inside the window; of a span across its edge those of the part inside, rounded."""
        if self.age_s <= window_s:
            return self.count
        inside_s = window_s - (self.age_s - self.duration_s)
        return math.floor(self.count * inside_s / self.duration_s + 0.5) if inside_s > 0 else 0


def evictions(spans: Iterable[EvictionSpan], window_s: float) -> int:
    """The evictions of all spans inside the window."""
    return sum(span.within(window_s) for span in spans)


def per_pod(count: int, expected_pods: int | None) -> float | None:
    """Return the evictions per pod; None if the expected number of pods is unknown."""
    if count == 0:
        return 0.0
    return count / expected_pods if expected_pods else None


def by_window_h(
    pods: Iterable[Pod], spent: Iterable[Spent], now_s: float, windows_h: Collection[float] = WINDOWS_H
) -> dict[str, dict[str, float]]:
    """How often each pod's workload was really evicted here, for each of its pods here: by UID and window in hours.

    Only real evictions that are certainly over count. A pod without an owner is no workload, and is left out.
    """
    owner_of = {pod.uid: pod.owner_key for pod in pods if pod.owner_key is not None}
    expected, spans = Counter(owner_of.values()), defaultdict[str, list[EvictionSpan]](list)
    for one in spent:
        # No end yet: it may still be called off, and would have counted against its workload.
        if one.owner is not None and one.mode == "enforce" and one.at_s is not None:
            spans[one.owner].append(EvictionSpan(age_s=one.age_s(now_s), duration_s=0, count=1))
    ratios: dict[str, dict[str, float]] = {}
    for uid, owner in owner_of.items():
        counted = {f"{hours:g}": evictions(spans[owner], hours * 3600) for hours in windows_h}
        known = {hours: per_pod(count, expected[owner]) for hours, count in counted.items()}
        ratios[uid] = {hours: ratio for hours, ratio in known.items() if ratio is not None}
    return ratios
