"""Settings of qrm: placement, writes, memory offloading and pod starts."""

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
    """Gradual return of pods' idle memory to the machine (cgroup v2); `services.qrm.core.memory.offload`."""

    enabled: bool = False
    """Reclaims idle memory of pods. Off by default, because a pod that uses a reclaimed page again waits until it is
    read from disk."""
    classes: tuple[QosClass, ...] = ("reclaimed_cores",)
    """Classes of pods whose idle memory is reclaimed."""
    period_s: Seconds = 10.0
    """Seconds between two steps of a pod."""
    target_percent: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = DEFAULT_RULES.target_percent
    """Greatest share of time in which some task of the pod may stall on memory, in percent."""
    stride: Annotated[float, Field(gt=0, le=0.5, allow_inf_nan=False)] = DEFAULT_RULES.stride
    """Greatest share of its memory that a pod returns in one step."""
    most_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 34)] = DEFAULT_RULES.most_bytes
    """Most memory that a pod returns in one step."""
    keep_bytes: Annotated[int, Field(ge=0, le=1 << 50)] = DEFAULT_RULES.keep_bytes
    """Memory that every pod keeps."""
    refault_bytes_s: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] = DEFAULT_RULES.refault_bytes_s
    """Tolerated rate of memory that is read in again."""
    pause_s: Seconds = DEFAULT_RULES.pause_s
    """How long nothing is reclaimed after a step that was too large."""

    @property
    def rules(self) -> OffloadRules:
        """Return the rules as the core takes them."""
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
    """Most pods that start at the same time, for each CPU of the machine; 0: starting pods yield to all others."""
    each_s: Seconds = 120.0
    """Most seconds of its life that a pod may count as starting, over all restarts."""
    each_cpu_s: Seconds = 10.0
    """Most CPU time that a pod may use while it counts as starting, over all restarts."""

    def rules(self, cpus: int) -> StartRules:
        """Return the rules as the core takes them, for a machine with this number of CPUs."""
        return StartRules(self.pods_per_cpu * cpus, self.each_s, self.each_cpu_s)


Percent = Annotated[int, Field(ge=0, le=100)]


class MemoryQosClass(Settings):
    """Memory QoS of one class of pods; files named `memory.wmark_…` exist on kernels with Alibaba's patches."""

    min_percent: Percent = 0
    """Share of a pod's request that is never reclaimed (`memory.min`, cgroup v2), in percent."""
    low_percent: Percent = 0
    """Share of a pod's request that is reclaimed last (`memory.low`, cgroup v2), in percent."""
    throttle_percent: Percent = 0
    """Point between request and limit from which a container is throttled (`memory.high`, cgroup v2), in percent of
    the distance; 0: never."""
    wmark_ratio: Percent = 95
    """Share of its limit above which the kernel reclaims from a group in the background, in percent; 0: never."""
    wmark_scale_permill: Annotated[int, Field(ge=1, le=1000)] = 20
    """Distance below that share at which background reclaim stops, in permill of the limit."""
    wmark_min_adj: Annotated[int, Field(ge=-25, le=50)] = 0
    """Percent by which a group's watermark is lower (negative) or higher than the machine's lowest watermark."""

    def rule(self) -> MemoryQos:
        """Return the rule as the core takes it."""
        return MemoryQos(**self.model_dump())


def _memory_qos(qos: QosClass) -> MemoryQosClass:
    return MemoryQosClass(**asdict(AUTO[qos]))


class MemoryQosSettings(Settings):
    """Memory QoS by class, as in Koordinator; `services.qrm.core.isolation.memory_qos`."""

    enabled: bool = False
    """Writes memory QoS, and follows the annotation `koordinator.sh/memoryQOS` of pods."""
    dedicated_cores: MemoryQosClass = _memory_qos("dedicated_cores")
    """Pods with CPUs of their own (LSE and LSR)."""
    shared_cores: MemoryQosClass = _memory_qos("shared_cores")
    """Other tenants (LS)."""
    reclaimed_cores: MemoryQosClass = _memory_qos("reclaimed_cores")
    """Batch work (BE)."""
    system_cores: MemoryQosClass = _memory_qos("system_cores")
    """Pods of the node itself (SYSTEM)."""

    def rules(self) -> Mapping[QosClass, MemoryQos]:
        """Return the rules as the core takes them; empty if memory QoS is off."""
        return {qos: getattr(self, qos).rule() for qos in QOS_CLASSES} if self.enabled else {}


