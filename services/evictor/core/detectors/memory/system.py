"""Detects a shortage of memory by free memory, stall shares and kswapd, each with its own clock.

Facts: docs/facts/katalyst-eviction.md#system-memory. Unlike upstream, kswapd is looked at.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.evictor.core.detectors.memory.combined import WATERMARK_PARTS, Action, stronger

SCOPE = "SystemMemory"
ALL_AFTER_TIMES = 3
"""Stalled for so many times the duration, tenants' pods may go as well."""


@dataclass(frozen=True, slots=True)
class StallLimits:
    """Shares of time in which something waited for memory, in whole percent over 10 s."""

    workload_percent: int = 15
    pods_mean_percent: int = 4
    pod_percent: int = 1
    min_pods: int = 3
    duration_s: float = 15.0


@dataclass(frozen=True, slots=True)
class SystemLimits:
    """Thresholds of the detector; `stall` None leaves stall shares out."""

    minimum_free_bytes: int = 0
    stall: StallLimits | None = None
    kswapd_pages_per_s: float = 2000.0
    kswapd_duration_s: float = 120.0

    def free_bytes(self, total_bytes: int, watermark_scale_factor: int) -> float:
        """Free memory below this is pressure."""
        return max(self.minimum_free_bytes, total_bytes * watermark_scale_factor / WATERMARK_PARTS)


@dataclass(frozen=True, slots=True)
class SystemReading:
    """The node at one moment; None is unknown, and never evidence."""

    t_s: float
    free_bytes: int | None = None
    kswapd_steal_pages: int | None = None
    workload_some_percent: float | None = None
    pods_some_percent: Sequence[float] | None = None
    """Of the tenants' pods."""


@dataclass(frozen=True, slots=True)
class ShortageClocks:
    """Since when stall and kswapd have been over their limits, and the last reading of kswapd's counter."""

    stalled_since_s: float | None = None
    kswapd_since_s: float | None = None
    steal_pages: int | None = None
    read_at_s: float = 0.0

    def after(self, reading: SystemReading, limits: SystemLimits) -> tuple["ShortageClocks", Action]:
        """The state one step later, and the strongest of the actions that stall and kswapd ask for."""
        stalled, by_stall = self._stall(reading, limits.stall)
        moved, by_kswapd = stalled._kswapd(reading, limits)
        return moved, stronger(by_stall, by_kswapd)

    def _stall(self, reading: SystemReading, limits: StallLimits | None) -> tuple["ShortageClocks", Action]:
        workload, pods = reading.workload_some_percent, reading.pods_some_percent or ()
        # Whole percents, as the limits are meant (docs/facts/katalyst-eviction.md#system-memory).
        if limits is None or workload is None or int(workload) < limits.workload_percent:
            return replace(self, stalled_since_s=None), "noop"
        percents = [int(percent) for percent in pods]
        if not percents or sum(percent > limits.pod_percent for percent in percents) < limits.min_pods:
            return self, "noop"
        if sum(percents) // len(percents) < limits.pods_mean_percent:
            return self, "noop"
        since = reading.t_s if self.stalled_since_s is None else self.stalled_since_s
        return replace(self, stalled_since_s=since), _stall_action(reading.t_s - since, limits.duration_s)

    def _kswapd(self, reading: SystemReading, limits: SystemLimits) -> tuple["ShortageClocks", Action]:
        moved = self._counted(reading, limits.kswapd_pages_per_s)
        since = moved.kswapd_since_s
        held = since is not None and reading.t_s - since >= limits.kswapd_duration_s
        return moved, "all" if held else "noop"

    def _counted(self, reading: SystemReading, pages_per_s: float) -> "ShortageClocks":
        """The clock starts at the end of the first interval at or above the rate; what is unknown stops it."""
        before, now, t_s = self.steal_pages, reading.kswapd_steal_pages, reading.t_s
        if now is None or before is None:
            return replace(self, kswapd_since_s=None, steal_pages=now, read_at_s=t_s)
        # The same sample again, or an older one: no interval to take a rate of.
        if t_s <= self.read_at_s:
            return self
        busy = (now - before) / (t_s - self.read_at_s) >= pages_per_s
        since = (t_s if self.kswapd_since_s is None else self.kswapd_since_s) if busy else None
        return replace(self, kswapd_since_s=since, steal_pages=now, read_at_s=t_s)


def _stall_action(held_s: float, duration_s: float) -> Action:
    if held_s < duration_s:
        return "noop"
    return "all" if held_s >= ALL_AFTER_TIMES * duration_s else "reclaimed"


def judge(
    clocks: ShortageClocks, reading: SystemReading, total_bytes: int, watermark_scale_factor: int, limits: SystemLimits
) -> tuple[ShortageClocks, Action]:
    """One step: the clocks after it, and the strongest action of free memory, stall and kswapd."""
    clocks, action = clocks.after(reading, limits)
    low = reading.free_bytes is not None and reading.free_bytes < limits.free_bytes(total_bytes, watermark_scale_factor)
    return clocks, stronger(action, "reclaimed" if low else "noop")
