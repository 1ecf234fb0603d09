"""Flags of Katalyst's agent, by the equivalent field of a config object.

Facts: docs/facts/other-agents.md#arguments.
"""

from collections.abc import Mapping

_EVICTION = "evictionConfig"
_NUMA_SYS = "numa-sys-cpu-pressure-eviction-numa"
_GROUPS: Mapping[str, Mapping[str, str]] = {
    f"{_EVICTION}.cpuPressureEvictionConfig": {
        "eviction-load-enable": "enableLoadEviction",
        "eviction-load-upper-bound-ratio": "loadUpperBoundRatio",
        "eviction-load-lower-bound-ratio": "loadLowerBoundRatio",
        "eviction-load-threshold-met-percentage": "loadThresholdMetPercentage",
        "eviction-load-metric-ring-size": "loadMetricRingSize",
        "eviction-load-cool-down-time": "loadEvictionCoolDownTime",
        "eviction-suppression-enable": "enableSuppressionEviction",
        "eviction-suppression-max-tolerance-rate": "maxSuppressionToleranceRate",
        "eviction-suppression-min-tolerance-duration": "minSuppressionToleranceDuration",
        "eviction-cpu-grace-period": "gracePeriod",
    },
    f"{_EVICTION}.cpuPressureEvictionConfig.numaCPUPressureEvictionConfig": {
        "numa-cpu-pressure-eviction-enable": "enableEviction",
        "numa-cpu-pressure-eviction-threshold-met-percentage": "thresholdMetPercentage",
        "numa-cpu-pressure-eviction-metric-ring-size": "metricRingSize",
        "numa-cpu-pressure-eviction-grace-period": "gracePeriod",
        "numa-cpu-pressure-eviction-threshold-expand-factor": "thresholdExpandFactor",
        "numa-cpu-pressure-eviction-skipped-pod-kinds": "skippedPodKinds",
    },
    f"{_EVICTION}.cpuPressureEvictionConfig.numaSysCPUPressureEvictionConfig": {
        "numa-sys-cpu-pressure-eviction-enable": "enableEviction",
        "numa-sys-cpu-pressure-eviction-metric-ring-size": "metricRingSize",
        "numa-sys-cpu-pressure-eviction-grace-period": "gracePeriod",
        "numa-sys-cpu-pressure-eviction-sync-period": "syncPeriod",
        "numa-sys-cpu-pressure-eviction-threshold-met-percentage": "thresholdMetPercentage",
        "numa-sys-cpu-pressure-eviction-numa-cpu-usage-soft-threshold": "numaCPUUsageSoftThreshold",
        "numa-sys-cpu-pressure-eviction-numa-cpu-usage-hard-threshold": "numaCPUUsageHardThreshold",
        "numa-sys-cpu-pressure-eviction-numa-sys-over-total-usage-soft-threshold": "numaSysOverTotalUsageSoftThreshold",
        "numa-sys-cpu-pressure-eviction-numa-sys-over-total-usage-hard-threshold": "numaSysOverTotalUsageHardThreshold",
        f"{_NUMA_SYS}-sys-over-total-usage-eviction-threshold": "numaSysOverTotalUsageEvictionThreshold",
    },
    f"{_EVICTION}.memoryPressureEvictionConfig": {
        "eviction-enable-numa-level": "enableNumaLevelEviction",
        "eviction-enable-system-level": "enableSystemLevelEviction",
        "eviction-numa-victim-minimum-utilization-threshold": "numaVictimMinimumUtilizationThreshold",
        "eviction-numa-free-below-watermark-times-threshold": "numaFreeBelowWatermarkTimesThreshold",
        "eviction-numa-free-below-watermark-times-reclaimed-threshold": "numaFreeBelowWatermarkTimesReclaimedThreshold",
        "eviction-numa-free-constrained-fast-eviction-wait-cycle": "numaFreeConstraintFastEvictionWaitCycle",
        "eviction-system-free-memory-threshold-minimum": "systemFreeMemoryThresholdMinimum",
        "eviction-system-kswapd-rate-threshold": "systemKswapdRateThreshold",
        "eviction-system-kswapd-rate-exceed-duration-threshold": "systemKswapdRateExceedDurationThreshold",
        "eviction-memory-grace-period": "gracePeriod",
        "eviction-enable-rss-overuse": "enableRSSOveruseEviction",
        "eviction-rss-overuse-rate-threshold": "rssOveruseRateThreshold",
    },
    f"{_EVICTION}.reclaimedResourcesEvictionConfig": {
        "eviction-reclaimed-resources-grace-period": "gracePeriod",
        "eviction-reclaimed-resources-threshold-met-tolerance-duration": "thresholdMetToleranceDuration",
    },
    f"{_EVICTION}.rootfsPressureEvictionConfig": {
        "eviction-rootfs-enable": "enableRootfsPressureEviction",
        "eviction-rootfs-minimum-image-fs-free": "minimumImageFsFreeThreshold",
        "eviction-rootfs-minimum-image-fs-inodes-free": "minimumImageFsInodesFreeThreshold",
        "eviction-rootfs-pod-minimum-used": "podMinimumUsedThreshold",
        "eviction-rootfs-pod-minimum-inodes-used": "podMinimumInodesUsedThreshold",
        "eviction-rootfs-reclaimed-qos-pod-used-priority": "reclaimedQoSPodUsedPriorityThreshold",
        "eviction-rootfs-reclaimed-qos-pod-inodes-used-priority": "reclaimedQoSPodInodesUsedPriorityThreshold",
        "eviction-rootfs-grace-period": "gracePeriod",
        "eviction-rootfs-overuse-enable": "enableRootfsOveruseEviction",
        "eviction-rootfs-overuse-supported-qos-levels": "rootfsOveruseEvictionSupportedQoSLevels",
        "eviction-rootfs-overuse-shared-qos-threshold": "sharedQoSRootfsOveruseThreshold",
        "eviction-rootfs-overuse-reclaimed-qos-threshold": "reclaimedQoSRootfsOveruseThreshold",
    },
    f"{_EVICTION}.networkEvictionConfig": {
        "eviction-network-nic-health-enable": "enableNICNetworkEviction",
        "eviction-network-nic-unhealthy-tolerance-duration": "nicUnhealthyToleranceDuration",
        "eviction-network-grace-period": "gracePeriod",
    },
    "reclaimedResourceConfig.cpuHeadroomConfig.utilBasedConfig": {
        "cpu-headroom-util-based-enable": "enable",
        "cpu-headroom-target-reclaimed-core-utilization": "targetReclaimedCoreUtilization",
        "cpu-headroom-max-reclaimed-core-utilization": "maxReclaimedCoreUtilization",
        "cpu-headroom-max-oversold-rate": "maxOversoldRate",
    },
    "reclaimedResourceConfig.memoryHeadroomConfig.utilBasedConfig": {
        "memory-headroom-util-based-enable": "enable",
        "memory-headroom-cache-based-ratio": "cacheBasedRatio",
    },
    _EVICTION: {"eviction-dry-run-plugins": "dryRun"},
}
FLAG_FIELDS: Mapping[str, str] = {
    flag: f"{group}.{name}" for group, names in _GROUPS.items() for flag, name in names.items()
}
"""Path under `spec.config`."""
LIST_FLAGS = ("eviction-dry-run-plugins", "numa-cpu-pressure-eviction-skipped-pod-kinds",
              "eviction-rootfs-overuse-supported-qos-levels")  # fmt: skip
"""Flags that hold a list, joined by commas."""
COLOCATION_FLAGS = ("eviction-", "numa-cpu-pressure-", "numa-sys-cpu-pressure-", "cpu-headroom-", "memory-headroom-",
                    "reserved-resource-", "min-reclaimed-", "enable-reclaim", "cpu-resource-plugin-",
                    "memory-resource-plugin-", "reclaimed-", "system-load-pressure-", "allow-shared-cores-overlap-",
                    "network-resource-plugin-", "enable-cpu-burst")  # fmt: skip
"""How flags begin that say something of colocation; others are of logs, ports and caches of its own."""
