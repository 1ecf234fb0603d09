"""Where each value of Koordinator's agent and manager goes in Sublet, and why some go nowhere.

Facts: docs/facts/koordinator-slo-config.md#keys, docs/facts/other-agents.md#arguments.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from services.central.core.slo.keys import SloKey
from shared.core.text.durations import NS_PER_S, duration_ns
from sublet.migrate.plan.line import Effect

GATES: Mapping[str, tuple[bool, str]] = {
    "BECPUSuppress": (True, "Beta"),
    "CPUBurst": (True, "Beta"),
    "RdtResctrl": (True, "Beta"),
    "NodeTopologyReport": (True, "Beta"),
    **dict.fromkeys(
        ("AuditEvents", "AuditEventsHTTPHandler", "BECPUManager", "BECPUEvict", "BEMemoryEvict", "CPUEvict",
         "MemoryEvict", "CPUAllocatableEvict", "MemoryAllocatableEvict", "SystemConfig", "CgroupReconcile",
         "Accelerators", "RDMADevices", "CPICollector", "Libpfm4", "ResctrlCollector", "PSICollector",
         "BlkIOReconcile", "ColdPageCollector", "HugePageReport", "PodResourcesProxy", "HamiCoreVGPUMonitor",
         "PerCPUMetric", "NodeMetricPromMetrics"),
        (False, "Alpha"),
    ),
}  # fmt: skip
"""Each gate of koordlet, whether it is on by default, and its stage."""


@dataclass(frozen=True, slots=True)
class FieldRule:
    """What becomes of one field; `gate`: only where koordlet has it on.

    `convert` makes the setting of values that `services.central.core.slo.settings` says nothing of.
    """

    key: str = ""
    """The value of the chart that it maps to; empty where there is none."""
    note: str = ""
    effect: Effect = "maps"
    convert: Callable[[Any], Any] = lambda value: value
    gate: str = ""
    also: str = ""
    """A second value of the chart that the same switch stands for."""


def _advisor(name: str) -> FieldRule:
    return FieldRule(f"settings.advisor.policies.koordinator.{name}", gate="BECPUSuppress")


def _quota_burst(name: str) -> FieldRule:
    return FieldRule(f"settings.qrm.quota_burst.{name}", gate="CPUBurst")


def _plugin(plugin: str, name: str, gate: str) -> FieldRule:
    return FieldRule(f"settings.evictor.plugins.{plugin}.{name}", gate=gate)


def _batch(name: str, note: str = "") -> FieldRule:
    return FieldRule(f"settings.reporter.batch.{name}", note)


def _mid(name: str, convert: Callable[[Any], Any] = lambda value: value) -> FieldRule:
    return FieldRule(f"settings.reporter.mid.{name}", convert=convert)


def _nothing(note: str) -> FieldRule:
    return FieldRule(note=note, effect="nothing")


_SATISFACTION, _MEMORY, _ALLOCATABLE = "cpu_satisfaction", "memory_usage", "reclaimed_allocatable"

_REPORTS = FieldRule(effect="kept", note="the spec of each NodeMetric says it, and is read (reporter.node_metric)")
_NOT_YET = "not done yet (docs/koordinator.md): leave koordlet on nodes that need it, or do without"
COLOCATION: Mapping[str, FieldRule] = {
    "enable": FieldRule(
        "settings.reporter.batch.enabled",
        "two writers of batch-cpu would undo each other: set it when Koordinator's manager no longer writes it "
        "(--controllers=*,-noderesource)",
        effect="later",
        also="settings.reporter.mid.enabled",
    ),
    "cpuReclaimThresholdPercent": _batch("cpu_reclaim_percent"),
    "memoryReclaimThresholdPercent": _batch("memory_reclaim_percent"),
    "cpuCalculatePolicy": _batch("cpu_policy"),
    "memoryCalculatePolicy": _batch("memory_policy"),
    "batchCPUThresholdPercent": _batch("cpu_at_most_percent"),
    "batchMemoryThresholdPercent": _batch("memory_at_most_percent"),
    "degradeTimeMinutes": _batch("degrade_after_s", "a minute is enough here: a sample comes each second"),
    "updateTimeThresholdSeconds": FieldRule("settings.reporter.refresh_s"),
    "resourceDiffThreshold": FieldRule(
        "settings.reporter.fields.batch.urgent_fall_percent", convert=lambda part: round(part * 100)
    ),
    "metric": _REPORTS,
    "midReclaimMode": _mid("mode", lambda word: "static" if word == "static" else "prediction"),
    "midCPUThresholdPercent": _mid("cpu_at_most_percent"),
    "midMemoryThresholdPercent": _mid("memory_at_most_percent"),
    "midUnallocatedPercent": _mid("unallocated_percent"),
    "midStaticCPUReservedPercent": _mid("static_cpu_percent"),
    "midStaticMemoryReservedPercent": _mid("static_memory_percent"),
}
_TENANTS_FOR_CPU = _nothing("evicts tenants; here reclaimed pods alone go for CPU")
THRESHOLDS: Mapping[str, FieldRule] = {
    "enable": FieldRule("settings.advisor.policy", gate="BECPUSuppress"),
    "cpuSuppressThresholdPercent": _advisor("suppress_threshold_percent"),
    "cpuSuppressMinPercent": _advisor("suppress_min_percent"),
    "cpuSuppressPolicy": _advisor("suppress_policy"),
    "memoryEvictThresholdPercent": _plugin(_MEMORY, "threshold_percent", "BEMemoryEvict"),
    "memoryEvictLowerPercent": _plugin(_MEMORY, "lower_percent", "BEMemoryEvict"),
    "cpuEvictBESatisfactionLowerPercent": _plugin(_SATISFACTION, "lower_percent", "BECPUEvict"),
    "cpuEvictBESatisfactionUpperPercent": _plugin(_SATISFACTION, "upper_percent", "BECPUEvict"),
    "cpuEvictBEUsageThresholdPercent": _plugin(_SATISFACTION, "usage_threshold_percent", "BECPUEvict"),
    "cpuEvictTimeWindowSeconds": _plugin(_SATISFACTION, "window_samples", "BECPUEvict"),
    "cpuEvictPolicy": _plugin(_SATISFACTION, "limit", "BECPUEvict"),
    "memoryAllocatableEvictThresholdPercent": _plugin(_ALLOCATABLE, "threshold_percent", "MemoryAllocatableEvict"),
    "memoryAllocatableEvictLowerPercent": _plugin(_ALLOCATABLE, "lower_percent", "MemoryAllocatableEvict"),
    "allocatableEvictPriorityThreshold": FieldRule(
        f"settings.evictor.plugins.{_ALLOCATABLE}.highest_priority", gate="MemoryAllocatableEvict"
    ),
    "cpuAllocatable": _nothing("one threshold holds for CPU and memory: that of memory"),
    "cpuEvictThresholdPercent": _TENANTS_FOR_CPU,
    "cpuEvictLowerPercent": _TENANTS_FOR_CPU,
    "evictEnabledPriorityThreshold": _nothing("reclaimed pods alone are evicted for this; protect others by namespace"),
}
_OF_KERNEL = _nothing(f"settings of the node's kernel: {_NOT_YET}; set them by the node's own configuration")
FIELDS: Mapping[SloKey, Mapping[str, FieldRule]] = {
    "colocation-config": COLOCATION,
    "resource-threshold-config": THRESHOLDS,
    "resource-qos-config": {
        "": _nothing(f"network by class, disks that are not named by a device, and disks of tenants: {_NOT_YET}")
    },
    "cpu-burst-config": {
        "policy": FieldRule("settings.qrm.burst_percent", gate="CPUBurst", also="settings.qrm.quota_burst.enabled"),
        "cpuBurstPercent": FieldRule("settings.qrm.burst_percent", "at most what the quota is", gate="CPUBurst"),
        "cfsQuotaBurstPercent": _quota_burst("most_percent"),
        "cfsQuotaBurstPeriodSeconds": _quota_burst("budget_s"),
        "sharePoolThresholdPercent": _quota_burst("share_pool_percent"),
    },
    "system-config": {"": _OF_KERNEL},
    "host-application-config": {
        "": _nothing("nothing but name, classes and cgroup of an application is read; nothing to do"),
        "applications": FieldRule("settings.metrics.host_applications"),
    },
    "cpu-normalization-config": {
        "": _nothing("the ratio in the Node's annotation is read; keep Koordinator's manager, or write it by hand")
    },
    "resource-amplification-config": {
        "": _nothing("the raw amounts in the Node's annotation are read; keep Koordinator's manager for it")
    },
}
"""By key of the ConfigMap, then by field; a field is found by its name, else by the longest beginning of it."""

QUALITY_PARTS: Mapping[str, tuple[str, str]] = {
    "memoryQOS": ("settings.qrm.memory_qos.", "CgroupReconcile"),
    "cpuQOS": ("settings.qrm.group_identity.", ""),
    "resctrlQOS": ("settings.qrm.resctrl.", "RdtResctrl"),
    "blkioQOS": ("settings.qrm.block_io.", "BlkIOReconcile"),
}
"""Parts of a class in `resource-qos-config`: where all classes of it are together, and the gate of koordlet."""

FOLLOWED_GATES: Mapping[str, str] = {
    "BECPUSuppress": "enable",
    "CPUBurst": "policy",
    "CgroupReconcile": "enable",
    "RdtResctrl": "enable",
    "BlkIOReconcile": "enable",
}
"""Gates of what central switches on by this field of the ConfigMap, for it knows no gate."""

GATE_RULES: Mapping[str, FieldRule] = {
    "BECPUSuppress": FieldRule(effect="kept", note="advisor.policy, where the ConfigMap switches it on"),
    "BECPUEvict": FieldRule(f"settings.evictor.plugins.{_SATISFACTION}.enabled"),
    "BEMemoryEvict": FieldRule(f"settings.evictor.plugins.{_MEMORY}.enabled"),
    "MemoryAllocatableEvict": FieldRule(f"settings.evictor.plugins.{_ALLOCATABLE}.enabled"),
    "CPUAllocatableEvict": FieldRule(f"settings.evictor.plugins.{_ALLOCATABLE}.enabled"),
    "CPUEvict": _TENANTS_FOR_CPU,
    "MemoryEvict": _nothing("evicts tenants; evictor.plugins.memory_pressure reaches them where the kernel runs short"),
    "BECPUManager": _nothing("CPUs of LSE and LSR pods are given by qrm; nothing to do"),
    "CgroupReconcile": FieldRule(effect="kept", note="qrm.memory_qos, where the ConfigMap switches it on"),
    "CPUBurst": FieldRule(
        effect="kept", note="qrm.burst_percent and qrm.quota_burst, where the ConfigMap switches them on"
    ),
    "RdtResctrl": FieldRule(
        effect="kept",
        note="qrm.resctrl, where the ConfigMap switches it on; set node.resctrl where every node has resctrl",
    ),
    "ResctrlCollector": _nothing("figures of caches are not collected; nothing to do"),
    "BlkIOReconcile": FieldRule(effect="kept", note="qrm.block_io, where the ConfigMap switches it on"),
    "SystemConfig": _OF_KERNEL,
    "NodeTopologyReport": _nothing("NodeResourceTopology objects: Sublet's node object has the topology"),
    "PSICollector": FieldRule(effect="kept", note="pressure of the kernel is always read"),
    **dict.fromkeys(("AuditEvents", "AuditEventsHTTPHandler"), FieldRule(effect="kept", note="sublet audit")),
    **dict.fromkeys(
        ("Accelerators", "RDMADevices", "HamiCoreVGPUMonitor"),
        _nothing("devices: not Sublet's business; keep koordlet where pods use Koordinator's devices"),
    ),
    **dict.fromkeys(
        ("CPICollector", "Libpfm4", "ColdPageCollector", "HugePageReport", "PerCPUMetric", "NodeMetricPromMetrics"),
        _nothing("figures that Sublet does not collect; keep another exporter if somebody reads them"),
    ),
    "PodResourcesProxy": _nothing("kubelet's pod resources are not rewritten"),
}
"""By gate, where it is on."""
ARGUMENTS: Mapping[str, FieldRule] = {
    "memory-evict-cool-time-seconds": FieldRule(
        f"settings.evictor.plugins.{_MEMORY}.cooling_s", convert=float, gate="BEMemoryEvict"
    ),
    "cpu-evict-cool-time-seconds": FieldRule(
        f"settings.evictor.plugins.{_SATISFACTION}.cooling_s", convert=float, gate="BECPUEvict"
    ),
    "prediction-cold-start-duration": _mid("cold_start_s", lambda text: duration_ns(text) / NS_PER_S),
    "prediction-safety-margin-percent": _mid("safety_margin_percent", int),
    "only-evict-by-api": FieldRule(effect="kept", note="evictions go through the API alone"),
    "cpu-suppress-interval-seconds": FieldRule(effect="kept", note="a pass as soon as the load rises"),
    "cpu-evict-interval-seconds": FieldRule(effect="kept", note="each sample is judged"),
    "memory-evict-interval-seconds": FieldRule(effect="kept", note="each sample is judged"),
    "reconcile-interval-seconds": FieldRule(effect="kept", note="limits are verified each qrm.verify_s"),
}
"""Other arguments that say something of colocation; those of logs, sockets and caches of its own are not listed."""

NODE_WORDS: Mapping[str, FieldRule] = {
    "node.koordinator.sh/reservation": FieldRule(effect="kept", note="read as it is"),
    "node.koordinator.sh/cpu-normalization-ratio": FieldRule(effect="kept", note="read as it is"),
    "node.koordinator.sh/raw-allocatable": FieldRule(effect="kept", note="read as it is"),
    "node.koordinator.sh/resource-amplification-ratio": FieldRule(effect="kept", note="by the raw amounts beside it"),
    "node.koordinator.sh/colocation-strategy": FieldRule(effect="kept", note="read, and goes before the settings"),
    "node.koordinator.sh/cpu-reclaim-ratio": FieldRule(effect="kept", note="read, and goes before the settings"),
    "node.koordinator.sh/memory-reclaim-ratio": FieldRule(effect="kept", note="read, and goes before the settings"),
    "node.koordinator.sh/mid-": FieldRule(effect="kept", note="read, and goes before the settings"),
    "node.koordinator.sh/cpu-bind-policy": _nothing("Koordinator's scheduler binds by it; qrm does not"),
    "node.koordinator.sh/numa-": _nothing("Koordinator's scheduler places by it; keep it for that"),
}
"""By annotation or label of a Node."""


def rule_of(rules: Mapping[str, FieldRule], name: str) -> FieldRule | None:
    """The rule of a name, else that of the longest beginning of it."""
    return max(((len(known), rule) for known, rule in rules.items() if name.startswith(known)),
               key=lambda found: found[0], default=(0, None))[1]  # fmt: skip
