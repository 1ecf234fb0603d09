"""Settings of the reporter."""

from typing import Annotated, Any

from pydantic import Field

from services.reporter.core.batch_demand import ColocationStrategy
from services.reporter.core.batch_resources import CpuPolicy, MemoryPolicy
from services.reporter.core.mid.amount import MidMode, MidStrategy
from services.reporter.core.mid.reclaimable import PredictionRules
from services.reporter.core.node_metric.collect_policy import (
    LEAST_AGGREGATE_S,
    LEAST_REPORT_S,
    LEAST_WINDOW_S,
    MOST_S,
    MOST_WINDOWS,
    CollectPolicy,
    KnownMemoryPolicy,
)
from services.reporter.core.overcommit.bearable import CPU_RULES, MEMORY_RULES, LoadRules
from services.reporter.core.overcommit.bearing import BearingRules
from services.reporter.core.smoothing import SmoothingRules
from services.reporter.core.window import WindowRules
from shared.contracts.cluster.figures import MAX_LABELS, LabelKey
from shared.contracts.kube.overcommit import Resource
from shared.contracts.services import NODE_SERVICES
from shared.core.quantities import Seconds
from shared.settings import Settings

NAME = "reporter"
MOST_LABELS = MAX_LABELS - 2
"""Greatest number of labels, next to two of our own."""


PartPercent = Annotated[int, Field(ge=0, le=100)]
"""Whole percent of a node's capacity."""


class BatchSettings(Settings):
    """Koordinator's batch resources on the Node, for pods that request batch-cpu and batch-memory."""

    enabled: bool = False
    """Offers batch-cpu and batch-memory next to Katalyst's reclaimed resources, out of the same amount."""
    cpu_reclaim_percent: PartPercent = ColocationStrategy().cpu_reclaim_percent
    """Percent of the node's CPU that tenants, system and batch pods share; the rest is never lent."""
    memory_reclaim_percent: PartPercent = ColocationStrategy().memory_reclaim_percent
    """The same percent for memory."""
    cpu_policy: CpuPolicy = "usage"
    """usage: subtracts what tenants use. maxUsageRequest: subtracts the larger of use and request of each tenant."""
    memory_policy: MemoryPolicy = "usage"
    """As for CPU; request: subtracts what tenants request."""
    cpu_at_most_percent: PartPercent | None = None
    """Upper bound of batch-cpu, in percent of the node's CPU."""
    memory_at_most_percent: PartPercent | None = None
    """Upper bound of batch-memory, in percent of the node's memory."""
    degrade_after_s: Seconds = 60.0
    """Time without a new sample after which both resources are removed from the Node; running pods stay. Koordinator
    waits 900 s, and for an event."""
    by_numa: bool = False
    """Also reports both by NUMA node, in the zones of the CustomNodeResource; the parts add up to the offer."""

    @property
    def strategy(self) -> ColocationStrategy:
        """Return the strategy as the core takes it."""
        return ColocationStrategy(
            self.cpu_reclaim_percent,
            self.memory_reclaim_percent,
            self.cpu_policy,
            self.memory_policy,
            self.cpu_at_most_percent,
            self.memory_at_most_percent,
        )


class MidSettings(Settings):
    """Koordinator's mid resources on the Node, for pods that request mid-cpu and mid-memory."""

    enabled: bool = False
    """Offers mid-cpu and mid-memory: what prod pods request and do not use, without what is already sold."""
    mode: MidMode = "prediction"
    """prediction: what prod pods lend according to their past. static: fixed shares of the node, as far as they are
    unused."""
    cpu_at_most_percent: PartPercent = MidStrategy().cpu_at_most_percent
    """Upper bound of mid-cpu, in percent of the node's CPU."""
    memory_at_most_percent: PartPercent = MidStrategy().memory_at_most_percent
    """Upper bound of mid-memory, in percent of the node's memory."""
    unallocated_percent: PartPercent = MidStrategy().unallocated_percent
    """Percent of the unrequested capacity that is offered in addition to what prod pods lend."""
    static_cpu_percent: PartPercent = MidStrategy().static_cpu_percent
    """With mode static: mid-cpu, in percent of the node's CPU."""
    static_memory_percent: PartPercent = MidStrategy().static_memory_percent
    """With mode static: mid-memory, in percent of the node's memory."""
    cold_start_s: Annotated[float, Field(gt=0, le=2_592_000, allow_inf_nan=False)] = PredictionRules().cold_start_s
    """Seconds for which a pod must have been observed before it lends anything."""
    safety_margin_percent: PartPercent = PredictionRules().safety_margin_percent
    """Percent added to every peak of the past."""
    degrade_after_s: Seconds = 60.0
    """Time without a new sample after which both resources are removed from the Node; running pods stay. Koordinator
    waits 900 s, and for an event."""

    @property
    def strategy(self) -> MidStrategy:
        """Return the strategy as the core takes it."""
        return MidStrategy(
            self.mode,
            self.cpu_at_most_percent,
            self.memory_at_most_percent,
            self.unallocated_percent,
            self.static_cpu_percent,
            self.static_memory_percent,
        )

    @property
    def prediction(self) -> PredictionRules:
        """Return the rules that predict what prod pods lend."""
        return PredictionRules(self.cold_start_s, self.safety_margin_percent)


