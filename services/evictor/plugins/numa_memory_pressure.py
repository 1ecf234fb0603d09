"""Detects a memory shortage on one NUMA node: its free memory against the kernel's watermarks, over time.

The detector is `numa_memory_pressure` (docs/facts/katalyst-eviction.md#numa-memory), and `memory_victims` orders the
victims. Counts advance once a period however many samples arrive; falling below min counts at once. Off by default: the
tutorial's combined plugin (`memory_pressure`) is on and watches NUMA nodes, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from services.evictor.core.detectors.memory.combined import Action, MemoryActions
from services.evictor.core.detectors.memory.numa import SCOPE, Marks, Patience, action, adjusted, by_scale, judge
from services.evictor.core.detectors.memory.pods import ranked
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from services.evictor.core.plugin_kit.numa_order import numa_order
from services.evictor.core.plugin_kit.sample_ring import are_lost
from shared.contracts.envelope import Reason
from shared.contracts.sample import NumaReading


class NumaMemoryPressureSettings(PluginSettings):
    """Patience of the detector, and the least use of a victim."""

    enabled: bool = False
    period_s: Annotated[float, Field(gt=0, le=600)] = 5.0
    """How often counts advance; while the node rests, at most once per `metrics.rest_period_s`."""
    numa_free_below_watermark_times: Annotated[int, Field(ge=1)] = 12
    """Count from which tenants' pods are candidates as well."""
    numa_free_below_watermark_times_reclaimed: Annotated[int, Field(ge=0)] = 6
    """Count above which reclaimed pods are candidates."""
    numa_free_constraint_fast_eviction_wait_cycle: Annotated[int, Field(ge=0)] = 1
    """Steps below min after which tenants' pods are candidates as well."""
    numa_victim_minimum_utilization_ratio: Annotated[float, Field(ge=0, le=1)] = 0.001
    """Least share of the node's memory that a victim uses."""

    @property
    def patience(self) -> Patience:
        """Return the patience as the detector takes it."""
        return Patience(
            self.numa_free_below_watermark_times,
            self.numa_free_below_watermark_times_reclaimed,
            self.numa_free_constraint_fast_eviction_wait_cycle,
        )


@dataclass(frozen=True, slots=True)
class NumaRows:
    """Counts by NUMA node, and the time of the last advance."""

    counts: Mapping[str, int] = field(default_factory=dict)
    stepped_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class NumaShortage(Pressure):
    """The pressure, and what each NUMA node requests."""

    actions: Mapping[str, Action] = field(default_factory=dict)
    totals_bytes: Mapping[str, int] = field(default_factory=dict)
    numa: str = ""
    """The NUMA node of these figures."""


def evaluate(
    memory: NumaRows, view: View, settings: NumaMemoryPressureSettings
) -> tuple[NumaRows, NumaShortage | Silence]:
    """Judge this sample; advance the counts when a period is over."""
    marks = {str(numa.numa): mark for numa in view.sample.numas if (mark := _marks(view, numa)) is not None}
    free = {str(n.numa): n.memory_free_bytes for n in view.sample.numas if n.memory_free_bytes is not None}
    if not marks.keys() & free.keys():
        return NumaRows(), "unknown"
    memory, actions = _advance(memory, free, marks, view, settings)
    acting = [numa for numa, asked in actions.items() if asked != "noop"]
    if not acting:
        return memory, "calm"
    fullest = min(acting, key=lambda numa: (free[numa] - marks[numa].low_bytes, numa_order(numa)))
    return memory, NumaShortage(
        hard=True,
        scope=SCOPE,
        observed=free[fullest],
        threshold=marks[fullest].low_bytes,
        below=True,
        why=Reason(
            rule="free memory of a NUMA node below its watermarks",
            numbers={
                "numa": fullest,
                "free_bytes": free[fullest],
                "min_bytes": marks[fullest].min_bytes,
                "low_bytes": marks[fullest].low_bytes,
            }
            | {f"numa{numa}_action": asked for numa, asked in actions.items()},
        ),
        actions=actions,
        numa=fullest,
        totals_bytes={str(n.numa): n.memory_total_bytes for n in view.sample.numas if n.memory_total_bytes is not None},
    )


def _advance(
    memory: NumaRows,
    free: Mapping[str, int],
    marks: Mapping[str, Marks],
    view: View,
    settings: NumaMemoryPressureSettings,
) -> tuple[NumaRows, Mapping[str, Action]]:
    since_s = None if memory.stepped_at_s is None else view.t_s - memory.stepped_at_s
    patience = settings.patience
    # A sample that was made early decides with the counts as they stand: it must not make a row out of one moment.
    if since_s is not None and since_s < settings.period_s:
        return memory, {
            numa: action(memory.counts.get(numa, 0), free[numa], marks[numa], patience)
            for numa in sorted(marks.keys() & free.keys(), key=numa_order)
        }
    # After a gap it is unknown whether the shortage continued, so the counted steps were not consecutive.
    lost = are_lost(since_s, settings.period_s, view.max_gap_s)
    counts, actions = judge({} if lost else memory.counts, free, marks, patience)
    return NumaRows(counts, view.t_s), actions


def _marks(view: View, numa: NumaReading) -> Marks | None:
    """Return the kernel's watermarks if known, otherwise a share of the node's memory; None if neither is known."""
    low, lowest = numa.watermark_low_bytes, numa.watermark_min_bytes
    if low is not None and lowest is not None and numa.inactive_file_bytes is not None:
        return adjusted(lowest, low, numa.inactive_file_bytes)
    total, scale = numa.memory_total_bytes, view.sample.node_reading.watermark_scale_factor
    return None if total is None or scale is None else by_scale(total, scale)


def rank(view: View, pressure: NumaShortage, settings: NumaMemoryPressureSettings) -> tuple[Candidate, ...]:
    """Rank reclaimed pods before tenants, low priority first, large use of the affected nodes first."""
    return ranked(
        view.pods,
        MemoryActions(pressure.actions, "noop"),
        numa_total_bytes=pressure.totals_bytes,
        min_utilization_ratio=settings.numa_victim_minimum_utilization_ratio,
        short=pressure.numa,
    )


PLUGIN = Plugin(
    name="numa-memory-pressure-eviction-plugin",
    settings=NumaMemoryPressureSettings,
    start=NumaRows,
    evaluate=evaluate,
    rank=rank,
)
