"""Does a pod fit on a node whose CPUs are bound and over-committed? (docs/facts/katalyst-overcommit.md#fit)

A pod that gets whole CPUs takes them from everyone else, so each of them counts as often as it was sold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from services.central.core.overcommit.node_documents import overcommit_annotations, said_by
from services.central.core.overcommit.node_report import bound_cpus
from services.central.core.overcommit.ratio import effective_ratio
from shared.contracts.kube.overcommit import (
    CPU_MANAGER,
    MEMORY_MANAGER,
    RESOURCES,
    binds,
    realtime_ratio_key,
    set_ratio_key,
)

RefusedBecause = Literal["memory_manager", "insufficient_cpu", "ratio_unreadable"]


@dataclass(frozen=True, slots=True)
class ContainerClaim:
    """Requests of a container, None if undeclared; milli-cores and bytes."""

    cpu_request: int | None = None
    cpu_limit: int | None = None
    memory_request: int | None = None
    memory_limit: int | None = None
    init: bool = False

    @property
    def whole_cpus(self) -> int:
        """Return the CPUs that it owns if kubelet binds; 0: it shares CPUs."""
        cpu, memory = self.cpu_request, self.memory_request
        guaranteed = bool(cpu and memory) and cpu == self.cpu_limit and memory == self.memory_limit
        return cpu // 1000 if guaranteed and cpu is not None and cpu % 1000 == 0 else 0


@dataclass(frozen=True, slots=True)
class CpuTaken:
    """What a pod takes of a node: whole CPUs, or a request in milli-cores on shared ones."""

    guaranteed_cpus: int
    request_millis: int

    @property
    def nothing(self) -> bool:
        """Whether the pod asks for no CPU at all."""
        return not self.guaranteed_cpus and self.request_millis <= 0


@dataclass(frozen=True, slots=True)
class RatioPair:
    """A ratio as set and as the node can bear it, as written."""

    given: str | None = None
    realtime: str | None = None


@dataclass(frozen=True, slots=True)
class OvercommittedNode:
    """A node as the API server shows it, with what its annotations say."""

    allocatable_cpu_millis: int
    requested_cpu_millis: int
    original_cpu_millis: int | None = None
    """Allocatable by kubelet; None: not known."""
    guaranteed_cpus: int = 0
    cpu: RatioPair = RatioPair()
    memory: RatioPair = RatioPair()
    binds_cpus: bool = False
    binds_memory: bool = False


@dataclass(frozen=True, slots=True)
class OvercommitFit:
    """Whether the pod fits, why not, and the free milli-cores where they were counted."""

    reason: RefusedBecause | None = None
    free_cpu_millis: int | None = None

    @property
    def fits(self) -> bool:
        """Whether nothing speaks against it."""
        return self.reason is None


@dataclass(frozen=True, slots=True)
class SoldNode:
    """A Node's annotations about its sold resources; CPU as kubelet may give it, None: unknown."""

    cpu: RatioPair
    memory: RatioPair
    original_cpu_millis: int | None = None


@dataclass(frozen=True, slots=True)
class KubeletBinding:
    """What a CNR says about bindings of kubelet's managers."""

    cpus: bool
    memory: bool
    guaranteed_cpus: int = 0


def sold_node(document: Mapping[str, Any]) -> SoldNode | None:
    """A Node of its document; None: nothing of it is sold twice."""
    said = overcommit_annotations(document)
    cpu, memory = (RatioPair(said.get(set_ratio_key(name)), said.get(realtime_ratio_key(name))) for name in RESOURCES)
    if cpu.given is None and memory.given is None:
        return None
    original = said_by(said).originals.get("cpu")
    return SoldNode(cpu, memory, None if original is None else original.allocatable)


def kubelet_binding(document: Mapping[str, Any]) -> KubeletBinding | None:
    """Read a CNR; None: kubelet binds no pod, or nothing is reported."""
    annotations = (document.get("metadata") or {}).get("annotations") or {}
    cpus, memory = (binds(str(annotations.get(key) or "")) for key in (CPU_MANAGER, MEMORY_MANAGER))
    return KubeletBinding(cpus, memory, bound_cpus(annotations)) if cpus or memory else None


def cpu_taken(containers: Sequence[ContainerClaim], overhead_cpu_millis: int = 0) -> CpuTaken:
    """Return what a pod of these containers takes; its overhead is never an owned CPU."""
    if containers and all(one.whole_cpus for one in containers):
        return CpuTaken(_larger(containers, [one.whole_cpus for one in containers]), 0)
    return CpuTaken(0, _larger(containers, [one.cpu_request or 0 for one in containers]) + overhead_cpu_millis)


def overcommit_fit(claim: CpuTaken, node: OvercommittedNode) -> OvercommitFit:
    """Whether the claim can be met where CPUs are bound; elsewhere the scheduler's own count of requests is enough."""
    if claim.nothing:
        return OvercommitFit()
    cpu, memory = (effective_ratio(pair.given, pair.realtime) for pair in (node.cpu, node.memory))
    if cpu.problem or memory.problem:
        return OvercommitFit("ratio_unreadable")
    if node.binds_memory and memory.value > 1:
        return OvercommitFit("memory_manager")
    if not node.binds_cpus or cpu.value <= 1:
        return OvercommitFit()
    bound = node.guaranteed_cpus * 1000
    own = node.allocatable_cpu_millis if node.original_cpu_millis is None else node.original_cpu_millis
    free = int((own - bound) * cpu.value) - (node.requested_cpu_millis - bound)
    needed = int(claim.guaranteed_cpus * 1000 * cpu.value) or claim.request_millis
    return OvercommitFit("insufficient_cpu" if needed > free else None, free)


def _larger(containers: Sequence[ContainerClaim], amounts: Sequence[int]) -> int:
    """The sum of those that run together, or the largest that runs before them."""
    pairs = list(zip(containers, amounts, strict=True))
    together = sum(amount for one, amount in pairs if not one.init)
    return max([together, *(amount for one, amount in pairs if one.init)])
