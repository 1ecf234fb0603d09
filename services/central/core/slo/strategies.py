"""The strategies of the other seven keys (docs/facts/koordinator-slo-config.md#bounds)."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from services.central.core.slo.part import Count, Name, Percentage, Positive, SloPart, Switch, Word
from shared.core.pods.koord_qos import KoordQos
from shared.core.text.durations import duration_ns
from shared.errors import Refused

Ratio = Annotated[float, Field(ge=1, le=1000)]
NormalRatio = Annotated[float, Field(ge=1, le=5)]
MID_MAX = 7999
"""Highest priority of the class koord-mid: no eviction for what is allocatable reaches prod pods."""
CalculatePolicy = Literal["usage", "request", "maxUsageRequest"]


def _duration(text: str) -> str:
    try:
        ns = duration_ns(text)
    except Refused as refusal:
        raise ValueError(str(refusal)) from None
    if ns <= 0:
        raise ValueError("want a duration above 0")
    return text


Duration = Annotated[str, Field(max_length=32), AfterValidator(_duration)]


class AggregatePolicy(SloPart):
    """The windows over which a node's usage is reported."""

    durations: Annotated[list[Duration], Field(max_length=100)] | None = None


class ColocationConfig(SloPart):
    """How much of a node is offered to batch and mid pods, and how often its use is reported."""

    enable: bool | None = None
    metric_aggregate_duration_seconds: Positive | None = None
    metric_report_interval_seconds: Positive | None = None
    metric_aggregate_policy: AggregatePolicy | None = None
    metric_memory_collect_policy: Annotated[Name, Field(min_length=1)] | None = None
    cpu_reclaim_threshold_percent: Count | None = None
    cpu_calculate_policy: CalculatePolicy | None = None
    memory_reclaim_threshold_percent: Count | None = None
    memory_calculate_policy: CalculatePolicy | None = None
    degrade_time_minutes: Positive | None = None
    update_time_threshold_seconds: Positive | None = None
    resource_diff_threshold: Annotated[float, Field(gt=0, le=1)] | None = None
    mid_reclaim_mode: Name | None = None
    mid_cpu_threshold_percent: Annotated[Percentage | None, Field(alias="midCPUThresholdPercent")] = None
    mid_memory_threshold_percent: Percentage | None = None
    mid_unallocated_percent: Percentage | None = None
    mid_static_cpu_reserved_percent: Annotated[Percentage | None, Field(alias="midStaticCPUReservedPercent")] = None
    mid_static_memory_reserved_percent: Percentage | None = None
    batch_cpu_threshold_percent: Annotated[Count | None, Field(alias="batchCPUThresholdPercent")] = None
    batch_memory_threshold_percent: Count | None = None


