"""The settings of qrm say how it places, writes, offloads, and lets pods start."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from services.qrm.core.isolation.block_io import BlockLimits
from services.qrm.core.isolation.memory_qos import AUTO
from services.qrm.core.isolation.quota_burst import QuotaBurstRules
from services.qrm.core.isolation.rules import MemoryQos, NodeRules
from services.qrm.core.memory.offload import OffloadRules
from services.qrm.core.placement.pools import Order
from services.qrm.core.placement.requests import POOL_NAME
from services.qrm.core.starting import StartRules
from services.qrm.sections.disks import DisksSettings
from services.qrm.sections.network import NetClassSettings
from services.qrm.sections.resctrl import ResctrlSettings
from shared.contracts.mode import Mode
from shared.contracts.pod import QosClass
from shared.core.cgroups.block_io import UNBOUNDED_IOPS
from shared.core.cgroups.layout import QOS_CLASSES, ROOT
from shared.core.quantities import Seconds
from shared.settings import Settings

NAME = "qrm"
DEFAULT_RULES = OffloadRules()

PoolName = Annotated[str, Field(pattern=rf"^{POOL_NAME.pattern}$")]


class OffloadSettings(Settings):
    """Whether idle memory of pods is given back to the machine by and by (cgroup v2);
    `services.qrm.core.memory.offload`.
    """

    enabled: bool = False
    """Whether it is given back. Off by default: a pod that comes back to a page waits until it has been read in
    again."""
    classes: tuple[QosClass, ...] = ("reclaimed_cores",)
    """Pods of these classes take part."""
    period_s: Seconds = 10.0
    """Time between two steps of a pod."""
    target_percent: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = DEFAULT_RULES.target_percent
    """Share of time in which some task of the pod may stall on memory, in percent."""
    stride: Annotated[float, Field(gt=0, le=0.5, allow_inf_nan=False)] = DEFAULT_RULES.stride
    """Part of its use that one step gives back at most."""
    most_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 34)] = DEFAULT_RULES.most_bytes
    """Most memory that one step gives back."""
    keep_bytes: Annotated[int, Field(ge=0, le=1 << 50)] = DEFAULT_RULES.keep_bytes
    """A pod is never asked to go below this."""
    refault_bytes_s: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] = DEFAULT_RULES.refault_bytes_s
    """Memory read in again by second that is borne."""
    pause_s: Seconds = DEFAULT_RULES.pause_s
    """How long nothing is given back after a step too far."""

    @property
    def rules(self) -> OffloadRules:
        """As the core takes them."""
        return OffloadRules(
            target_percent=self.target_percent,
            stride=self.stride,
            most_bytes=self.most_bytes,
            keep_bytes=self.keep_bytes,
            refault_bytes_s=self.refault_bytes_s,
            pause_s=self.pause_s,
        )


class StartSettings(Settings):
    """Reclaimed pods keep kubelet's weight and width until their containers run; `services.qrm.core.starting`."""

    pods_per_cpu: Annotated[int, Field(ge=0, le=100)] = 4
    """Most pods that start at a time, for each CPU of the machine; 0: they start behind all others."""
    each_s: Seconds = 120.0
    """Seconds of its life that a pod may be starting, all restarts together."""
    each_cpu_s: Seconds = 10.0
    """CPU time that a pod may use while it starts, all restarts together."""

    def rules(self, cpus: int) -> StartRules:
        """As the core takes them, on a machine with so many CPUs."""
        return StartRules(self.pods_per_cpu * cpus, self.each_s, self.each_cpu_s)


Percent = Annotated[int, Field(ge=0, le=100)]


class MemoryQosClass(Settings):
    """Memory of the pods of one class; the files `memory.wmark_…` are those of kernels with Alibaba's patches."""

    min_percent: Percent = 0
    """Part of a pod's request that is never reclaimed (`memory.min`, cgroup v2), in percent."""
    low_percent: Percent = 0
    """Part of a pod's request that is reclaimed last (`memory.low`, cgroup v2), in percent."""
    throttle_percent: Percent = 0
    """How far on the way from request to limit a container is slowed down (`memory.high`, cgroup v2), in percent; 0:
    nowhere."""
    wmark_ratio: Percent = 95
    """Percent of its limit above which the kernel reclaims from a group in the background; 0: never."""
    wmark_scale_permill: Annotated[int, Field(ge=1, le=1000)] = 20
    """How far below that it stops, in permill of the limit."""
    wmark_min_adj: Annotated[int, Field(ge=-25, le=50)] = 0
    """By how many percent the machine's least watermark is lower (below 0) or higher for a group."""

    def rule(self) -> MemoryQos:
        """As the core takes it."""
        return MemoryQos(**self.model_dump())


def _memory_qos(qos: QosClass) -> MemoryQosClass:
    return MemoryQosClass(**asdict(AUTO[qos]))