class NodeMetricSettings(Settings):
    """Koordinator's NodeMetric: the use of the node, its system and its pods, for every reader of that object."""

    enabled: bool = False
    """Writes the NodeMetric of this node, and creates it if it is missing; its spec sets the period."""
    change_percent: Annotated[int, Field(ge=0, le=100)] = 5
    """Skips a write if no use has changed by more than this percent since the last one, for at most four minutes."""
    aggregate_s: Annotated[int, Field(ge=LEAST_AGGREGATE_S, le=MOST_S)] = CollectPolicy().aggregate_s
    """Seconds over which uses are averaged, if the spec of the object does not say."""
    report_s: Annotated[int, Field(ge=LEAST_REPORT_S, le=MOST_S)] = CollectPolicy().report_s
    """Least seconds between two writes, if the spec does not say."""
    windows_s: Annotated[
        tuple[Annotated[int, Field(ge=LEAST_WINDOW_S, le=MOST_S)], ...], Field(max_length=MOST_WINDOWS)
    ] = CollectPolicy().windows_s
    """Windows in seconds for which percentiles are reported, if the spec names none."""
    memory: KnownMemoryPolicy = "usageWithoutPageCache"
    """What counts as used memory, if the spec does not say; usageWithPageCache: including pages of files."""

    @property
    def collected(self) -> CollectPolicy:
        """Return the policy for an object whose spec says nothing."""
        return CollectPolicy(self.aggregate_s, self.report_s, tuple(sorted(set(self.windows_s))), self.memory)


class ClusterMessageSettings(Settings):
    """What the node publishes to the cluster over the bus; the chart enables what the cluster reads."""

    offer: bool = False
    """Publishes offer and use (NodeOffer): at once when the offer changes, and every 10 seconds."""
    figures: bool = False
    """Publishes the series of node, pods and containers (PodFigures) every 15 seconds."""
    labels: Annotated[tuple[LabelKey, ...], Field(max_length=MOST_LABELS)] = ("app", "app.kubernetes.io/name")
    """Labels of pods that their series carry; a pod without a label goes without it."""


class OvercommitReportSettings(Settings):
    """What the node reports about the over-commitment that it can bear."""

    enabled: bool = False
    """Reports it in annotations of the CustomNodeResource, which central follows."""
    cpu_target_ratio: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = CPU_RULES.target
    """Share of the CPU that pods may use, if further pods use as much of their requests as the present ones do."""
    memory_target_ratio: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = MEMORY_RULES.target
    """The same for memory."""
    window_s: Seconds = 300.0
    """Use counts as its 95th percentile over this window; before the window is full nothing is reported."""
    hold_s: Seconds = 600.0
    """The lowest ratio of this window is reported: a fall at once, a rise after the window."""

    @property
    def rules(self) -> dict[Resource, BearingRules]:
        """Return the rules by resource; empty if the report is off."""
        loads: dict[Resource, LoadRules] = {
            "cpu": LoadRules(self.cpu_target_ratio, CPU_RULES.expected),
            "memory": LoadRules(self.memory_target_ratio, MEMORY_RULES.expected),
        }
        return {name: BearingRules(self.window_s, self.hold_s, load) for name, load in loads.items() if self.enabled}


class ReporterSettings(Settings):
    """How often the reporter writes, and how old its inputs may be."""

    ready_s: Seconds = 10.0
    """Seconds between two readiness heartbeats to central; a change is sent at once."""
    tick_s: Seconds = 1.0
    """Seconds after which the inputs are read again while no new allocation arrives."""
    refresh_s: Seconds = 60.0
    """Seconds after which changes that are not urgent (use, small rises) are written."""
    max_health_age_s: Seconds = 10.0
    """A service that is silent for longer counts as not ok."""
    max_allocation_age_s: Seconds = 30.0
    """An older allocation keeps its values in the object, and a condition reports that they are stale."""
    max_sample_age_s: Seconds = 15.0
    """Use from an older sample is left out."""
    rise_sample_s: Seconds = 5.0
    """Seconds between two samples of a rising offer; a fall is reported at once."""
    rise_window_s: Seconds = 15.0
    """A rise is reported as the average over this window. With the length of one sample, it is reported unaveraged,
    up to the largest step."""
    max_rise_cpu_millis: Annotated[int, Field(ge=1, le=1 << 40)] = 16_000
    """Largest rise of the reported CPU from sample to sample, in milli-cores; large machines recover in minutes."""
    max_rise_memory_bytes: Annotated[int, Field(ge=1, le=1 << 60)] = 32 << 30
    """Largest rise of the reported memory from sample to sample, in bytes."""
    services: tuple[str, ...] = NODE_SERVICES
    """The services whose health makes the node ready."""
    resource_status: bool = False
    """Writes the CPUs of LSE and LSR pods into their annotation `scheduling.koordinator.sh/resource-status`, as
    Koordinator's scheduler does (on Kubernetes; set it in the chart, which then grants the right)."""
    batch: BatchSettings = BatchSettings()
    """Koordinator's batch resources; off unless `enabled`."""
    mid: MidSettings = MidSettings()
    """Koordinator's mid resources; off unless `enabled`."""
    node_metric: NodeMetricSettings = NodeMetricSettings()
    """Koordinator's NodeMetric; off unless `enabled`."""
    cluster: ClusterMessageSettings = ClusterMessageSettings()
    """What the node publishes to the cluster over the bus; off unless `offer` or `figures`."""
    overcommit: OvercommitReportSettings = OvercommitReportSettings()
    """How much over-commitment the node can bear; off unless `enabled`."""
    fields: dict[str, dict[str, Any]] = {}
    """Settings of report fields, by field name: `fields: {reclaimed: {min_rise_cpu_millis: 100}}`."""


def rise_rules(settings: ReporterSettings) -> tuple[SmoothingRules, SmoothingRules]:
    """Return the smoothing rules of CPU and memory offers."""
    steps = (settings.max_rise_cpu_millis, settings.max_rise_memory_bytes)
    cpu, memory = (WindowRules.over(settings.rise_sample_s, settings.rise_window_s, max_step=step) for step in steps)
    return SmoothingRules(cpu), SmoothingRules(memory)
