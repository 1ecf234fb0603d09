"""Detects a memory shortage by NUMA watermarks, the system's watermark and kswapd.

Facts: docs/facts/katalyst-eviction.md#the-combined-memory-plugin. `RowCounters` are remembered between steps: each step
receives those of the last one and returns its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from services.evictor.core.plugin_kit.numa_order import numa_order

Action = Literal["noop", "reclaimed", "all"]
SCOPE = "memory"
CONDITION = "MemoryPressure/NoSchedule"
WATERMARK_PARTS = 10_000  # the kernel's watermark_scale_factor counts ten-thousandths of the memory
_STRENGTH: dict[Action, int] = {"noop": 0, "reclaimed": 1, "all": 2}


@dataclass(frozen=True, slots=True)
class CombinedLimits:
    """Thresholds of the detector."""

    numa_free_below_watermark_times: int = 4
    kswapd_rate_pages_per_s: float = 2000
    kswapd_exceed_times: int = 4
    numa_level: bool = True
    system_level: bool = True
    minimum_free_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CombinedReading:
    """Free memory and kswapd's counter at one moment; None or absent is unknown, and never evidence."""

    watermark_scale_factor: int | None
    system_total_bytes: int | None
    system_free_bytes: int | None
    numa_total_bytes: Mapping[str, int]
    numa_free_bytes: Mapping[str, int]
    kswapd_steal_pages: int | None

    def watermark_bytes(self, total_bytes: int | None) -> float | None:
        """Free memory below this is pressure: total * scale / 10000."""
        if total_bytes is None or self.watermark_scale_factor is None:
            return None
        return total_bytes * self.watermark_scale_factor / WATERMARK_PARTS

    def system_threshold_bytes(self, limits: CombinedLimits) -> float | None:
        """Return the watermark of the whole node, or the configured minimum if that is more."""
        watermark = self.watermark_bytes(self.system_total_bytes)
        return None if watermark is None else max(watermark, limits.minimum_free_bytes)

    def system_below(self, limits: CombinedLimits) -> bool:
        """Whether the whole node is below its threshold."""
        threshold = self.system_threshold_bytes(limits)
        return threshold is not None and self.system_free_bytes is not None and self.system_free_bytes < threshold

    def numa_below(self, numa: str) -> bool:
        """Whether one NUMA node is below its watermark."""
        threshold, free = self.watermark_bytes(self.numa_total_bytes.get(numa)), self.numa_free_bytes.get(numa)
        return threshold is not None and free is not None and free < threshold


@dataclass(frozen=True, slots=True)
class RowCounters:
    """Steps in a row below a watermark by NUMA node, and with a busy kswapd."""

    numa_below: Mapping[str, int] = field(default_factory=dict)
    kswapd_busy: int = 0
    kswapd_steal_pages: int | None = None

    def counted(self, reading: CombinedReading, limits: CombinedLimits, period_s: float) -> "RowCounters":
        """The counters one step further. An unknown figure ends its row: only steps seen in a row count."""
        before, now = self.kswapd_steal_pages, reading.kswapd_steal_pages
        busy = before is not None and now is not None and now - before >= limits.kswapd_rate_pages_per_s * period_s
        return RowCounters(
            {
                numa: self.numa_below.get(numa, 0) + 1 if reading.numa_below(numa) else 0
                for numa in reading.numa_total_bytes
            },
            # From the second step on, because one reading of a counter says nothing about its rate.
            self.kswapd_busy + 1 if busy else 0,
            now,
        )

    def relieved(self, reading: CombinedReading) -> "RowCounters":
        """The counters between two steps: a NUMA node above its watermark starts a new row, nothing is counted up."""
        return replace(
            self, numa_below={n: count if reading.numa_below(n) else 0 for n, count in self.numa_below.items()}
        )


@dataclass(frozen=True, slots=True)
class MemoryActions:
    """The actions that the detector asks for, by NUMA node and for the whole system."""

    numa_actions: Mapping[str, Action]
    system_action: Action

    @property
    def met(self) -> bool:
        """Whether anything is asked for."""
        return self.system_action != "noop" or any(a != "noop" for a in self.numa_actions.values())

    @property
    def condition(self) -> str | None:
        """The node condition; only the system level raises one."""
        return CONDITION if self.system_action != "noop" else None


def judge(counters: RowCounters, reading: CombinedReading, limits: CombinedLimits) -> MemoryActions:
    """Actions for these counters and this reading; the strongest one wins."""
    numa_actions: dict[str, Action] = {}
    for numa in sorted(reading.numa_total_bytes, key=numa_order):
        # Both: a long row alone asks for nothing once the node is above its watermark again.
        below = limits.numa_level and reading.numa_below(numa)
        long = counters.numa_below.get(numa, 0) >= limits.numa_free_below_watermark_times
        numa_actions[numa] = ("all" if long else "reclaimed") if below else "noop"
    system: list[Action] = ["noop"]
    if limits.system_level and reading.system_below(limits):
        system.append("reclaimed")
    if limits.system_level and counters.kswapd_busy >= limits.kswapd_exceed_times:
        system.append("all")
    return MemoryActions(numa_actions, stronger(*system))


def stronger(*actions: Action) -> Action:
    """The one that reaches the most pods."""
    return max(actions, key=_STRENGTH.__getitem__)
