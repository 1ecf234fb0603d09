"""Katalyst's CPUs of a container at admission, before any advice (docs/facts/katalyst-cpu.md#cpus-at-admission).

qrm admits a pod by arranging the whole node with it. Both share only the rule of dedicated pods.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from services.qrm.core.placement.dedicated import DedicatedRequest, of_dedicated, whole_cpus
from shared.contracts.pod import QosClass
from shared.core.cgroups.layout import RECLAIM, RESERVE
from shared.core.cpus.cpuset import CpuSet, canonical_cpu_list
from shared.core.cpus.taking.balanced import NOT_ENOUGH_CPUS, take_by_numa_balance
from shared.core.cpus.topology import Topology
from shared.errors import Refused
from shared.whatif.decisions import Answer, Question, decision
from shared.whatif.topology_input import TopologyInput

NUMA_HINT_NOT_SINGLE = "numa_hint_not_single"
NOT_SUPPORTED = "not_supported"
BOUND_SHARE_RATIO = 2.0
"""CPUs of a NUMA-bound shared pool for each CPU requested (CPUIncrRatioSharedCoresNUMABinding)."""

CpuListText = Annotated[str, AfterValidator(canonical_cpu_list)]


class AdmittedPod(Question):
    """One container of a pod, as its annotations describe it."""

    qos: QosClass
    container: Literal["main", "init", "sidecar"] = "main"
    request_cores: Annotated[float, Field(ge=0)] = 0.0
    numa_binding: bool = False
    numa_exclusive: bool | None = None
    cpuset_pool: str | None = None
    numa_number: int | None = None
    distribute_evenly_across_numa: bool = False
    full_pcpus_pairing: bool = False
    debug: bool = False


class PlacedPod(AdmittedPod):
    """A container that has its CPUs already."""

    cpuset: CpuListText = ""

    @property
    def cpus(self) -> CpuSet:
        """The CPUs it has."""
        return CpuSet.parse(self.cpuset)


class AdmissionQuestion(Question):
    """The pools, the pods already placed, and the container to admit."""

    topology: TopologyInput
    reserve_pool: CpuListText = ""
    reclaim_pool: CpuListText = ""
    pods: list[PlacedPod] = []
    pod: AdmittedPod
    hint_numas: list[int] | None = None
    enable_reclaim: bool = False
    allow_overlap: bool = False
    default_numa_exclusive: bool = False

    @cached_property
    def own(self) -> CpuSet:
        """CPUs that other pods have for themselves: dedicated ones, and bound ones of other pools."""
        sets = CpuSet()
        for placed in self.pods:
            if placed.qos == "dedicated_cores" or (placed.qos == "shared_cores" and self._another_bound_pool(placed)):
                sets |= placed.cpus
        return sets

    def _another_bound_pool(self, placed: PlacedPod) -> bool:
        if not placed.numa_binding:
            return False
        return not (self.pod.numa_binding and placed.cpuset_pool == self.pod.cpuset_pool)

    @property
    def free(self) -> CpuSet:
        """What tenants may still take. The reclaimed pool is not subtracted: it gives way."""
        return self.topology.topology.all - CpuSet.parse(self.reserve_pool) - self.own


class AdmissionAnswer(Answer):
    """The container's CPUs; null: it keeps whatever the runtime gives."""

    cpuset: str | None = None
    cpus: int = 0
    error: str | None = None
    message: str | None = None


@decision("admission_allocate", area="placement", asks=AdmissionQuestion, answers=AdmissionAnswer)
def admission_allocate(question: AdmissionQuestion) -> AdmissionAnswer:
    """The cpuset that a container gets at admission, before any advice."""
    if question.pod.container == "init" or question.pod.debug:
        return AdmissionAnswer()
    cpus = _RULES[question.pod.qos](question)
    return AdmissionAnswer(cpuset=str(cpus), cpus=len(cpus))


def _shared(question: AdmissionQuestion) -> CpuSet:
    pod, topology = question.pod, question.topology.topology
    if pod.numa_binding:
        all_free = not question.enable_reclaim or question.allow_overlap
        numas = question.hint_numas
        wish = pod.request_cores + sum(
            placed.request_cores
            for placed in question.pods
            if placed.qos == "shared_cores" and placed.numa_binding and placed.cpuset_pool == pod.cpuset_pool
            and numas and placed.cpus & topology.numas.get(numas[0], CpuSet())
        )  # fmt: skip
        return of_bound_share(topology, question.free, numas, wish, all_free=all_free)
    if not question.free:
        raise Refused("no CPU is left for shared pods", reason=NOT_ENOUGH_CPUS)
    return question.free


def of_bound_share(
    topology: Topology, free: CpuSet, numas: Sequence[int] | None, request_cores: float, *, all_free: bool
) -> CpuSet:
    """A NUMA-bound shared pool inside its one node: everything free there, or twice what is requested.

    Raises:
        Refused: `numa_hint_not_single`; `not_enough_cpus`, the node has no free CPU.
    """
    if numas is None or len(numas) != 1:
        raise Refused(
            f"a NUMA-bound shared pod needs exactly one NUMA node, the hint names {list(numas or ())}",
            reason=NUMA_HINT_NOT_SINGLE,
        )
    inside = topology.numas.get(numas[0], CpuSet()) & free
    if not inside:
        raise Refused(f"NUMA node {numas[0]} has no free CPU", reason=NOT_ENOUGH_CPUS)
    if all_free:
        return inside
    wish = max(1, whole_cpus(request_cores * BOUND_SHARE_RATIO))
    return take_by_numa_balance(topology, inside, min(wish, len(inside)))


def _dedicated(question: AdmissionQuestion) -> CpuSet:
    pod, topology = question.pod, question.topology.topology
    if not pod.numa_binding:
        raise Refused(
            "dedicated_cores without numa_binding is not supported; set numa_binding in memory_enhancement",
            reason=NOT_SUPPORTED,
        )
    if pod.container == "sidecar" and (main := _main_of(question)):
        return main.cpus
    exclusive = question.default_numa_exclusive if pod.numa_exclusive is None else pod.numa_exclusive
    numas = list(topology.numas) if question.hint_numas is None else question.hint_numas
    return of_dedicated(
        topology,
        question.free,
        numas,
        DedicatedRequest(pod.request_cores, exclusive, pod.distribute_evenly_across_numa, pod.full_pcpus_pairing),
    )


def _main_of(question: AdmissionQuestion) -> PlacedPod | None:
    """The container that a sidecar belongs to: the main one that was placed last, as containers come pod by pod."""
    mains = [p for p in question.pods if p.qos == question.pod.qos and p.container == "main" and p.cpuset]
    return mains[-1] if mains else None


def _reclaimed(question: AdmissionQuestion) -> CpuSet:
    pool, numas = CpuSet.parse(question.reclaim_pool), question.hint_numas
    if question.pod.numa_binding and numas is not None and len(numas) == 1:
        return pool & question.topology.topology.numas.get(numas[0], CpuSet())
    return pool


def _system(question: AdmissionQuestion) -> CpuSet:
    named = {RESERVE: question.reserve_pool, RECLAIM: question.reclaim_pool}
    for placed in question.pods:
        if placed.cpuset_pool and placed.qos != "system_cores":
            named.setdefault(placed.cpuset_pool, placed.cpuset)
    return CpuSet.parse(named.get(question.pod.cpuset_pool or "", "")) or question.topology.topology.all


_RULES = {
    "shared_cores": _shared,
    "dedicated_cores": _dedicated,
    "reclaimed_cores": _reclaimed,
    "system_cores": _system,
}
