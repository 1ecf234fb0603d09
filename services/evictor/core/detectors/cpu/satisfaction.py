"""Detects that best-effort pods starve: how much of their CPU requests should go, and whose goes first.

Facts: docs/facts/koordinator-evict.md#cpu-by-satisfaction.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

LOWER_MAX_PERCENT = 60
UPPER_BOUND_PERCENT = 100
USAGE_THRESHOLD_PERCENT = 90
ONE_CORE_MILLIS = 1000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BestEffortCpu:
    """CPU of all best-effort pods together, at one moment or as means over a window."""

    limit_millis: int
    """What they can have."""
    used_millis: int
    request_millis: int


@dataclass(frozen=True, slots=True)
class SatisfactionRule:
    """The part of their requests, in percent, below which they starve, and up to which is freed."""

    lower_percent: int
    upper_percent: int
    usage_threshold_percent: int = USAGE_THRESHOLD_PERCENT
    """Pods that use less than this part of what they can have do not starve."""

    @property
    def usable(self) -> bool:
        """Whether both parts lie within the bounds, and in order."""
        return 0 < self.lower_percent <= min(LOWER_MAX_PERCENT, self.upper_percent) and (
            self.upper_percent < UPPER_BOUND_PERCENT
        )


def millis_to_free(window: BestEffortCpu, current: BestEffortCpu, rule: SatisfactionRule) -> int:
    """How much of the requests should go: the smaller of what window and moment ask for; 0 if either asks for none."""
    return min(_asked_millis(window, rule), _asked_millis(current, rule))


def _asked_millis(cpu: BestEffortCpu, rule: SatisfactionRule) -> int:
    if cpu.request_millis <= 0 or not _used_up(cpu, rule):
        return 0
    if cpu.limit_millis * 100 > rule.lower_percent * cpu.request_millis:
        return 0
    # Whole numbers: with floats an exact tenth of the requests would sometimes be one milli-core short.
    return max(0, (cpu.request_millis * rule.upper_percent - cpu.limit_millis * 100) // 100)


def _used_up(cpu: BestEffortCpu, rule: SatisfactionRule) -> bool:
    """Return whether they use nearly all that they can have; less than a core always counts as used."""
    if cpu.limit_millis <= 0:
        return False
    return cpu.limit_millis < ONE_CORE_MILLIS or (
        cpu.used_millis * 100 >= rule.usage_threshold_percent * cpu.limit_millis
    )


@dataclass(frozen=True, slots=True)
class StarvingPod(Generic[T]):
    """A best-effort pod with its CPU."""

    order: tuple[str, ...]
    """Orders pods of equal rank."""
    priority: int | None
    request_millis: int
    used_millis: int
    of: T
    """The caller's object."""

    @property
    def usage_ratio(self) -> float:
        """Use over request; 0 of a pod that requests nothing, since its going would free nothing."""
        return self.used_millis / self.request_millis if self.request_millis > 0 else 0.0


def in_order(pods: Iterable[StarvingPod[T]]) -> list[StarvingPod[T]]:
    """Low priority first (none is the lowest), then large use over request."""
    return sorted(pods, key=lambda pod: (_rank(pod.priority), -pod.usage_ratio, pod.order))


def _rank(priority: int | None) -> float:
    return float("-inf") if priority is None else priority
