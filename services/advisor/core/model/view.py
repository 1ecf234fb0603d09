"""The view is what a policy sees: containers that hold resources, and the node's memory, from one sample."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from services.advisor.core.model.containers import Containers, CpuColumns, once, once_beside_cpu
from services.advisor.core.model.figures import Figures, NodeMemory, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.profile import PodProfile
from shared.contracts.pod import QosClass
from shared.core.cgroups.layout import SHARE

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
    """The share pool of a shared container; "" if unknown."""
    cpus_per_numa: tuple[tuple[int, int], ...] = ()
    """NUMA node and CPUs there, where it does not run on all the CPUs of a pool."""
    dedicated: bool = False
    """Whether it has CPUs of its own."""
    bound: bool = False
    """It belongs on its NUMA nodes."""
    exclusive: bool = False
    """It has its NUMA nodes for itself."""
    runnable: float | None = None
    """Runnable tasks; None where not measured."""
    profile: PodProfile | None = None
    """The targets of its service; None if it has no profile, or none is known."""

    @property
    def key(self) -> str:
        """namespace/pod/container."""
        return f"{self.pod}/{self.name}"


def containers_of(containers: Sequence[ContainerView], classes: tuple[QosClass, ...]) -> Sequence[ContainerView]:
    """Those of these QoS classes; where all are, the same object."""
    return containers if _are_all_of(containers, classes) else _those_of(containers, classes)


@once_beside_cpu
def _are_all_of(containers: Sequence[ContainerView], classes: tuple[QosClass, ...]) -> bool:
    return all(container.qos in classes for container in containers)


@once
def _those_of(containers: Sequence[ContainerView], classes: tuple[QosClass, ...]) -> Containers[ContainerView]:
    return Containers([container for container in containers if container.qos in classes])


def cpu_columns(containers: Sequence[ContainerView]) -> CpuColumns:
    """The CPU figures of the containers, in their order."""
    known = containers.cpu if isinstance(containers, Containers) else None
    if known is not None:
        return known
    figures = [container.cpu for container in containers]
    found = CpuColumns([f.usage_cores for f in figures], [f.load1 for f in figures], [f.load5 for f in figures])
    if isinstance(containers, Containers):
        containers.cpu = found
    return found


@once_beside_cpu
def total_request_cores(containers: Sequence[ContainerView]) -> float:
    """What they requested together."""
    return sum([container.request_cores for container in containers])


@dataclass(frozen=True, slots=True)
class Signs:
    """How the tenants of a region fare as a whole; None where not measured."""

    waiting_tasks: float | None = None
    """Runnable tasks that waited for a CPU, on average, and that more CPUs would have served."""
    pressure_percent: float | None = None
    """Part of the last 10 s in which at least one task waited for a CPU (PSI)."""
    cycles_per_instruction: float | None = None
    waiting_for_others: float = 0.0
    """Runnable tasks that waited for their own quota or for the hypervisor, on average."""


def waiting_signs(containers: Iterable[ContainerView]) -> Signs:
    """Return what the shared ones of these containers wait for together, as far as it is measured."""
    waits = [c.cpu.wait for c in containers if c.qos == "shared_cores" and c.cpu.wait.for_cpus is not None]
    if not waits:
        return Signs()
    # The same sum in every order of the containers.
    return Signs(math.fsum(w.for_cpus or 0.0 for w in waits), waiting_for_others=math.fsum(w.for_others for w in waits))


@dataclass(frozen=True, slots=True)
class View:
    """One moment of the node, containers ascending by namespace/pod/container."""

    bounds: Bounds
    containers: Sequence[ContainerView] = ()
    memory: NodeMemory = field(default_factory=NodeMemory)
    tenants_usage_cores: float | None = None
    """CPU use of the shared pods' cgroup as a whole; in a sample made early it covers a shorter time than theirs."""
    fresh: bool = True
    """False: the sample is too old to be used, its figures are taken out, only what was asked for is left."""
    numas: tuple[tuple[int, int], ...] = ()
    """NUMA node and its CPUs; empty where unknown: one node."""
    node_usage_cores: float | None = None
    reclaimed_usage_cores: float | None = None
    elsewhere_usage_cores: float = 0.0
    """CPU use of the containers of other regions, as far as it is measured."""
    applications_usage_cores: float | None = 0.0
    """CPU use of applications outside of pods, as far as it is measured; None: unknown."""
    signs: Signs = Signs()
    region: str = SHARE
    """The region that is judged; `containers` are its own then."""
    size_cpus: int | None = None
    """CPUs of the region's pool now; None where unknown."""
    region_reserve_cores: float = 0.0
    """What is added to the region's need, or would be if the policy did not own its reserve."""

    def of(self, *classes: QosClass) -> Sequence[ContainerView]:
        """The containers of these QoS classes."""
        return containers_of(self.containers, classes)

    def blind(self) -> "View":
        """Return the same node without figures of its containers: when samples stop, only requests are known."""
        unseen = Containers(
            [replace(container, cpu=Figures(), memory=Resident(), runnable=None) for container in self.containers]
        )
        return replace(
            self, containers=unseen, tenants_usage_cores=None, node_usage_cores=None, reclaimed_usage_cores=None,
            elsewhere_usage_cores=0.0, applications_usage_cores=None, signs=Signs(), fresh=False,
        )  # fmt: skip
