"""NodeSample: what the kernel says about the node, its pools, pods and containers, at one moment."""

from typing import Annotated, ClassVar

from pydantic import Field

from shared.contracts.envelope import Amount, Bytes, Count, CpuList, Message, MessagePart
from shared.contracts.pod import KoordQos, Pod, PriorityClass
from shared.core.cpus.cpuset import CpuSet


class Pressure(MessagePart):
    """Stall shares in percent over 10 and 60 s ("some": at least one task waits; "full": all do)."""

    some_avg10_percent: Amount = 0.0
    some_avg60_percent: Amount = 0.0
    full_avg10_percent: Amount = 0.0


class CpuUsage(MessagePart):
    """How busy each CPU was. `busy_percent` is in the ascending order of `cpus`; a CPU not in it has no figure."""

    cpus: CpuList
    busy_percent: tuple[Annotated[int, Field(ge=0, le=100)], ...]

    def by_cpu(self) -> dict[int, int]:
        """Percent by CPU id; empty where list and figures do not match."""
        cpus = tuple(CpuSet.parse(self.cpus))
        return dict(zip(cpus, self.busy_percent, strict=True)) if len(cpus) == len(self.busy_percent) else {}


class GroupNuma(MessagePart):
    """What a cgroup holds on one NUMA node."""

    numa: Count
    anon_bytes: Bytes | None = None
    file_bytes: Bytes | None = None


class NodeReading(MessagePart):
    """The whole node. A figure that could not be read, or needs a second reading, is absent: never 0."""

    online_cpus: CpuList
    cpu_usage_cores: Amount | None = None
    cpu_steal_cores: Amount | None = None
    """CPUs that had work while the hypervisor ran somebody else on them, on average; not in the usage."""
    load1: Amount | None = None
    load5: Amount | None = None
    runnable_tasks: Count | None = None
    memory_total_bytes: Bytes | None = None
    memory_free_bytes: Bytes | None = None
    memory_available_bytes: Bytes | None = None
    watermark_scale_factor: Count | None = None
    kswapd_steal_pages: Count | None = None
    cpu_pressure: Pressure | None = None
    memory_pressure: Pressure | None = None
    io_pressure: Pressure | None = None
    cpus: CpuUsage | None = None
    """Usage of each CPU."""
    sched_wait_tasks: Amount | None = None
    """Runnable tasks that waited for a CPU, on average: seconds of waiting per second."""
    kswapd_steal_pages_per_s: Amount | None = None
    """Pages that kswapd reclaimed."""
    direct_steal_pages_per_s: Amount | None = None
    """Pages that tasks had to reclaim themselves: they wait meanwhile."""
    refault_pages_per_s: Amount | None = None
    """Pages read back that had been reclaimed while still in use."""
    disk_read_bytes_per_s: Amount | None = None
    disk_write_bytes_per_s: Amount | None = None
    network_receive_bytes_per_s: Amount | None = None
    network_transmit_bytes_per_s: Amount | None = None
    extra: dict[str, float] = {}
    """Figures that have no field: by name, or by name and thing ("nic_up.eth0")."""

    @property
    def nic_up(self) -> dict[str, float]:
        """By network card: 0 where it has no link."""
        name = "nic_up."
        return {key.removeprefix(name): figure for key, figure in self.extra.items() if key.startswith(name)}

    @property
    def rootfs_capacity_bytes(self) -> float | None:
        """Size of the root file system."""
        return self.extra.get("rootfs_capacity_bytes")


class NumaReading(MessagePart):
    """One NUMA node."""

    numa: Count
    cpus: CpuList = ""
    memory_total_bytes: Bytes | None = None
    memory_free_bytes: Bytes | None = None
    inactive_file_bytes: Bytes | None = None
    file_bytes: Bytes | None = None
    """Page cache."""
    active_file_bytes: Bytes | None = None
    slab_reclaimable_bytes: Bytes | None = None
    """Of the kernel's own memory what it gives back under pressure."""
    watermark_min_bytes: Bytes | None = None
    watermark_low_bytes: Bytes | None = None
    """Free memory below which kswapd wakes, summed over the zones."""
    watermark_high_bytes: Bytes | None = None
    extra: dict[str, float] = {}

    @property
    def socket(self) -> int | None:
        """The socket that it lies in."""
        number = self.extra.get("socket")
        return None if number is None else int(number)

    @property
    def memory_used_bytes(self) -> int | None:
        """What cannot be had back from pages of files and the kernel, for there is no MemAvailable; None: not known."""
        total = self.memory_total_bytes
        rest = (self.memory_free_bytes, self.active_file_bytes, self.inactive_file_bytes, self.slab_reclaimable_bytes)
        known = [part for part in rest if part is not None]
        return None if total is None or len(known) < len(rest) else max(0, total - sum(known))