Identity = Annotated[int, Field(ge=-1, le=2)]


class GroupIdentitySettings(Settings):
    """Group identity by class, as in Koordinator; `services.qrm.core.isolation.group_identity`."""

    enabled: bool = False
    """Writes group identities; on a kernel without the file the condition is KernelLacks."""
    dedicated_cores: Identity = 2
    """Pods with CPUs of their own (LSE and LSR)."""
    shared_cores: Identity = 2
    """Other tenants (LS)."""
    reclaimed_cores: Identity = -1
    """Batch work (BE); below 0 it yields to all others."""
    system_cores: Identity = 0
    """Pods of the node itself (SYSTEM)."""

    def rules(self) -> Mapping[QosClass, int]:
        """Return the rules as the core takes them; empty if group identity is off."""
        return {qos: getattr(self, qos) for qos in QOS_CLASSES} if self.enabled else {}


DEFAULT_QUOTA_BURST = QuotaBurstRules()


class QuotaBurstSettings(Settings):
    """Quotas of tenants' containers that rise while the containers are throttled;
    `services.qrm.core.isolation.quota_burst`."""

    enabled: bool = False
    """Raises quotas, unless a pod forbids it (`koordinator.sh/cpuBurst`)."""
    by_annotation: bool = False
    """Follows a pod's annotation even if `enabled` is off. Amounts in the annotation can only lower the amounts
    below."""
    most_percent: Annotated[int, Field(ge=100, le=1000)] = DEFAULT_QUOTA_BURST.most_percent
    """Largest quota, in percent of the container's limit."""
    budget_s: Annotated[int, Field(ge=-1, le=86_400)] = DEFAULT_QUOTA_BURST.budget_s
    """How long a container may use its largest quota before it must use little for as long; -1: without end."""
    share_pool_percent: Annotated[int, Field(ge=0, le=100)] = DEFAULT_QUOTA_BURST.share_pool_percent
    """Utilization of the tenants' shared CPUs above which quotas fall, in percent; above nine tenths of it no quota
    rises."""
    hold_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = DEFAULT_QUOTA_BURST.hold_s
    """How long a quota stays raised after throttling ends."""

    def rules(self) -> QuotaBurstRules:
        """Return the rules as the core takes them."""
        return QuotaBurstRules(**self.model_dump())


Rate = Annotated[int, Field(ge=0, lt=1 << 63)]
OperationRate = Annotated[int, Field(ge=0, lt=UNBOUNDED_IOPS)]


class DiskSettings(BaseModel):
    """Limits of one disk."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: Annotated[str, Field(pattern=r"^[a-zA-Z0-9][-a-zA-Z0-9_.]{0,62}$")]
    """Name of the disk as in /sys/class/block, such as sda or nvme0n1; for a partition, the whole disk is limited."""
    read_bps: Rate = 0
    """Most bytes per second that are read; 0: no bound."""
    write_bps: Rate = 0
    """Most bytes per second that are written; 0: no bound."""
    read_iops: OperationRate = 0
    """Most reads per second; 0: no bound."""
    write_iops: OperationRate = 0
    """Most writes per second; 0: no bound."""
    weight_percent: Annotated[int, Field(ge=1, le=100)] = 100
    """Weight relative to groups that have 100, on kernels that weigh disks (io.cost), in percent."""

    def rule(self) -> BlockLimits:
        """Return the limits as the core takes them."""
        return BlockLimits(**self.model_dump())


class BlockIoSettings(Settings):
    """Disk limits for batch work, as in Koordinator's blkio; `services.qrm.core.isolation.block_io`."""

    enabled: bool = False
    """Writes disk limits, on Kubernetes; on a kernel without the files the condition is KernelLacks."""
    reclaimed_cores: Annotated[tuple[DiskSettings, ...], Field(max_length=16)] = ()
    """Disk limits of all batch pods (BE) together; of each batch pod by itself if its parent group also holds
    others. Each entry has `device`, the name of the disk as in /sys/class/block, such as sda or nvme0n1 (for a
    partition, the whole disk is limited), `read_bps` and `write_bps` in bytes per second, `read_iops` and
    `write_iops` in operations per second, below 4294967295 (0: no bound), and `weight_percent` (1 to 100) relative
    to groups that have 100, on kernels that weigh disks (io.cost)."""

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        names = [one.device for one in self.reclaimed_cores]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"reclaimed_cores names the disk {twice} twice; keep one")
        return self

    def rules(self) -> tuple[BlockLimits, ...]:
        """Return the limits as the core takes them; empty if they are off."""
        return tuple(one.rule() for one in self.reclaimed_cores) if self.enabled else ()


