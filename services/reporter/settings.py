"""Define the settings of the reporter."""

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
"""Beside two of our own."""


PartPercent = Annotated[int, Field(ge=0, le=100)]
"""Whole percent of what a node has; it never offers more than that."""


class BatchSettings(Settings):
    """Koordinator's batch resources on the Node, for pods that ask for batch-cpu and batch-memory."""

    enabled: bool = False
    """Offers batch-cpu and batch-memory beside Katalyst's reclaimed resources, on one account with them."""
    cpu_reclaim_percent: PartPercent = ColocationStrategy().cpu_reclaim_percent
    """Percent of the node's CPU that tenants, system and batch pods share; the rest is never lent."""
    memory_reclaim_percent: PartPercent = ColocationStrategy().memory_reclaim_percent
    """The same percent for memory."""
    cpu_policy: CpuPolicy = "usage"
    """usage: less what tenants use. maxUsageRequest: less the larger of use and request of each tenant."""
    memory_policy: MemoryPolicy = "usage"
    """As for CPU; request: less what tenants ask for."""
    cpu_at_most_percent: PartPercent | None = None
    """batch-cpu is at most this percent of the node's CPU."""
    memory_at_most_percent: PartPercent | None = None
    """batch-memory is at most this percent of the node's memory."""
    degrade_after_s: Seconds = 60.0
    """Without a new sample for so many seconds both leave the Node; pods that run stay. Koordinator waits 900 s, and
    for an event."""
    by_numa: bool = False
    """Tells both by NUMA node as well, in the zones of the CustomNodeResource: parts that add up to what is offered."""

    @property
    def strategy(self) -> ColocationStrategy:
        """How much is lent."""
        return ColocationStrategy(
            self.cpu_reclaim_percent,
            self.memory_reclaim_percent,
            self.cpu_policy,
            self.memory_policy,
            self.cpu_at_most_percent,
            self.memory_at_most_percent,
        )


class MidSettings(Settings):
    """Koordinator's mid resources on the Node, for pods that ask for mid-cpu and mid-memory."""

    enabled: bool = False
    """Offers mid-cpu and mid-memory: what prod pods asked for and do not use, and never what others were sold."""
    mode: MidMode = "prediction"
    """prediction: what prod pods lend by their past. static: fixed parts of the node, as far as they are unused."""
    cpu_at_most_percent: PartPercent = MidStrategy().cpu_at_most_percent
    """mid-cpu is at most this percent of the node's CPU."""
    memory_at_most_percent: PartPercent = MidStrategy().memory_at_most_percent
    """mid-memory is at most this percent of the node's memory."""
    unallocated_percent: PartPercent = MidStrategy().unallocated_percent
    """Percent that is offered of what no tenant asked for, beside what prod pods lend."""
    static_cpu_percent: PartPercent = MidStrategy().static_cpu_percent
    """With mode static: mid-cpu, as percent of the node's CPU."""
    static_memory_percent: PartPercent = MidStrategy().static_memory_percent
    """With mode static: mid-memory, as percent of the node's memory."""
    cold_start_s: Annotated[float, Field(gt=0, le=2_592_000, allow_inf_nan=False)] = PredictionRules().cold_start_s
    """Seconds that a pod must have been observed for before it lends anything."""
    safety_margin_percent: PartPercent = PredictionRules().safety_margin_percent
    """Percent that is added to every peak of the past."""
    degrade_after_s: Seconds = 60.0
    """Without a new sample for so many seconds both leave the Node; pods that run stay. Koordinator waits 900 s, and
    for an event."""

    @property
    def strategy(self) -> MidStrategy:
        """How much is offered."""
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
        """How what prod pods lend is found."""
        return PredictionRules(self.cold_start_s, self.safety_margin_percent)


class NodeMetricSettings(Settings):
    """Koordinator's NodeMetric: what the node, its system and its pods use, for whoever reads that object."""

    enabled: bool = False
    """Writes the NodeMetric of this node, and makes it where it is missing; its spec says how often."""
    change_percent: Annotated[int, Field(ge=0, le=100)] = 5
    """Uses that have all moved by no more than this percent since they were written are not written again, but after
    four minutes."""
    aggregate_s: Annotated[int, Field(ge=LEAST_AGGREGATE_S, le=MOST_S)] = CollectPolicy().aggregate_s
    """Seconds over which uses are averaged, where the spec of the object does not say so."""
    report_s: Annotated[int, Field(ge=LEAST_REPORT_S, le=MOST_S)] = CollectPolicy().report_s
    """Seconds between two writes at least, where the spec does not say so."""
    windows_s: Annotated[
        tuple[Annotated[int, Field(ge=LEAST_WINDOW_S, le=MOST_S)], ...], Field(max_length=MOST_WINDOWS)
    ] = CollectPolicy().windows_s
    """Windows in seconds that have percentiles, where the spec names none."""
    memory: KnownMemoryPolicy = "usageWithoutPageCache"
    """What counts as used memory, where the spec does not say so; usageWithPageCache: with pages of files."""

    @property
    def collected(self) -> CollectPolicy:
        """How it is collected where its spec says nothing."""
        return CollectPolicy(self.aggregate_s, self.report_s, tuple(sorted(set(self.windows_s))), self.memory)


