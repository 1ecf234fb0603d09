"""The CPUs of best-effort pods under the policy cpuset (docs/facts/koordinator-cpu-suppress.md#the-policy-cpuset)."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator

from shared.core.cpus.cpuset import CpuSet, canonical_cpu_list
from shared.core.cpus.topology import Topology
from shared.core.pods.koord_qos import KoordQos
from shared.whatif.decisions import Answer, Question, decision
from shared.whatif.topology_input import TopologyInput
from sublet.reference.koordinator.suppress.picking import picked_cpus

MIN_CPUS = 2
"""Best-effort pods are never asked to do with fewer, however negative the budget."""
CpuList = Annotated[str, AfterValidator(canonical_cpu_list)]
PolicyStatus = Literal["using", "recovered"]


@dataclass(frozen=True, slots=True)
class BeCandidates:
    """What best-effort pods may run on: CPUs that LSR pods are bound to, and all others."""

    lsr: CpuSet
    shared: CpuSet

    @property
    def all(self) -> CpuSet:
        """Both groups."""
        return self.lsr | self.shared


def next_cpus(topology: Topology, candidates: BeCandidates, current: CpuSet, budget_millis: int) -> CpuSet:
    """The CPUs for a budget: at least two, grown by a tenth of the machine at most; `current` where too few are left.

    Both groups give in proportion to their size. What cannot be picked is not written there, so best-effort pods keep
    the CPUs that they have, however many.
    """
    grown = len(current) + _rounded_up(len(topology.cpus), 10)
    wanted = min(max(_rounded_up(budget_millis, 1000), MIN_CPUS), grown)
    if not 0 < wanted <= len(candidates.all):
        return current
    of_lsr = wanted * len(candidates.lsr) // len(candidates.all)
    picked = picked_cpus(topology, candidates.lsr, of_lsr)
    return CpuSet.of((*picked, *picked_cpus(topology, candidates.shared, wanted - of_lsr)))


def _rounded_up(amount: int, unit: int) -> int:
    return -(-amount // unit)


class BoundCpus(Question):
    """CPUs that a pod of this class is bound to."""

    koord_qos: KoordQos | None = None
    cpuset: CpuList


class CandidatesQuestion(Question):
    """The machine, and what of it is not for best-effort pods."""

    topology: TopologyInput
    current_be_cpuset: CpuList
    bound_cpus: list[BoundCpus]
    node_reserved_cpuset: CpuList = ""
    system_qos_cpuset: CpuList = ""
    system_qos_exclusive: bool = False

    @property
    def candidates(self) -> BeCandidates:
        """What remains for them."""
        kept = self._bound("LSE") | CpuSet.parse(self.node_reserved_cpuset)
        if self.system_qos_exclusive:
            kept |= CpuSet.parse(self.system_qos_cpuset)
        free = self.topology.topology.all - kept
        return BeCandidates(free & self._bound("LSR"), free - self._bound("LSR"))

    def _bound(self, qos: KoordQos) -> CpuSet:
        return CpuSet.union(CpuSet.parse(bound.cpuset) for bound in self.bound_cpus if bound.koord_qos == qos)


class AdjustQuestion(CandidatesQuestion):
    """What suppression leaves to best-effort pods."""

    budget_millicpu: int


class AdjustAnswer(Answer):
    """Their CPUs from now on."""

    be_cpuset: str


@decision("cpuset_adjust", area="koord_cpu_suppress", asks=AdjustQuestion, answers=AdjustAnswer)
def cpuset_adjust(question: AdjustQuestion) -> AdjustAnswer:
    """The next best-effort cpuset for a budget, after Koordinator."""
    current = CpuSet.parse(question.current_be_cpuset)
    machine = question.topology.topology
    return AdjustAnswer(be_cpuset=str(next_cpus(machine, question.candidates, current, question.budget_millicpu)))


class CpusetRecoverQuestion(CandidatesQuestion):
    """What the policy cpuset had done so far."""

    policy_status: PolicyStatus | None = None


class CpusetRecoverAnswer(Answer):
    """The CPUs without suppression."""

    be_cpuset: str
    policy_status: PolicyStatus


@decision("cpuset_recover", area="koord_cpu_suppress", asks=CpusetRecoverQuestion, answers=CpusetRecoverAnswer)
def cpuset_recover(question: CpusetRecoverQuestion) -> CpusetRecoverAnswer:
    """The best-effort cpuset when suppression by cpuset ends, after Koordinator."""
    return CpusetRecoverAnswer(be_cpuset=str(question.candidates.all), policy_status="recovered")


class ApplyQuestion(Question):
    """A new cpuset, the present one, and whether kubelet's CPU manager is static."""

    topology: TopologyInput
    new_be_cpuset: CpuList
    current_be_cpuset: CpuList
    kubelet_static: bool


class ApplyAnswer(Answer):
    """The CPUs of the best-effort group, of its pods, and of their containers."""

    be_root_cpuset: str
    be_pod_cpuset: str
    be_container_cpuset: str


@decision("cpuset_apply", area="koord_cpu_suppress", asks=ApplyQuestion, answers=ApplyAnswer)
def cpuset_apply(question: ApplyQuestion) -> ApplyAnswer:
    """What each cgroup level is given, after Koordinator.

    Facts: docs/facts/koordinator-cpu-suppress.md#which-level-gets-which-cpus.
    """
    # An empty set is never written: the level keeps what it has.
    containers = question.new_be_cpuset or question.current_be_cpuset
    above = str(question.topology.topology.all) if question.kubelet_static else containers
    return ApplyAnswer(be_root_cpuset=above, be_pod_cpuset=above, be_container_cpuset=containers)
