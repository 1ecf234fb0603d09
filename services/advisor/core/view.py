"""What a policy looks at: the containers that hold resources, and the node's memory, from one sample."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from services.advisor.core.estimate import Figures
from services.advisor.core.machine import Bounds
from services.advisor.core.memory import NodeMemory, Resident
from shared.contracts.pod import Container, Pod, QosClass
from shared.contracts.sample import ContainerReading, NodeSample, PodReading
from shared.core.layout import RECLAIM, SHARE

HOLDING = ("Pending", "Running")
CPU_TENANTS: tuple[QosClass, ...] = ("shared_cores", "dedicated_cores")
"""Classes whose need sizes the share pool; dedicated pods have no pool of their own yet."""


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

    @property
    def key(self) -> str:
        """namespace/pod/container."""
        return f"{self.pod}/{self.name}"


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

    def of(self, *classes: QosClass) -> tuple[ContainerView, ...]:
        """The containers of these QoS classes."""
        return tuple(container for container in self.containers if container.qos in classes)

    def blind(self) -> "View":
        """The same node without any figure of its containers: what is left when samples stop coming."""
        unseen = tuple(replace(container, cpu=Figures(), memory=Resident()) for container in self.containers)
        return replace(self, containers=unseen, tenants_usage_cores=None, fresh=False)


def view_of(sample: NodeSample, bounds: Bounds) -> View:
    """The view of a sample; pods that have ended hold nothing."""
    found = [view for reading in sample.pods if reading.pod.phase in HOLDING for view in _containers(reading)]
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
    )


def has_no_rates(sample: NodeSample, view: View) -> bool:
    """Whether this is the first pass of a measuring life, and the CPU use of a shared container is unknown for it.

    The next pass has it; until then nothing is decided on such a sample (absent is not zero).
    """
    return sample.window_s is None and any(c.cpu.usage_cores is None for c in view.of("shared_cores"))


def _containers(reading: PodReading) -> Iterator[ContainerView]:
    """Every container that was asked for or measured, whichever list it is in."""
    asked = {container.name: container for container in reading.pod.containers}
    measured = {container.name: container for container in reading.containers}
    for name in asked | measured:
        yield _container(reading.pod, name, asked.get(name), measured.get(name))


def _container(pod: Pod, name: str, asked: Container | None, measured: ContainerReading | None) -> ContainerView:
    return ContainerView(
        pod=pod.key,
        uid=pod.uid,
        name=name,
        qos=pod.qos,
        request_cores=asked.cpu_request_millis / 1000 if asked else 0.0,
        request_bytes=asked.memory_request_bytes if asked else 0,
        cpu=Figures(measured.cpu_usage_cores, measured.load1, measured.load5) if measured else Figures(),
        memory=Resident(measured.memory_rss_bytes, measured.memory_cache_bytes) if measured else Resident(),
    )
