"""The cache reaper chooses whose page cache is dropped (docs/facts/katalyst-memory.md#cache-reaper).

Page cache is dropped when memory runs short. Only reclaimed pods lose theirs, the largest first, and no more of them
than it takes to get well above the watermark.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from services.advisor.core.memory.watermarks import SCALE_UNIT, WATERMARK_FACTOR
from shared.contracts.pod import QosClass

MIN_CACHE_RATIO = 0.005
"""A container with a smaller share of page cache is skipped, because there is too little to gain."""
MAX_DROP_BYTES = 256 << 20
"""Dropped from one pod by one write at most: the writer waits for the kernel meanwhile."""


@dataclass(frozen=True, slots=True)
class Cached:
    """Page cache of one container; None if unknown."""

    pod: str
    qos: QosClass
    cache_bytes: int | None


@dataclass(frozen=True, slots=True)
class Shortage:
    """How much memory exists, how much is free, and how much must be free."""

    total_bytes: int
    free_bytes: int
    critical_bytes: float

    @property
    def target_bytes(self) -> float:
        """Return the bytes to free: up to twice the critical watermark; 0 unless free memory is below it."""
        return 2 * self.critical_bytes - self.free_bytes if self.free_bytes < self.critical_bytes else 0.0


def critical_watermark_bytes(total_bytes: int, watermark_scale_factor: float, least_bytes: int) -> float:
    """Free memory below which page cache is dropped: twice the kernel's watermark distance, at least `least_bytes`."""
    return max(float(least_bytes), WATERMARK_FACTOR * total_bytes * watermark_scale_factor / SCALE_UNIT)


def pods_to_reap(
    shortage: Shortage, containers: Sequence[Cached], min_cache_ratio: float = MIN_CACHE_RATIO
) -> list[str]:
    """Reclaimed pods whose page cache is dropped, largest first, until what they hold exceeds the target."""
    least = min_cache_ratio * shortage.total_bytes
    found = [(c.cache_bytes, c.pod) for c in containers if c.qos == "reclaimed_cores" and c.cache_bytes is not None]
    large = sorted((-cache, pod) for cache, pod in found if cache >= least)
    pods: dict[str, None] = {}
    held_bytes = 0
    for negative_bytes, pod in large if shortage.target_bytes > 0 else ():
        pods[pod] = None
        held_bytes -= negative_bytes
        if held_bytes > shortage.target_bytes:
            break
    return list(pods)


def drops(
    shortage: Shortage, pods: Sequence[str], cache_bytes: dict[str, int], most_bytes: int = MAX_DROP_BYTES
) -> dict[str, int]:
    """How much page cache each of these pods gives now, in their order; no more than the target in all.

    Asked again every pass, so that what is freed shows before more is taken.
    """
    left = int(shortage.target_bytes)
    given: dict[str, int] = {}
    for pod in pods:
        step = min(cache_bytes.get(pod, 0), most_bytes, left)
        if step > 0:
            given[pod] = step
            left -= step
    return given
