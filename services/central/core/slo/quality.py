"""The key `resource-qos-config`: what each class of pods gets of CPU, caches, memory, disks and network.

Facts: docs/facts/koordinator-slo-config.md#bounds.
"""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from services.central.core.slo.part import Count, Name, Percentage, Positive, SloPart, Switch, Word


class CpuQuality(SloPart):
    """Precedence on a CPU, on kernels that support it."""

    enable: bool | None = None
    group_identity: Annotated[int, Field(ge=-1, le=2)] | None = None
    sched_idle: Switch | None = None
    core_expeller: bool | None = None


class MemoryQuality(SloPart):
    """Which memory of a class is protected, throttled and reclaimed early."""

    enable: bool | None = None
    min_limit_percent: Percentage | None = None
    low_limit_percent: Percentage | None = None
    throttling_percent: Percentage | None = None
    wmark_ratio: Percentage | None = None
    wmark_scale_permill: Annotated[int, Field(ge=1, le=1000)] | None = None
    wmark_min_adj: Annotated[int, Field(ge=-25, le=50)] | None = None
    page_cache_limit_enable: Switch | None = None
    page_cache_limit_sync: Switch | None = None
    page_cache_limit_size: Count | None = None
    priority_enable: Switch | None = None
    priority: Annotated[int, Field(ge=0, le=12)] | None = None
    oom_kill_group: Switch | None = None


class ResctrlQuality(SloPart):
    """Which part of the L3 cache, and how much memory bandwidth."""

    enable: bool | None = None
    cat_range_start_percent: Percentage | None = None
    cat_range_end_percent: Percentage | None = None
    mba_percent: Percentage | None = None

    @model_validator(mode="after")
    def _something_between(self) -> Self:
        start, end = self.cat_range_start_percent, self.cat_range_end_percent
        if start is not None and end is not None and start >= end:
            raise ValueError(f"want catRangeStartPercent ({start}) below catRangeEndPercent ({end})")
        return self


class BlockIo(SloPart):
    """Limits of one disk; 0: none."""

    read_iops: Annotated[Count | None, Field(alias="readIOPS")] = None
    write_iops: Annotated[Count | None, Field(alias="writeIOPS")] = None
    read_bps: Annotated[Count | None, Field(alias="readBPS")] = None
    write_bps: Annotated[Count | None, Field(alias="writeBPS")] = None
    io_weight_percent: Annotated[Annotated[int, Field(ge=1, le=100)] | None, Field(alias="ioWeightPercent")] = None
    read_latency: Count | None = None
    write_latency: Count | None = None
    read_latency_percent: Percentage | None = None
    write_latency_percent: Percentage | None = None
    enable_user_model: bool | None = None
    model_read_bps: Annotated[Positive | None, Field(alias="modelReadBPS")] = None
    model_write_bps: Annotated[Positive | None, Field(alias="modelWriteBPS")] = None
    model_read_seq_iops: Annotated[Positive | None, Field(alias="modelReadSeqIOPS")] = None
    model_write_seq_iops: Annotated[Positive | None, Field(alias="modelWriteSeqIOPS")] = None
    model_read_rand_iops: Annotated[Positive | None, Field(alias="modelReadRandIOPS")] = None
    model_write_rand_iops: Annotated[Positive | None, Field(alias="modelWriteRandIOPS")] = None


class BlockQuality(SloPart):
    """A disk, a volume group or a volume of pods, and its limits."""

    name: Name | None = None
    type: Literal["device", "volumegroup", "podvolume"] | None = None
    io_cfg: BlockIo | None = None


class BlkioQuality(SloPart):
    """Limits by disk."""

    enable: bool | None = None
    blocks: Annotated[list[BlockQuality], Field(max_length=1000)] | None = None


Bandwidth = Percentage | Word
"""Percent of the node's bandwidth, or an amount such as 50M."""


class NetworkQuality(SloPart):
    """Bandwidth that a class is given, and may use."""

    enable: bool | None = None
    ingress_request: Bandwidth | None = None
    ingress_limit: Bandwidth | None = None
    egress_request: Bandwidth | None = None
    egress_limit: Bandwidth | None = None


class ClassQuality(SloPart):
    """All of one class."""

    cpu_qos: Annotated[CpuQuality | None, Field(alias="cpuQOS")] = None
    memory_qos: Annotated[MemoryQuality | None, Field(alias="memoryQOS")] = None
    blkio_qos: Annotated[BlkioQuality | None, Field(alias="blkioQOS")] = None
    resctrl_qos: Annotated[ResctrlQuality | None, Field(alias="resctrlQOS")] = None
    network_qos: Annotated[NetworkQuality | None, Field(alias="networkQOS")] = None


class QualityPolicies(SloPart):
    """By which means CPU and network are shared."""

    cpu_policy: Literal["groupIdentity", "coreSched"] | None = None
    net_qos_policy: Annotated[Literal["tc", "terway-qos"] | None, Field(alias="netQOSPolicy")] = None


class QualityStrategy(SloPart):
    """All classes."""

    policies: QualityPolicies | None = None
    lsr_class: ClassQuality | None = None
    ls_class: ClassQuality | None = None
    be_class: ClassQuality | None = None
    system_class: ClassQuality | None = None
    cgroup_root: ClassQuality | None = None