class MemoryQosSettings(Settings):
    """Memory QoS by class, as Koordinator has it; `services.qrm.core.isolation.memory_qos`."""

    enabled: bool = False
    """Whether any of it is written, and what pods say in `koordinator.sh/memoryQOS` counts."""
    dedicated_cores: MemoryQosClass = _memory_qos("dedicated_cores")
    """Pods with CPUs of their own (LSE and LSR)."""
    shared_cores: MemoryQosClass = _memory_qos("shared_cores")
    """Tenants without (LS)."""
    reclaimed_cores: MemoryQosClass = _memory_qos("reclaimed_cores")
    """Batch work (BE)."""
    system_cores: MemoryQosClass = _memory_qos("system_cores")
    """Pods of the node itself (SYSTEM)."""

    def rules(self) -> Mapping[QosClass, MemoryQos]:
        """As the core takes them; none where it is off."""
        return {qos: getattr(self, qos).rule() for qos in QOS_CLASSES} if self.enabled else {}


Identity = Annotated[int, Field(ge=-1, le=2)]


class GroupIdentitySettings(Settings):
    """Group identity by class, as Koordinator has it; `services.qrm.core.isolation.group_identity`."""

    enabled: bool = False
    """Whether it is written; a kernel without the file is the condition KernelLacks."""
    dedicated_cores: Identity = 2
    """Pods with CPUs of their own (LSE and LSR)."""
    shared_cores: Identity = 2
    """Tenants without (LS)."""
    reclaimed_cores: Identity = -1
    """Batch work (BE): below 0 it yields to everybody."""
    system_cores: Identity = 0
    """Pods of the node itself (SYSTEM)."""

    def rules(self) -> Mapping[QosClass, int]:
        """As the core takes them; none where it is off."""
        return {qos: getattr(self, qos) for qos in QOS_CLASSES} if self.enabled else {}


DEFAULT_QUOTA_BURST = QuotaBurstRules()


class QuotaBurstSettings(Settings):
    """Quotas of tenants' containers that rise while these are throttled; `services.qrm.core.isolation.quota_burst`."""

    enabled: bool = False
    """Whether quotas rise, unless a pod says otherwise (`koordinator.sh/cpuBurst`)."""
    by_annotation: bool = False
    """Whether a pod's annotation switches it on where `enabled` does not. What it says of amounts only narrows those
    below."""
    most_percent: Annotated[int, Field(ge=100, le=1000)] = DEFAULT_QUOTA_BURST.most_percent
    """Most that a quota becomes, in percent of the container's limit."""
    budget_s: Annotated[int, Field(ge=-1, le=86_400)] = DEFAULT_QUOTA_BURST.budget_s
    """How long a container may use all that a quota may become, until it has used little for as long; -1: without
    end."""
    share_pool_percent: Annotated[int, Field(ge=0, le=100)] = DEFAULT_QUOTA_BURST.share_pool_percent
    """Use of the CPUs that tenants share from which on quotas fall; from nine tenths of it on none rises."""
    hold_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = DEFAULT_QUOTA_BURST.hold_s
    """How long a quota stays where it is while nothing throttles the container."""

    def rules(self) -> QuotaBurstRules:
        """As the core takes them."""
        return QuotaBurstRules(**self.model_dump())


Rate = Annotated[int, Field(ge=0, lt=1 << 63)]
OperationRate = Annotated[int, Field(ge=0, lt=UNBOUNDED_IOPS)]


class DiskSettings(BaseModel):
    """Limits of one disk."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: Annotated[str, Field(pattern=r"^[a-zA-Z0-9][-a-zA-Z0-9_.]{0,62}$")]
    """Name of the disk as in /sys/class/block, such as sda or nvme0n1; of a partition the whole disk is bounded."""
    read_bps: Rate = 0
    """Bytes by second that are read at most; 0: no bound."""
    write_bps: Rate = 0
    """Bytes by second that are written at most; 0: no bound."""
    read_iops: OperationRate = 0
    """Reads by second at most; 0: no bound."""
    write_iops: OperationRate = 0
    """Writes by second at most; 0: no bound."""
    weight_percent: Annotated[int, Field(ge=1, le=100)] = 100
    """Weight beside groups that have 100, where the kernel weighs disks (io.cost), in percent; 100: as others."""

    def rule(self) -> BlockLimits:
        """As the core takes it."""
        return BlockLimits(**self.model_dump())


class BlockIoSettings(Settings):
    """Limits of disks for batch work, as Koordinator's blkio has them; `services.qrm.core.isolation.block_io`."""

    enabled: bool = False
    """Whether they are written, on Kubernetes; a kernel without the files is the condition KernelLacks."""
    reclaimed_cores: Annotated[tuple[DiskSettings, ...], Field(max_length=16)] = ()
    """Disks with their limits for all batch pods (BE) together; for each by itself where its group holds others too.
    Each with `device`, the name of the disk as in /sys/class/block, such as sda or nvme0n1 (of a partition the whole
    disk is bounded), `read_bps` and `write_bps` in bytes by second, `read_iops` and `write_iops` in operations by
    second, below 4294967295 (0: no bound), and `weight_percent` (1 to 100) beside groups that have 100, where the
    kernel weighs disks (io.cost)."""

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        names = [one.device for one in self.reclaimed_cores]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"reclaimed_cores names the disk {twice} twice; keep one")
        return self

    def rules(self) -> tuple[BlockLimits, ...]:
        """As the core takes them; none where it is off."""
        return tuple(one.rule() for one in self.reclaimed_cores) if self.enabled else ()