class QrmSettings(Settings):
    """How qrm places pods and writes cgroups."""

    mode: Mode = "enforce"
    """observe: only observe. dry-run: plan and report the plan. enforce: write. The weaker of this mode and the
    advice's mode applies."""
    order: Order = "reclaim-first"
    """Which pool is assigned CPUs first (docs/facts/katalyst-cpu.md#cpu-sets-of-the-tutorial)."""
    lease_s: Seconds = 10.0
    """Without fresh advice for this time the reclaimed pool shrinks to its floor, even if qrm is dead."""
    period_s: Seconds = 5.0
    """How often qrm verifies Sublet's groups and republishes the allocation while no advice arrives."""
    verify_s: Seconds = 30.0
    """How often each pod's group, with everything below it, is read back while nothing changes, one pod after
    another. Sublet's own groups above them are verified in every pass."""
    ramp_up_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 0.0
    """How long a new shared pod may also use the reclaimed pool's CPUs (30 s in Katalyst, where the shared pool
    grows late). 0: never, because Sublet's pool grows as soon as the pod needs it."""
    poll_s: Seconds = 0.5
    """How often qrm checks for new pods, and for the end of the lease."""
    pools: Annotated[tuple[PoolName, ...], Field(max_length=64)] | None = None
    """Names of pools that shared pods may request (`cpuset_pool`). Not set: any name on one host, none in a cluster,
    where otherwise anyone who can create a pod could choose."""
    memory_migrate: bool = False
    """Moves a pod's pages when the pod is bound to NUMA nodes (cgroup v1; on v2 the kernel always moves them).
    Moving takes as long as copying, and the pod waits for it."""
    burst_percent: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 0.0
    """How much of its quota a tenant's container may save and overdraw later, in percent, unless its pod says
    otherwise (CPU burst)."""
    quota_burst: QuotaBurstSettings = QuotaBurstSettings()
    """Quotas of tenants' containers that rise step by step while the containers are throttled and CPUs are idle; off
    unless `enabled`."""
    pod_quotas: bool = False
    """Limits reclaimed and mid pods on Kubernetes to their CPU limit, as Koordinator does for batch-cpu. Off: they
    may use idle CPU beyond it. Ignored while the policy limits the whole class by a quota."""
    offload: OffloadSettings = OffloadSettings()
    """Gradual return of pods' idle memory to the machine; off unless `enabled`."""
    memory_qos: MemoryQosSettings = MemoryQosSettings()
    """Protection and throttling of memory by class; off unless `enabled`."""
    group_identity: GroupIdentitySettings = GroupIdentitySettings()
    """Precedence on a CPU, on kernels that have `cpu.bvt_warp_ns`; off unless `enabled`."""
    resctrl: ResctrlSettings = ResctrlSettings()
    """Shares of L3 cache and memory bandwidth by class, on machines with resctrl; off unless `enabled`."""
    block_io: BlockIoSettings = BlockIoSettings()
    """Disk limits for batch work on Kubernetes; off unless `enabled`."""
    disks: DisksSettings = DisksSettings()
    """Write-back throttling and io.cost of whole disks; off unless `wbt` or `io_cost`."""
    net_class: NetClassSettings = NetClassSettings()
    """Packet ids by class of pods, for filters of others (cgroup v1); off unless `enabled`."""
    starts: StartSettings = StartSettings()
    """Reclaimed pods keep kubelet's weight and width until their containers run."""
    keeper: bool = True
    """Watches the lease from outside of qrm: in a separate process, on Kubernetes in a separate container. The
    simulator does without."""
    top_group: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_][-a-zA-Z0-9_.]{0,62}$")] = ROOT
    """Name of the cgroup that holds all of Sublet's groups; read once, at the start."""

    def isolation_rules(self, machine_bytes: int) -> NodeRules:
        """Return what the core takes of these settings for isolation, on a machine with this much memory."""
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
        """Return the names that a pod may request for its pool; None: any."""
        return () if self.pools is None and in_cluster else self.pools
