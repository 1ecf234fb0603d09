"""The eight keys: the model of each, its shape, and the built-in values.

Facts: docs/facts/koordinator-slo-config.md#keys, docs/facts/koordinator-slo-config.md#what-holds-without-it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from services.central.core.slo.part import SloPart
from services.central.core.slo.quality import QualityStrategy
from services.central.core.slo.strategies import (
    AmplificationStrategy,
    BurstStrategy,
    ColocationConfig,
    HostApplications,
    NormalizationStrategy,
    SystemStrategy,
    UsageThresholds,
)

SloKey = Literal[
    "colocation-config",
    "resource-threshold-config",
    "resource-qos-config",
    "cpu-burst-config",
    "system-config",
    "host-application-config",
    "cpu-normalization-config",
    "resource-amplification-config",
]
SLO_KEYS: tuple[SloKey, ...] = get_args(SloKey)
CLUSTER = "clusterStrategy"
NODE_STRATEGIES, NODE_CONFIGS = "nodeStrategies", "nodeConfigs"
Strategy = Mapping[str, Any]
"""A strategy as JSON; absent fields are undeclared."""


@dataclass(frozen=True, slots=True)
class KeyShape:
    """The shape of a key. `inline`: the cluster's strategy is the document itself, not under `clusterStrategy`."""

    model: type[SloPart]
    built_in: Strategy
    inline: bool = False

    @property
    def nodes(self) -> str:
        """The field that lists strategies for some nodes."""
        return NODE_CONFIGS if self.inline else NODE_STRATEGIES


_COLOCATION: Strategy = {
    "enable": False,
    "metricAggregateDurationSeconds": 300,
    "metricReportIntervalSeconds": 60,
    "metricAggregatePolicy": {"durations": ["5m", "10m", "30m"]},
    "metricMemoryCollectPolicy": "usageWithoutPageCache",
    "cpuReclaimThresholdPercent": 60,
    "cpuCalculatePolicy": "usage",
    "memoryReclaimThresholdPercent": 65,
    "memoryCalculatePolicy": "usage",
    "degradeTimeMinutes": 15,
    "updateTimeThresholdSeconds": 300,
    "resourceDiffThreshold": 0.1,
    "midCPUThresholdPercent": 100,
    "midMemoryThresholdPercent": 100,
    "midUnallocatedPercent": 0,
    "midStaticCPUReservedPercent": 0,
    "midStaticMemoryReservedPercent": 0,
}
_THRESHOLD: Strategy = {
    "enable": False,
    "cpuSuppressThresholdPercent": 65,
    "cpuSuppressPolicy": "cpuset",
    "memoryEvictThresholdPercent": 70,
}
_BURST: Strategy = {
    "policy": "none",
    "cpuBurstPercent": 1000,
    "cfsQuotaBurstPercent": 300,
    "cfsQuotaBurstPeriodSeconds": -1,
    "sharePoolThresholdPercent": 50,
}
_SYSTEM: Strategy = {"minFreeKbytesFactor": 100, "watermarkScaleFactor": 150, "memcgReapBackGround": 0}


def _quality(group_identity: int, wmark_min_adj: int, cat_range_end_percent: int) -> Strategy:
    """The figures of one class; all of it is off."""
    return {
        "cpuQOS": {"enable": False, "groupIdentity": group_identity},
        "memoryQOS": {
            "enable": False,
            "minLimitPercent": 0,
            "lowLimitPercent": 0,
            "throttlingPercent": 0,
            "wmarkRatio": 95,
            "wmarkScalePermill": 20,
            "wmarkMinAdj": wmark_min_adj,
            "priorityEnable": 0,
            "priority": 0,
            "oomKillGroup": 0,
        },
        "resctrlQOS": {
            "enable": False,
            "catRangeStartPercent": 0,
            "catRangeEndPercent": cat_range_end_percent,
            "mbaPercent": 100,
        },
    }


_QUALITY: Strategy = {
    "lsrClass": _quality(2, -25, 100),
    "lsClass": _quality(2, -25, 100),
    "beClass": _quality(-1, 50, 30),
}

SHAPES: Mapping[SloKey, KeyShape] = {
    "colocation-config": KeyShape(ColocationConfig, _COLOCATION, inline=True),
    "resource-threshold-config": KeyShape(UsageThresholds, _THRESHOLD),
    "resource-qos-config": KeyShape(QualityStrategy, _QUALITY),
    "cpu-burst-config": KeyShape(BurstStrategy, _BURST),
    "system-config": KeyShape(SystemStrategy, _SYSTEM),
    "host-application-config": KeyShape(HostApplications, {"applications": []}, inline=True),
    "cpu-normalization-config": KeyShape(NormalizationStrategy, {"enable": False}, inline=True),
    "resource-amplification-config": KeyShape(AmplificationStrategy, {"enable": False}, inline=True),
}
