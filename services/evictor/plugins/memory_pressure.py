"""Detects a memory shortage of the node: NUMA watermarks, the system's watermark, and a busy kswapd.

The detector is `memory_pressure` (docs/facts/katalyst-eviction.md#the-combined-memory-plugin), and `memory_victims`
orders the victims. Samples arrive at any time: falling below a watermark counts at once, while the rows of steps that
escalate to tenants' pods advance once a period, however many samples arrive.
"""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from services.evictor.core.detectors.memory.combined import (
    SCOPE,
    CombinedLimits,
    CombinedReading,
    MemoryActions,
    RowCounters,
    judge,
)
from services.evictor.core.detectors.memory.pods import ranked
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from services.evictor.core.plugin_kit.sample_ring import are_lost
from shared.contracts.envelope import Reason


class MemoryPressureSettings(PluginSettings):
    """Thresholds of the detector; the defaults are the tutorial's."""

    period_s: Annotated[float, Field(gt=0, le=600)] = 5.0
    """How often the rows of steps advance; while the node rests, at most once per `metrics.rest_period_s`."""
    numa_free_below_watermark_times: Annotated[int, Field(ge=1)] = 4
    """Consecutive steps below a NUMA node's watermark after which tenants' pods are candidates as well."""
    kswapd_rate_pages_per_s: Annotated[float, Field(gt=0)] = 2000
    """Pages per second reclaimed by kswapd from which a step counts as busy."""
    kswapd_exceed_times: Annotated[int, Field(ge=1)] = 4
    """Consecutive busy steps after which tenants' pods are candidates."""
    numa_level: bool = True
    """Watches every NUMA node separately."""
    system_level: bool = True
    """Watches the whole node: its watermark and kswapd."""
    minimum_free_bytes: Annotated[int, Field(ge=0)] = 0
    """The node is short of memory below this amount, even if its watermark is lower. Set
    `metrics.memory_watch_bytes` to the same amount, so that a fall below it is measured at once instead of in the
    next period."""

    @property
    def limits(self) -> CombinedLimits:
        """Return the limits as the detector takes them."""
        return CombinedLimits(
            self.numa_free_below_watermark_times,
            self.kswapd_rate_pages_per_s,
            self.kswapd_exceed_times,
            self.numa_level,
            self.system_level,
            self.minimum_free_bytes,
        )


@dataclass(frozen=True, slots=True)
class MemoryRows:
    """Rows of steps, and the time of the last counted step."""

    counters: RowCounters = field(default_factory=RowCounters)
    stepped_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class MemoryShortage(Pressure):
    """The pressure with the actions that the detector requests."""

    actions: MemoryActions = field(default_factory=lambda: MemoryActions({}, "noop"))
    numa: str | None = None
    """The NUMA node of these figures; None: the whole node."""


def evaluate(
    memory: MemoryRows, view: View, settings: MemoryPressureSettings
) -> tuple[MemoryRows, MemoryShortage | Silence]:
    """Judge this sample; advance the rows of steps when a period is over."""
    reading, limits = _reading(view), settings.limits
    if reading.system_free_bytes is None or reading.watermark_bytes(reading.system_total_bytes) is None:
        return MemoryRows(), "unknown"
    memory = _advance(memory, reading, view, settings)
    actions = judge(memory.counters, reading, limits)
    return memory, _shortage(actions, reading, limits) if actions.met else "calm"


def near(view: View, settings: MemoryPressureSettings) -> MemoryShortage | None:
    """Compare free memory of the whole node with its threshold, and name whom a lasting shortage would evict."""
    reading, limits = _reading(view), settings.limits
    free, threshold = reading.system_free_bytes, reading.system_threshold_bytes(limits)
    if free is None or threshold is None or not settings.system_level:
        return None
    return _shortage(MemoryActions({}, "all"), reading, limits)


def _advance(memory: MemoryRows, reading: CombinedReading, view: View, settings: MemoryPressureSettings) -> MemoryRows:
    t_s = view.t_s
    since = None if memory.stepped_at_s is None else t_s - memory.stepped_at_s
    # After a gap the rows restart, because unobserved steps are not consecutive.
    if since is None or are_lost(since, settings.period_s, view.max_gap_s):
        return MemoryRows(RowCounters().counted(reading, settings.limits, settings.period_s), t_s)
    # A sample between two steps may end a row, but not lengthen it, however many samples come.
    if since < settings.period_s:
        return MemoryRows(memory.counters.relieved(reading), memory.stepped_at_s)
    return MemoryRows(memory.counters.counted(reading, settings.limits, since), t_s)


def rank(view: View, pressure: MemoryShortage, _settings: MemoryPressureSettings) -> tuple[Candidate, ...]:
    """Rank reclaimed pods before tenants, low priority first, large use first."""
    return ranked(view.pods, pressure.actions, short=pressure.numa)


def _reading(view: View) -> CombinedReading:
    node, numas = view.sample.node_reading, view.sample.numas
    return CombinedReading(
        node.watermark_scale_factor,
        node.memory_total_bytes,
        node.memory_free_bytes,
        {str(n.numa): n.memory_total_bytes for n in numas if n.memory_total_bytes is not None},
        {str(n.numa): n.memory_free_bytes for n in numas if n.memory_free_bytes is not None},
        node.kswapd_steal_pages,
    )


def _shortage(actions: MemoryActions, reading: CombinedReading, limits: CombinedLimits) -> MemoryShortage:
    """Return the figures of the level that requests most: the whole node's, otherwise those of the fullest NUMA
    node."""
    free, threshold = reading.system_free_bytes, reading.system_threshold_bytes(limits)
    fullest: str | None = None
    if actions.system_action == "noop":
        acting = [n for n, action in actions.numa_actions.items() if action != "noop"]
        fullest = min(acting, key=lambda n: (reading.numa_free_bytes[n], n))
        free, threshold = reading.numa_free_bytes[fullest], reading.watermark_bytes(reading.numa_total_bytes[fullest])
    return MemoryShortage(
        hard=True,
        scope=SCOPE,
        observed=free or 0,
        threshold=threshold or 0,
        condition=actions.condition,
        below=True,
        why=Reason(
            rule="free memory below watermark or kswapd busy",
            numbers={"free_bytes": free, "threshold_bytes": threshold, "system_action": actions.system_action}
            | {f"numa{n}_action": action for n, action in actions.numa_actions.items()},
        ),
        actions=actions,
        numa=fullest,
    )


PLUGIN = Plugin(
    name="memory-pressure-eviction-plugin",
    settings=MemoryPressureSettings,
    start=MemoryRows,
    evaluate=evaluate,
    rank=rank,
    near=near,
)