class GroupReading(MessagePart):
    """One cgroup: a pool or a container. A limit that is not set is absent."""

    cpu_usage_cores: Amount | None = None
    load1: Amount | None = None
    load5: Amount | None = None
    runnable_tasks: Count | None = None
    throttled_ratio: Amount | None = None
    memory_usage_bytes: Bytes | None = None
    memory_rss_bytes: Bytes | None = None
    memory_cache_bytes: Bytes | None = None
    memory_working_set_bytes: Bytes | None = None
    memory_shmem_bytes: Bytes | None = None
    memory_numa: tuple[GroupNuma, ...] | None = None
    """Ascending by NUMA node."""
    refault_pages_per_s: Amount | None = None
    sched_wait_tasks: Amount | None = None
    """Its runnable tasks that waited for a CPU, on average."""
    cpu_limit_cores: Amount | None = None
    memory_limit_bytes: Bytes | None = None
    disk_read_bytes_per_s: Amount | None = None
    disk_write_bytes_per_s: Amount | None = None
    cpu_pressure: Pressure | None = None
    memory_pressure: Pressure | None = None
    io_pressure: Pressure | None = None
    extra: dict[str, float] = {}


class PoolReading(GroupReading):
    """A pool's cgroup: "share", "reclaim", …"""

    pool: str


class ContainerReading(GroupReading):
    """One container of a pod."""

    name: str
    cpu_sys_cores: Amount | None = None
    """Of its CPU usage, what the kernel spent on its behalf."""
    throttled_cores: Amount | None = None
    """CPUs on which its own quota kept its tasks from running, on average; absent where it has no quota."""


class ApplicationReading(GroupReading):
    """An application outside of pods that the settings name, in its own cgroup. Its use is no pod's."""

    name: str
    qos: KoordQos | None = None
    priority: PriorityClass | None = None
    pool: str = ""
    """The pool whose cgroup it runs in, with which it is counted already."""
    unmeasured: str = ""
    """Why there is no figure of it, and what to do; its use is the system's then."""

    @property
    def lent(self) -> bool:
        """Whether what it uses is batch resources: by its priority class, and without one by its QoS class."""
        return self.priority in ("koord-batch", "koord-free") or (self.priority is None and self.qos == "BE")

    @property
    def cpu_used_millis(self) -> int | None:
        """Milli-cores."""
        return None if self.cpu_usage_cores is None else round(self.cpu_usage_cores * 1000)

    @property
    def memory_used_bytes(self) -> int | None:
        """Working set where known, else usage."""
        if self.memory_working_set_bytes is not None:
            return self.memory_working_set_bytes
        return self.memory_usage_bytes


class PodReading(MessagePart):
    """One pod with what its containers use."""

    pod: Pod
    containers: tuple[ContainerReading, ...] = ()
    annotations_left_out: bool | None = None
    """True: annotations that somebody reads may be missing, because the message would be longer than its readers
    read."""

    @property
    def memory_usage_bytes(self) -> int | None:
        """Working set where known, else usage, summed; None when no container has a figure."""
        known = [
            m
            for c in self.containers
            if (m := c.memory_working_set_bytes if c.memory_working_set_bytes is not None else c.memory_usage_bytes)
            is not None
        ]
        return sum(known) if known else None


class NodeSample(Message):
    """Everything measured in one pass. `window_s` is the time the rates cover; None on the first pass of a life."""

    kind: ClassVar[str] = "sample"

    window_s: Amount | None = None
    trigger: str = "period"
    """What made this pass: "period", "start", "tenant", "psi", "memory", "pods"."""
    node_reading: NodeReading
    numas: tuple[NumaReading, ...] = ()
    pools: tuple[PoolReading, ...] = ()
    pods: tuple[PodReading, ...] = ()
    host_applications: tuple[ApplicationReading, ...] = ()
    """As the settings name them."""
    counters_unmeasured: str = ""
    """Why enabled performance counters have no figures, and what to do."""
    pods_left_out: Count = 0
    """Pods of the node that are not in `pods`, because the message would be longer than its readers read."""
    figure_ages_s: dict[str, Amount] = {}
    """Figures that were not read in this pass for at least one pool or container, because nothing moved there, and
    the age of the oldest. A figure that is not named is as old as the sample."""

    @property
    def unmeasured_applications(self) -> str:
        """Which applications outside of pods have no figure, and why; "" where all have."""
        return "; ".join(f"{one.name}: {one.unmeasured}" for one in self.host_applications if one.unmeasured)

    def pool(self, name: str) -> PoolReading | None:
        """The reading of one pool."""
        return next((p for p in self.pools if p.pool == name), None)