class ClusterMessageSettings(Settings):
    """What the node tells the cluster over the bus; the chart switches on what somebody there reads."""

    offer: bool = False
    """Says what is offered and used (NodeOffer): at once when the offer changes, and every 10 seconds."""
    figures: bool = False
    """Says the series of node, pods and containers (PodFigures) every 15 seconds."""
    labels: Annotated[tuple[LabelKey, ...], Field(max_length=MOST_LABELS)] = ("app", "app.kubernetes.io/name")
    """Labels of pods that stand beside their series; a pod without one goes without."""


class OvercommitReportSettings(Settings):
    """What the node says of how far it can bear to be over-committed."""

    enabled: bool = False
    """Says it in annotations of the CustomNodeResource, which central goes by."""
    cpu_target_ratio: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = CPU_RULES.target
    """Part of the CPU that pods may come to use, if further ones use of their requests what those there do."""
    memory_target_ratio: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = MEMORY_RULES.target
    """The same of memory."""
    window_s: Seconds = 300.0
    """Uses count by their 95th percentile over so many seconds; before that nothing is said."""
    hold_s: Seconds = 600.0
    """The lowest ratio of so many seconds is said: a fall at once, a rise so much later."""

    @property
    def rules(self) -> dict[Resource, BearingRules]:
        """How it is found, by resource; nothing while it is off."""
        loads: dict[Resource, LoadRules] = {
            "cpu": LoadRules(self.cpu_target_ratio, CPU_RULES.expected),
            "memory": LoadRules(self.memory_target_ratio, MEMORY_RULES.expected),
        }
        return {name: BearingRules(self.window_s, self.hold_s, load) for name, load in loads.items() if self.enabled}


class ReporterSettings(Settings):
    """How often the node speaks for itself, and how old its inputs may be."""

    ready_s: Seconds = 10.0
    """Seconds between two readiness heartbeats to central; a change is sent at once."""
    tick_s: Seconds = 1.0
    """Seconds after which the inputs are read again while no new allocation arrives."""
    refresh_s: Seconds = 60.0
    """Seconds after which changes that are not urgent (usage, tiny rises) are written."""
    max_health_age_s: Seconds = 10.0
    """A service silent for longer counts as not ok."""
    max_allocation_age_s: Seconds = 30.0
    """An older allocation keeps its values in the object, and a condition says that they are old."""
    max_sample_age_s: Seconds = 15.0
    """Usage from an older sample is left out."""
    rise_sample_s: Seconds = 5.0
    """Seconds between two samples of an offer that rises; a fall is reported at once."""
    rise_window_s: Seconds = 15.0
    """A rise is reported as the average over so many seconds; as long as one sample: as it is, by the largest step."""
    max_rise_cpu_millis: Annotated[int, Field(ge=1, le=1 << 40)] = 16_000
    """Milli-cores by which the reported CPU rises at most from sample to sample; large machines are back in minutes."""
    max_rise_memory_bytes: Annotated[int, Field(ge=1, le=1 << 60)] = 32 << 30
    """Bytes by which the reported memory rises at most from sample to sample."""
    services: tuple[str, ...] = NODE_SERVICES
    """The services whose health makes the node ready."""
    resource_status: bool = False
    """Writes the CPUs of LSE and LSR pods into their annotation `scheduling.koordinator.sh/resource-status`, as
    Koordinator's scheduler does (on Kubernetes; in the chart's settings, which then grant it)."""
    batch: BatchSettings = BatchSettings()
    """Koordinator's batch resources; off unless `enabled`."""
    mid: MidSettings = MidSettings()
    """Koordinator's mid resources; off unless `enabled`."""
    node_metric: NodeMetricSettings = NodeMetricSettings()
    """Koordinator's NodeMetric; off unless `enabled`."""
    cluster: ClusterMessageSettings = ClusterMessageSettings()
    """What the node tells the cluster over the bus; off unless `offer` or `figures` say so."""
    overcommit: OvercommitReportSettings = OvercommitReportSettings()
    """How far the node can bear to be over-committed; off unless `enabled`."""
    fields: dict[str, dict[str, Any]] = {}
    """Settings of single report fields, by the field's name: `fields: {reclaimed: {min_rise_cpu_millis: 100}}`."""


def rise_rules(settings: ReporterSettings) -> tuple[SmoothingRules, SmoothingRules]:
    """How offers of CPU and of memory rise."""
    steps = (settings.max_rise_cpu_millis, settings.max_rise_memory_bytes)
    cpu, memory = (WindowRules.over(settings.rise_sample_s, settings.rise_window_s, max_step=step) for step in steps)
    return SmoothingRules(cpu), SmoothingRules(memory)
