"""Detects that the node uses too much of its memory, and evicts reclaimed pods until a lower mark.

The marks and the order are Koordinator's (docs/facts/koordinator-evict.md#memory-by-use). The goal is reached when the
node uses less, not when victims have been told to end. Off by default: `memory_pressure` uses the kernel's watermarks.
"""

from typing import Annotated, Self

from pydantic import Field, model_validator

from services.evictor.core.detectors.marks import EvictionMarks
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from shared.contracts.envelope import Reason
from shared.contracts.sample import PodReading
from shared.core.quantities import Percent

SCOPE = "memory.usage"
ORDER = "low priority first, then large use"


class MemoryUsageSettings(PluginSettings):
    """Two marks on the used memory, which is the total minus the available memory."""

    enabled: bool = False
    cooling_s: Annotated[float, Field(ge=0, le=3600)] = 4.0
    """Time after an eviction in which the plugin evicts no pod, if longer than the evictor's own."""
    threshold_percent: Percent = 70
    """Percent of used memory from which reclaimed pods are evicted."""
    lower_percent: Annotated[int, Field(ge=0, le=99)] | None = None
    """Percent of used memory at which eviction stops; not set: the threshold minus 2. It must be below the
    threshold."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.marks.usable:
            raise ValueError(f"lower_percent {self.lower_percent}: want less than threshold_percent, which is "
                             f"{self.threshold_percent}; lower it, or raise threshold_percent")  # fmt: skip
        return self

    @property
    def marks(self) -> EvictionMarks:
        """Return the marks as the detector takes them."""
        return EvictionMarks(self.threshold_percent, self.lower_percent)


def evaluate(relieving: bool, view: View, settings: MemoryUsageSettings) -> tuple[bool, Pressure | Silence]:
    """Compare used memory with the threshold, and after the threshold was met with the lower mark."""
    memory = _memory(view)
    if memory is None:
        return False, "unknown"
    used, total = memory
    # Without the memory of it one victim would do that brings the node just below the threshold, and soon the next.
    relieving = settings.marks.met(used, total) or (relieving and used > settings.marks.target(total))
    return relieving, _pressure(used, total, settings.marks.target(total), settings) if relieving else "calm"


def near(view: View, settings: MemoryUsageSettings) -> Pressure | None:
    """Compare used memory with the threshold, and above the threshold with the lower mark."""
    memory = _memory(view)
    if memory is None:
        return None
    used, total = memory
    marks = settings.marks
    line = marks.target(total) if marks.met(used, total) else marks.threshold_percent * total // 100
    return _pressure(used, total, line, settings)


def _memory(view: View) -> tuple[int, int] | None:
    """Return used and total bytes; None if a figure is missing or impossible."""
    node = view.sample.node_reading
    total, available = node.memory_total_bytes, node.memory_available_bytes
    if total is None or available is None or not 0 <= available <= total or total == 0:
        return None
    return total - available, total


def _pressure(used: int, total: int, threshold: int, settings: MemoryUsageSettings) -> Pressure:
    return Pressure(
        hard=True,
        scope=SCOPE,
        observed=used,
        threshold=threshold,
        why=Reason(
            rule="memory in use has reached the threshold, and is above the lower mark",
            numbers={
                "used_bytes": used,
                "total_bytes": total,
                "used_percent": round(used * 100 / total, 1),
                "threshold_percent": settings.threshold_percent,
                "lower_percent": settings.marks.target_percent,
            },
        ),
    )


def rank(view: View, _pressure: Pressure, _settings: MemoryUsageSettings) -> tuple[Candidate, ...]:
    """Rank reclaimed pods: low priority first, then large use; a pod without a figure may free nothing and is last."""
    mine = sorted((r for r in view.pods if r.pod.qos == "reclaimed_cores"), key=_order)
    return tuple(
        Candidate(
            reading.pod,
            Reason(rule=ORDER, numbers={"priority": reading.pod.priority, "usage_bytes": reading.memory_usage_bytes}),
            reading.memory_usage_bytes,
        )
        for reading in mine
    )


def _order(reading: PodReading) -> tuple[int, int, str, str]:
    used = reading.memory_usage_bytes
    return reading.pod.priority, 1 if used is None else -used, reading.pod.key, reading.pod.uid


PLUGIN = Plugin(
    name="memory-usage-eviction-plugin",
    settings=MemoryUsageSettings,
    start=lambda: False,
    evaluate=evaluate,
    rank=rank,
    near=near,
)