class UsageThresholds(SloPart):
    """When best-effort pods are suppressed and evicted."""

    enable: bool | None = None
    cpu_suppress_threshold_percent: Percentage | None = None
    cpu_suppress_min_percent: Percentage | None = None
    cpu_suppress_policy: Literal["cpuset", "cfsQuota"] | None = None
    memory_evict_threshold_percent: Percentage | None = None
    memory_evict_lower_percent: Percentage | None = None
    memory_allocatable_evict_threshold_percent: Count | None = None
    memory_allocatable_evict_lower_percent: Count | None = None
    cpu_evict_be_satisfaction_upper_percent: Annotated[
        Percentage | None, Field(alias="cpuEvictBESatisfactionUpperPercent")
    ] = None
    cpu_evict_be_satisfaction_lower_percent: Annotated[
        Percentage | None, Field(alias="cpuEvictBESatisfactionLowerPercent")
    ] = None
    cpu_evict_be_usage_threshold_percent: Annotated[
        Percentage | None, Field(alias="cpuEvictBEUsageThresholdPercent")
    ] = None
    cpu_evict_time_window_seconds: Positive | None = None
    cpu_evict_threshold_percent: Percentage | None = None
    cpu_evict_lower_percent: Percentage | None = None
    cpu_allocatable_evict_threshold_percent: Count | None = None
    cpu_allocatable_evict_lower_percent: Count | None = None
    cpu_evict_policy: Literal["evictByRealLimit", "evictByAllocatable"] | None = None
    evict_enabled_priority_threshold: Annotated[int, Field(ge=-(1 << 31), lt=1 << 31)] | None = None
    allocatable_evict_priority_threshold: Annotated[int, Field(ge=0, le=MID_MAX)] | None = None

    @model_validator(mode="after")
    def _lower_below_upper(self) -> Self:
        _below("memoryEvictLowerPercent", self.memory_evict_lower_percent,
               "memoryEvictThresholdPercent", self.memory_evict_threshold_percent)  # fmt: skip
        _below("memoryAllocatableEvictLowerPercent", self.memory_allocatable_evict_lower_percent,
               "memoryAllocatableEvictThresholdPercent", self.memory_allocatable_evict_threshold_percent)  # fmt: skip
        _below("cpuEvictLowerPercent", self.cpu_evict_lower_percent,
               "cpuEvictThresholdPercent", self.cpu_evict_threshold_percent)  # fmt: skip
        _below("cpuAllocatableEvictLowerPercent", self.cpu_allocatable_evict_lower_percent,
               "cpuAllocatableEvictThresholdPercent", self.cpu_allocatable_evict_threshold_percent)  # fmt: skip
        _below("cpuEvictBESatisfactionLowerPercent", self.cpu_evict_be_satisfaction_lower_percent,
               "cpuEvictBESatisfactionUpperPercent", self.cpu_evict_be_satisfaction_upper_percent)  # fmt: skip
        return self


def _below(lower_name: str, lower: int | None, upper_name: str, upper: int | None) -> None:
    if lower is not None and upper is not None and lower >= upper:
        raise ValueError(f"want {lower_name} ({lower}) below {upper_name} ({upper})")


class BurstStrategy(SloPart):
    """How far containers may go beyond their CPU limit for a while."""

    policy: Literal["none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"] | None = None
    cpu_burst_percent: Annotated[int, Field(ge=1, le=10_000)] | None = None
    cfs_quota_burst_percent: Annotated[int, Field(ge=100, lt=1 << 63)] | None = None
    cfs_quota_burst_period_seconds: Annotated[int, Field(ge=-1, lt=1 << 63)] | None = None
    share_pool_threshold_percent: Percentage | None = None


class SystemStrategy(SloPart):
    """Settings of the node's kernel."""

    min_free_kbytes_factor: Positive | None = None
    watermark_scale_factor: Annotated[int, Field(ge=1, le=400)] | None = None
    memcg_reap_back_ground: Switch | None = None
    page_cache_limit_enabled: Switch | None = None
    total_network_bandwidth: Count | Name | None = None


class HostCgroup(SloPart):
    """Where an application of the host runs."""

    base: Literal["CgroupRoot", "Kubepods", "KubepodsBurstable", "KubepodsBesteffort"] | None = None
    parent_dir: Word | None = None
    relative_path: Word | None = None


class ListedApplication(SloPart):
    """An application outside of all pods, with the class that its use counts with."""

    name: Annotated[Name, Field(min_length=1)]
    priority: Name | None = None
    qos: KoordQos | None = None
    cgroup_path: HostCgroup | None = None
    strategy: dict[str, Any] | None = None


class HostApplications(SloPart):
    """All applications of the host that have a class."""

    applications: Annotated[list[ListedApplication], Field(max_length=1000)] | None = None


class ModelRatio(SloPart):
    """Speed of a CPU model, by its enabled features."""

    base_ratio: NormalRatio | None = None
    hyper_thread_enabled_ratio: NormalRatio | None = None
    turbo_enabled_ratio: NormalRatio | None = None
    hyper_thread_turbo_enabled_ratio: NormalRatio | None = None


class NormalizationStrategy(SloPart):
    """By how much a node's CPUs are faster than the slowest."""

    enable: bool | None = None
    default_ratio: NormalRatio | None = None
    ratio_model: dict[Word, ModelRatio] | None = None


class AmplificationStrategy(SloPart):
    """How much a node over-commits its resources."""

    enable: bool | None = None
    resource_amplification_ratio: dict[Name, Ratio] | None = None
