"""The table of Katalyst's fields: to which setting of Sublet each goes, and between which bounds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from services.central.core.katalyst.values import Reader, bytes_of, choice, flag, number, span, texts, thresholds
from shared.contracts.mode import NodeMode
from shared.core.node_mode import MODE_KEY

SettingPath = tuple[str, ...]
"""Where a setting is: section, and the keys within it."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field, read once and put to all of its places."""

    read: Reader
    to: tuple[SettingPath, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A field that is an amount, or a percentage in a field of its own."""

    amount: SettingPath
    ratio: SettingPath


def _plugin(read: Reader, key: str, *plugins: str) -> Field:
    return Field(read, tuple(("evictor", "plugins", plugin, key) for plugin in plugins))


def _line(plugin: str, amount: str, ratio: str) -> Line:
    return Line(("evictor", "plugins", plugin, amount), ("evictor", "plugins", plugin, ratio))


def _offer(read: Reader, key: str) -> Field:
    return Field(read, (("advisor", "offer", key),))


def _when(yes: str, no: str) -> Reader:
    return lambda path, value: yes if flag(path, value) else no


_GRACE = number(-1, 3600)
_SHARE, _PART = number(0, 1, above=True), number(0, 1)
_TIMES = number(1, 1_000_000, whole=True)
_RING = number(1, 1000, whole=True)
_PAGES = number(0, 1e9, above=True)

_RECLAIMED = ("reclaimed_overcommit", "reclaimed_numa_overcommit")
_MEMORY = ("memory_pressure", "numa_memory_pressure", "system_memory_pressure")
_LEVELS = ("shared_cores", "reclaimed_cores", "dedicated_cores", "system_cores")

_OLD: Mapping[str, Field | Line] = {
    "reclaimedResourcesEvictionPluginConfig.evictionThreshold": _plugin(thresholds, "eviction_threshold", *_RECLAIMED),
    "memoryEvictionPluginConfig.enableNumaLevelDetection": _plugin(flag, "numa_level", "memory_pressure"),
    "memoryEvictionPluginConfig.enableSystemLevelDetection": _plugin(flag, "system_level", "memory_pressure"),
    "memoryEvictionPluginConfig.numaFreeBelowWatermarkTimesThreshold": _plugin(
        _TIMES, "numa_free_below_watermark_times", "memory_pressure"
    ),
    "memoryEvictionPluginConfig.systemKswapdRateThreshold": _plugin(
        _PAGES, "kswapd_rate_pages_per_s", "memory_pressure"
    ),
    "memoryEvictionPluginConfig.systemKswapdRateExceedTimesThreshold": _plugin(
        _TIMES, "kswapd_exceed_times", "memory_pressure"
    ),
    "memoryEvictionPluginConfig.gracePeriod": _plugin(_GRACE, "grace_period_s", "memory_pressure"),
    "memoryEvictionPluginConfig.enableRssOveruseDetection": _plugin(flag, "enabled", "rss_overuse"),
    "memoryEvictionPluginConfig.rssOveruseRateThreshold": _plugin(
        number(0, 100, above=True), "rss_overuse_ratio", "rss_overuse"
    ),
}

_RECLAIMED_NOW: Mapping[str, Field | Line] = {
    "evictionThreshold": _plugin(thresholds, "eviction_threshold", *_RECLAIMED),
    "gracePeriod": _plugin(_GRACE, "grace_period_s", *_RECLAIMED),
    "thresholdMetToleranceDuration": _plugin(number(0, 3600), "met_for_s", *_RECLAIMED),
}

_MEMORY_NOW: Mapping[str, Field | Line] = {
    "enableNumaLevelEviction": _plugin(flag, "numa_level", "memory_pressure"),
    "enableSystemLevelEviction": _plugin(flag, "system_level", "memory_pressure"),
    "numaVictimMinimumUtilizationThreshold": _plugin(
        _PART, "numa_victim_minimum_utilization_ratio", "numa_memory_pressure"
    ),
    "numaFreeBelowWatermarkTimesThreshold": _plugin(
        _TIMES, "numa_free_below_watermark_times", "memory_pressure", "numa_memory_pressure"
    ),
    "numaFreeBelowWatermarkTimesReclaimedThreshold": _plugin(
        number(0, 1_000_000, whole=True), "numa_free_below_watermark_times_reclaimed", "numa_memory_pressure"
    ),
    "numaFreeConstraintFastEvictionWaitCycle": _plugin(
        number(0, 1_000_000, whole=True), "numa_free_constraint_fast_eviction_wait_cycle", "numa_memory_pressure"
    ),
    "systemFreeMemoryThresholdMinimum": _plugin(
        bytes_of, "minimum_free_bytes", "memory_pressure", "system_memory_pressure"
    ),
    "systemKswapdRateThreshold": _plugin(
        _PAGES, "kswapd_rate_pages_per_s", "memory_pressure", "system_memory_pressure"
    ),
    "systemKswapdRateExceedDurationThreshold": _plugin(
        number(0, 3600, above=True), "kswapd_exceed_duration_s", "system_memory_pressure"
    ),
    "gracePeriod": _plugin(_GRACE, "grace_period_s", *_MEMORY),
    "enableRSSOveruseEviction": _plugin(flag, "enabled", "rss_overuse"),
    "rssOveruseRateThreshold": _plugin(number(0, 100, above=True), "rss_overuse_ratio", "rss_overuse"),
}

_CPU_NOW: Mapping[str, Field | Line] = {
    "enableLoadEviction": _plugin(flag, "enabled", "cpu_load"),
    "loadUpperBoundRatio": _plugin(number(1, 1000), "load_upper_bound_ratio", "cpu_load"),
    "loadLowerBoundRatio": _plugin(number(0, 1000, above=True), "load_lower_bound_ratio", "cpu_load"),
    "loadThresholdMetPercentage": _plugin(_SHARE, "load_threshold_met_ratio", "cpu_load"),
    "loadMetricRingSize": _plugin(_RING, "metric_ring_size", "cpu_load"),
    "loadEvictionCoolDownTime": _plugin(span(0, 3600), "cooling_s", "cpu_load"),
    "enableSuppressionEviction": _plugin(flag, "enabled", "cpu_suppression"),
    "maxSuppressionToleranceRate": _plugin(
        number(0, 1000, above=True), "max_suppression_tolerance_ratio", "cpu_suppression"
    ),
    "minSuppressionToleranceDuration": _plugin(
        span(0, 86_400), "min_suppression_tolerance_duration_s", "cpu_suppression"
    ),
    "gracePeriod": _plugin(_GRACE, "grace_period_s", "cpu_load", "cpu_suppression"),
}

_NUMA_CPU: Mapping[str, Field | Line] = {
    "enableEviction": _plugin(flag, "enabled", "numa_cpu_pressure"),
    "thresholdMetPercentage": _plugin(_SHARE, "threshold_met_ratio", "numa_cpu_pressure"),
    "metricRingSize": _plugin(_RING, "metric_ring_size", "numa_cpu_pressure"),
    "gracePeriod": _plugin(_GRACE, "grace_period_s", "numa_cpu_pressure"),
    "thresholdExpandFactor": _plugin(number(1, 2), "threshold_expand_factor", "numa_cpu_pressure"),
    "skippedPodKinds": _plugin(texts(), "skipped_pod_kinds", "numa_cpu_pressure"),
    "cpuUsageRatioThreshold": _plugin(_SHARE, "threshold_ratio", "numa_cpu_pressure"),
}

_NUMA_SYS: Mapping[str, Field | Line] = {
    "enableEviction": _plugin(flag, "enabled", "numa_sys_cpu_pressure"),
    "metricRingSize": _plugin(_RING, "metric_ring_size", "numa_sys_cpu_pressure"),
    "gracePeriod": _plugin(_GRACE, "grace_period_s", "numa_sys_cpu_pressure"),
    "syncPeriod": _plugin(number(0, 600, above=True), "period_s", "numa_sys_cpu_pressure"),
    "thresholdMetPercentage": _plugin(_SHARE, "threshold_met_ratio", "numa_sys_cpu_pressure"),
    "numaCPUUsageSoftThreshold": _plugin(_SHARE, "cpu_soft_ratio", "numa_sys_cpu_pressure"),
    "numaCPUUsageHardThreshold": _plugin(_SHARE, "cpu_hard_ratio", "numa_sys_cpu_pressure"),
    "numaSysOverTotalUsageSoftThreshold": _plugin(_SHARE, "sys_soft_ratio", "numa_sys_cpu_pressure"),
    "numaSysOverTotalUsageHardThreshold": _plugin(_SHARE, "sys_hard_ratio", "numa_sys_cpu_pressure"),
    "numaSysOverTotalUsageEvictionThreshold": _plugin(_PART, "pod_min_sys_ratio", "numa_sys_cpu_pressure"),
}

_ROOTFS: Mapping[str, Field | Line] = {
    "enableRootfsPressureEviction": _plugin(flag, "enabled", "rootfs_pressure"),
    "minimumImageFsFreeThreshold": _line("rootfs_pressure", "minimum_free_bytes", "minimum_free_ratio"),
    "minimumImageFsInodesFreeThreshold": _line("rootfs_pressure", "minimum_inodes_free", "minimum_inodes_free_ratio"),
    "podMinimumUsedThreshold": _line("rootfs_pressure", "pod_minimum_used_bytes", "pod_minimum_used_ratio"),
    "podMinimumInodesUsedThreshold": _line(
        "rootfs_pressure", "pod_minimum_inodes_used", "pod_minimum_inodes_used_ratio"
    ),
    "reclaimedQoSPodUsedPriorityThreshold": _line(
        "rootfs_pressure", "reclaimed_priority_used_bytes", "reclaimed_priority_used_ratio"
    ),
    "reclaimedQoSPodInodesUsedPriorityThreshold": _line(
        "rootfs_pressure", "reclaimed_priority_inodes_used", "reclaimed_priority_inodes_used_ratio"
    ),
    "gracePeriod": _plugin(_GRACE, "grace_period_s", "rootfs_pressure", "rootfs_overuse"),
    "enableRootfsOveruseEviction": _plugin(flag, "enabled", "rootfs_overuse"),
    "rootfsOveruseEvictionSupportedQoSLevels": _plugin(texts(_LEVELS), "supported_qos", "rootfs_overuse"),
    "sharedQoSRootfsOveruseThreshold": _line("rootfs_overuse", "shared_threshold_bytes", "shared_threshold_ratio"),
    "reclaimedQoSRootfsOveruseThreshold": _line(
        "rootfs_overuse", "reclaimed_threshold_bytes", "reclaimed_threshold_ratio"
    ),
}

_NETWORK: Mapping[str, Field | Line] = {
    "enableNICNetworkEviction": _plugin(flag, "enabled", "network_interface"),
    "nicUnhealthyToleranceDuration": _plugin(span(0, 86_400), "nic_unhealthy_tolerance_s", "network_interface"),
    "gracePeriod": _plugin(_GRACE, "grace_period_s", "network_interface"),
}

_OFFERED: Mapping[str, Field | Line] = {
    "cpuHeadroomConfig.utilBasedConfig.enable": _offer(_when("util", "pool"), "cpu"),
    "cpuHeadroomConfig.utilBasedConfig.targetReclaimedCoreUtilization": _offer(_PART, "target_util_ratio"),
    "cpuHeadroomConfig.utilBasedConfig.maxReclaimedCoreUtilization": _offer(_PART, "max_util_ratio"),
    "cpuHeadroomConfig.utilBasedConfig.maxOversoldRate": _offer(number(1, 10), "max_oversold_ratio"),
    "memoryHeadroomConfig.utilBasedConfig.enable": _offer(_when("numa_aware", "canonical"), "memory"),
    "memoryHeadroomConfig.utilBasedConfig.cacheBasedRatio": _offer(_PART, "cache_ratio"),
}

_SWITCH: Mapping[str, Field | Line] = {"mode": Field(choice(*get_args(NodeMode)), ((MODE_KEY,),))}

FIELDS: Mapping[str, Field | Line] = {
    f"{prefix}.{name}": field
    for prefix, fields in {
        "evictionPluginsConfig": _OLD,
        "evictionConfig.reclaimedResourcesEvictionConfig": _RECLAIMED_NOW,
        "evictionConfig.memoryPressureEvictionConfig": _MEMORY_NOW,
        "evictionConfig.cpuPressureEvictionConfig": _CPU_NOW,
        "evictionConfig.cpuPressureEvictionConfig.numaCPUPressureEvictionConfig": _NUMA_CPU,
        "evictionConfig.cpuPressureEvictionConfig.numaSysCPUPressureEvictionConfig": _NUMA_SYS,
        "evictionConfig.rootfsPressureEvictionConfig": _ROOTFS,
        "evictionConfig.networkEvictionConfig": _NETWORK,
        "reclaimedResourceConfig": _OFFERED,
        "sublet": _SWITCH,
    }.items()
    for name, field in fields.items()
}
"""Every field that Sublet has a counterpart for, by its path under `spec.config`."""
