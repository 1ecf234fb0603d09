"""What a policy looks at: the containers that hold resources, and the node's memory, from one sample."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from services.advisor.core.estimate import Figures
from services.advisor.core.machine import Bounds
from services.advisor.core.memory import NodeMemory, Resident
from services.advisor.core.placed import NOWHERE, Place, place_of
from shared.contracts.pod import Container, Pod, QosClass
from shared.contracts.sample import ContainerReading, NodeSample, PodReading, PoolReading
from shared.core.cgroups.layout import RECLAIM, SHARE
from shared.core.cpus.cpuset import CpuSet

HOLDING = ("Pending", "Running")
CPU_TENANTS: tuple[QosClass, ...] = ("shared_cores", "dedicated_cores")
"""Classes whose need sizes the tenants' pools; a dedicated pod without CPUs of its own runs in the share pool."""


@dataclass(frozen=True, slots=True)
class ContainerView:
    """One container: what it asked for and what is measured of it."""

    pod: str
    uid: str
    name: str
    qos: QosClass
    request_cores: float
    request_bytes: int
    cpu: Figures
    memory: Resident
    limit_cores: float = 0.0
    """0: no limit."""
    pool: str = SHARE
    """Of a shared container: the share pool that it belongs to; "" where that is not known."""
    cpus_per_numa: tuple[tuple[int, int], ...] = ()
    """NUMA node and CPUs there, where it does not run on all the CPUs of a pool."""
    dedicated: bool = False
    """It has CPUs of its own."""
    bound: bool = False
    """It belongs on its NUMA nodes."""
    exclusive: bool = False
    """It has its NUMA nodes for itself."""
    runnable: float | None = None
    """Runnable tasks; None where not measured."""

    @property
    def key(self) -> str:
        """namespace/pod/container."""
        return f"{self.pod}/{self.name}"


@dataclass(frozen=True, slots=True)
class Signs:
    """How the tenants of a region fare as a whole; None where not measured."""

    waiting_tasks: float | None = None
    """Runnable tasks that waited for a CPU, on average."""
    pressure_percent: float | None = None
    """Part of the last 10 s in which at least one task waited for a CPU (PSI)."""
    cycles_per_instruction: float | None = None


@dataclass(frozen=True, slots=True)
class View:
    """One moment of the node, containers ascending by namespace/pod/container."""

    bounds: Bounds
    containers: tuple[ContainerView, ...] = ()
    memory: NodeMemory = field(default_factory=NodeMemory)
    tenants_usage_cores: float | None = None
    """CPU use of the shared pods' cgroup as a whole; in a sample made early it covers a shorter time than theirs."""
    fresh: bool = True
    """False: the sample is too old to be used, its figures are taken out, only what was asked for is left."""
    numas: tuple[tuple[int, int], ...] = ()
    """NUMA node and its CPUs; empty where unknown: one node."""
    node_usage_cores: float | None = None
    reclaimed_usage_cores: float | None = None
    signs: Signs = Signs()
    region: str = SHARE
    """The region that is judged; `containers` are its own then."""
    size_cpus: int | None = None
    """CPUs of the region's pool now; None where unknown."""
    region_reserve_cores: float = 0.0
    """What is added to the region's need."""

    def of(self, *classes: QosClass) -> tuple[ContainerView, ...]:
        """The containers of these QoS classes."""
        return tuple(container for container in self.containers if container.qos in classes)

    def blind(self) -> "View":
        """The same node without any figure of its containers: what is left when samples stop coming."""
        unseen = tuple(
            replace(container, cpu=Figures(), memory=Resident(), runnable=None) for container in self.containers
        )
        return replace(
            self, containers=unseen, tenants_usage_cores=None, node_usage_cores=None, reclaimed_usage_cores=None,
            signs=Signs(), fresh=False,
        )  # fmt: skip


def view_of(sample: NodeSample, bounds: Bounds, places: Mapping[str, Place] = NOWHERE) -> View:
    """The view of a sample; pods that have ended hold nothing. `places`: where pods with CPUs of their own are."""
    found = [view for reading in sample.pods if reading.pod.phase in HOLDING for view in _containers(reading, places)]
    reclaimed, tenants = sample.pool(RECLAIM), sample.pool(SHARE)
    node = sample.node_reading
    available = node.memory_free_bytes if node.memory_available_bytes is None else node.memory_available_bytes
    return View(
        bounds=bounds,
        containers=tuple(sorted(found, key=lambda c: (c.pod, c.name, c.uid))),
        tenants_usage_cores=tenants.cpu_usage_cores if tenants else None,
        memory=NodeMemory(
            total_bytes=node.memory_total_bytes,
            available_bytes=available,
            reclaimed_used_bytes=reclaimed.memory_usage_bytes if reclaimed else None,
            watermark_scale_factor=node.watermark_scale_factor,
        ),
        numas=_numas(sample, bounds),
        node_usage_cores=node.cpu_usage_cores,
        reclaimed_usage_cores=reclaimed.cpu_usage_cores if reclaimed else None,
        signs=_signs(tenants) if tenants else Signs(),
    )


def _numas(sample: NodeSample, bounds: Bounds) -> tuple[tuple[int, int], ...]:
    """Empty where the nodes' CPUs do not add up to those of the machine: then nothing is known of them."""
    online = CpuSet.parse(sample.node_reading.online_cpus)
    numas = tuple((node.numa, len(CpuSet.parse(node.cpus) & online)) for node in sample.numas)
    return tuple(node for node in numas if node[1]) if sum(cpus for _, cpus in numas) == bounds.cpus else ()


def _signs(pool: PoolReading) -> Signs:
    pressure = pool.cpu_pressure
    return Signs(
        waiting_tasks=pool.sched_wait_tasks,
        pressure_percent=None if pressure is None else pressure.some_avg10_percent,
        cycles_per_instruction=pool.extra.get("cpi"),
    )


def has_no_rates(sample: NodeSample, view: View) -> bool:
    """Whether this is the first pass of a measuring life, and the CPU use of a shared container is unknown for it.

    The next pass has it; until then nothing is decided on such a sample (absent is not zero).
    """
    return sample.window_s is None and any(c.cpu.usage_cores is None for c in view.of("shared_cores"))


def _containers(reading: PodReading, places: Mapping[str, Place]) -> Iterator[ContainerView]:
    """Every container that was asked for or measured, whichever list it is in."""
    asked = {container.name: container for container in reading.pod.containers}
    measured = {container.name: container for container in reading.containers}
    place = place_of(reading.pod, places.get(reading.pod.uid))
    for name in asked | measured:
        yield _container(reading.pod, place, name, asked.get(name), measured.get(name))


def _container(
    pod: Pod, place: Place, name: str, asked: Container | None, measured: ContainerReading | None
) -> ContainerView:
    return ContainerView(
        pod=pod.key,
        uid=pod.uid,
        name=name,
        qos=pod.qos,
        request_cores=asked.cpu_request_millis / 1000 if asked else 0.0,
        request_bytes=asked.memory_request_bytes if asked else 0,
        cpu=Figures(measured.cpu_usage_cores, measured.load1, measured.load5) if measured else Figures(),
        memory=Resident(measured.memory_rss_bytes, measured.memory_cache_bytes) if measured else Resident(),
        limit_cores=asked.cpu_limit_millis / 1000 if asked else 0.0,
        pool=place.pool,
        cpus_per_numa=place.cpus_per_numa,
        dedicated=place.dedicated,
        bound=place.bound,
        exclusive=place.exclusive,
        runnable=measured.runnable_tasks if measured else None,
    )
