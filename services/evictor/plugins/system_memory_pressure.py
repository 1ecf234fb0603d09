"""Detects a memory shortage of the node: low free memory, stalling tenants, or a kswapd that is busy for minutes.

The detector is `system_memory_pressure` (docs/facts/katalyst-eviction.md#system-memory), and `memory_victims` orders
the victims. Off by default: the tutorial's combined plugin (`memory_pressure`) is on and watches free memory and
kswapd, too.
"""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from services.evictor.core.detectors.memory.combined import CONDITION, Action, MemoryActions
from services.evictor.core.detectors.memory.pods import ranked
from services.evictor.core.detectors.memory.system import (
    SCOPE,
    ShortageClocks,
    StallLimits,
    SystemLimits,
    SystemReading,
    judge,
)
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from shared.contracts.envelope import Reason
from shared.core.quantities import Percent, Seconds


class SystemMemoryPressureSettings(PluginSettings):
    """Thresholds of the detector."""

    enabled: bool = False
    cooling_s: Annotated[float, Field(ge=0, le=3600)] = 35.0
    minimum_free_bytes: Annotated[int, Field(ge=0)] = 0
    """Free memory below this, or below the kernel's watermark where that is more, is pressure."""
    stall: bool = True
    """Watches the shares of time in which tenants wait for memory (PSI, if the kernel provides it)."""
    workload_threshold_percent: Percent = 15
    """Share of the last 10 s in which some task of the node waited for memory, from which a stall is possible."""
    pods_mean_threshold_percent: Percent = 4
    """Least mean of that share over the tenants' pods in a stall."""
    pod_threshold_percent: Percent = 1
    """A tenant's pod above this share counts as waiting."""
    min_pods: Annotated[int, Field(ge=1)] = 3
    """Least number of waiting pods in a stall."""
    stall_duration_s: Seconds = 15.0
    """A stall of this length is pressure for reclaimed pods; three times as long, for tenants' pods as well."""
    kswapd_rate_pages_per_s: Annotated[float, Field(gt=0)] = 2000.0
    """Pages per second reclaimed by kswapd from which it counts as busy."""
    kswapd_exceed_duration_s: Seconds = 120.0
    """A kswapd that is busy for this time is pressure, and tenants' pods are candidates as well."""
    longest_gap_s: Seconds = 30.0
    """Two samples further apart restart every clock."""

    @property
    def limits(self) -> SystemLimits:
        """Return the limits as the detector takes them."""
        stall = StallLimits(
            self.workload_threshold_percent,
            self.pods_mean_threshold_percent,
            self.pod_threshold_percent,
            self.min_pods,
            self.stall_duration_s,
        )
        return SystemLimits(
            self.minimum_free_bytes,
            stall if self.stall else None,
            self.kswapd_rate_pages_per_s,
            self.kswapd_exceed_duration_s,
        )


@dataclass(frozen=True, slots=True)
class SystemShortage(Pressure):
    """The pressure with the action that the detector requests."""

    action: Action = field(default="noop")


def evaluate(
    clocks: ShortageClocks, view: View, settings: SystemMemoryPressureSettings
) -> tuple[ShortageClocks, SystemShortage | Silence]:
    """Judge this sample; without free memory, total and watermark it is unknown."""
    node = view.sample.node_reading
    free, total, scale = node.memory_free_bytes, node.memory_total_bytes, node.watermark_scale_factor
    if free is None or total is None or scale is None:
        return ShortageClocks(), "unknown"
    # Unobserved time must not count as lasting pressure.
    if view.t_s - clocks.read_at_s > settings.longest_gap_s:
        clocks = ShortageClocks()
    clocks, action = judge(clocks, _reading(view), total, scale, settings.limits)
    if action == "noop":
        return clocks, "calm"
    return clocks, _shortage(free, settings.limits.free_bytes(total, scale), clocks, action)


def near(view: View, settings: SystemMemoryPressureSettings) -> SystemShortage | None:
    """Compare free memory with its threshold, and name whom a lasting shortage would evict."""
    node = view.sample.node_reading
    free, total, scale = node.memory_free_bytes, node.memory_total_bytes, node.watermark_scale_factor
    if free is None or total is None or scale is None:
        return None
    return _shortage(free, settings.limits.free_bytes(total, scale), ShortageClocks(), "all")


def _shortage(free: int, threshold: float, clocks: ShortageClocks, action: Action) -> SystemShortage:
    return SystemShortage(
        hard=True,
        scope=SCOPE,
        observed=free,
        threshold=threshold,
        condition=CONDITION,
        below=True,
        why=Reason(
            rule="free memory below the threshold, tenants stalling, or kswapd busy",
            numbers={
                "free_bytes": free,
                "threshold_bytes": threshold,
                "stalled_since_s": clocks.stalled_since_s,
                "kswapd_since_s": clocks.kswapd_since_s,
                "action": action,
            },
        ),
        action=action,
    )


def rank(view: View, pressure: SystemShortage, _settings: SystemMemoryPressureSettings) -> tuple[Candidate, ...]:
    """Rank reclaimed pods before tenants, low priority first, large use first."""
    return ranked(view.pods, MemoryActions({}, pressure.action))


def _reading(view: View) -> SystemReading:
    node = view.sample.node_reading
    stalls = [
        max(c.memory_pressure.some_avg10_percent for c in reading.containers if c.memory_pressure is not None)
        for reading in view.pods
        if reading.pod.qos in ("shared_cores", "dedicated_cores")
        and any(c.memory_pressure is not None for c in reading.containers)
    ]
    return SystemReading(
        view.t_s,
        node.memory_free_bytes,
        node.kswapd_steal_pages,
        None if node.memory_pressure is None else node.memory_pressure.some_avg10_percent,
        stalls,
    )


PLUGIN = Plugin(
    name="system-memory-pressure-eviction-plugin",
    settings=SystemMemoryPressureSettings,
    start=ShortageClocks,
    evaluate=evaluate,
    rank=rank,
    near=near,
)