class QrmSettings(Settings):
    """How qrm places and writes."""

    mode: Mode = "enforce"
    """observe: look only; dry-run: plan and say so; enforce: write. The weaker of this and the advice's mode counts."""
    order: Order = "reclaim-first"
    """Which pool takes its CPUs first (docs/facts/katalyst-cpu.md#cpu-sets-of-the-tutorial)."""
    lease_s: Seconds = 10.0
    """Without fresh advice for so long the reclaimed pool falls to its floor, also when qrm is dead."""
    period_s: Seconds = 3.0
    """How often the classes are verified and the allocation is published again when no advice comes."""
    verify_s: Seconds = 10.0
    """How often every pod's group, with all below it, is read back when nothing changes, one after the other; Sublet's
    own classes above them are at every pass."""
    ramp_up_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 0.0
    """How long a new shared pod may use the reclaimed pool's CPUs as well (30 s in Katalyst, where the shared pool
    grows late). 0: not at all, for here it grows as soon as the pod needs it."""
    poll_s: Seconds = 0.5
    """How often is looked for new pods, and for the end of the lease."""
    pools: Annotated[tuple[PoolName, ...], Field(max_length=64)] | None = None
    """Names of pools that shared pods may have for themselves (`cpuset_pool`). Not said: on one host any, in a cluster
    none, for there whoever may create a pod would choose."""
    memory_migrate: bool = False
    """Whether the pages of a pod follow when it is bound to NUMA nodes (cgroup v1; on v2 the kernel always moves them).
    Moving takes the time of copying them, and the pod waits meanwhile."""
    burst_percent: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0
    """How much of its quota a tenant's container may save up and overdraw later, unless its pod says otherwise (CPU
    burst)."""
    quota_burst: QuotaBurstSettings = QuotaBurstSettings()
    """Quotas of tenants' containers that rise step by step while these are throttled and CPUs are idle; off unless
    `enabled`."""
    pod_quotas: bool = False
    """Whether reclaimed and mid pods on Kubernetes get no more CPU than their limit, as with Koordinator's batch-cpu.
    Off: CPU that nobody else wants is theirs. Not while the policy holds the whole class by a quota."""
    offload: OffloadSettings = OffloadSettings()
    """Idle memory of pods that is given back to the machine by and by; off unless `enabled`."""
    memory_qos: MemoryQosSettings = MemoryQosSettings()
    """Protection and throttling of memory by class; off unless `enabled`."""
    group_identity: GroupIdentitySettings = GroupIdentitySettings()
    """Whose turn it is on a CPU, on kernels that have `cpu.bvt_warp_ns`; off unless `enabled`."""
    resctrl: ResctrlSettings = ResctrlSettings()
    """Parts of L3 cache and memory bandwidth by class, where the machine has resctrl; off unless `enabled`."""
    block_io: BlockIoSettings = BlockIoSettings()
    """Limits of disks for batch work on Kubernetes; off unless `enabled`."""
    disks: DisksSettings = DisksSettings()
    """Write-back throttling and io.cost of whole disks; off unless `wbt` or `io_cost`."""
    net_class: NetClassSettings = NetClassSettings()
    """Ids of packets by class of pods, for others' filters (cgroup v1); off unless `enabled`."""
    starts: StartSettings = StartSettings()
    """Reclaimed pods that keep kubelet's weight and width until their containers run."""
    keeper: bool = True
    """Whether somebody else than qrm watches the lease: a process of its own, on Kubernetes a container of its own; the
    simulator goes without."""
    top_group: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_][-a-zA-Z0-9_.]{0,62}$")] = ROOT
    """Name of the cgroup that holds all of Sublet's; read once, at the start."""

    def isolation_rules(self, machine_bytes: int) -> NodeRules:
        """What the core takes of these settings for isolation, on a machine with so much memory."""
        return NodeRules(
            self.burst_percent,
            self.memory_qos.rules(),
            self.group_identity.rules(),
            machine_bytes,
            self.resctrl.rules(),
            self.block_io.rules(),
            self.disks.rules(),
            self.net_class.rules(),
        )

    def pool_names(self, *, in_cluster: bool) -> tuple[str, ...] | None:
        """Names that a pod may give for a pool of its own; None: any."""
        return () if self.pools is None and in_cluster else self.pools
