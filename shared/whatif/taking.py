"""Kinds of the area `placement` that take CPUs, and the questions and answers that they share."""

from collections.abc import Callable
from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from shared.core.cpus.cpuset import CpuSet, canonical_cpu_list
from shared.core.cpus.taking.balanced import Granularity, take_by_numa_balance
from shared.core.cpus.taking.by_topology import take_by_topology
from shared.errors import Refused
from shared.whatif.decisions import Answer, Question, decision
from shared.whatif.topology_input import TopologyInput


class AvailableQuestion(Question):
    """A machine, and which of its CPUs may be taken."""

    topology: TopologyInput
    available: Annotated[str, AfterValidator(canonical_cpu_list)]

    @model_validator(mode="after")
    def _known_cpus(self) -> Self:
        if unknown := self.available_cpus - self.topology.topology.all:
            raise ValueError(f"available: CPUs {unknown} are not in the topology")
        return self

    @property
    def available_cpus(self) -> CpuSet:
        """The CPUs that may be taken, as a set."""
        return CpuSet.parse(self.available)


class TakeQuestion(AvailableQuestion):
    """How many CPUs are wanted; 0 or less takes nothing."""

    request_cpus: int


class TakeAnswer(Answer):
    """What was taken and what is left; with an error nothing was taken."""

    cpuset: str = ""
    remaining: str = ""
    error: str | None = None
    message: str | None = None


def take_answer(available: CpuSet, take: Callable[[], CpuSet]) -> TakeAnswer:
    """Call the calculator and put what it took, or why it refused, into words."""
    try:
        taken = take()
    except Refused as refusal:
        return TakeAnswer(remaining=str(available), error=refusal.reason, message=str(refusal))
    return TakeAnswer(cpuset=str(taken), remaining=str(available - taken))


class BalanceQuestion(TakeQuestion):
    """Inputs of `take_by_numa_balance`."""

    granularity: Granularity = "core"
    reverse: bool = False


@decision("take_by_numa_balance", area="placement", asks=BalanceQuestion, answers=TakeAnswer)
def take_by_numa_balance_answer(question: BalanceQuestion) -> TakeAnswer:
    """Take CPUs round-robin over NUMA nodes."""
    machine, available = question.topology.topology, question.available_cpus
    return take_answer(
        available,
        lambda: take_by_numa_balance(
            machine, available, question.request_cpus, granularity=question.granularity, reverse=question.reverse
        ),
    )


class TopologyTakeQuestion(TakeQuestion):
    """Inputs of `take_by_topology`."""

    align_l3: bool = False


@decision("take_by_topology", area="placement", asks=TopologyTakeQuestion, answers=TakeAnswer)
def take_by_topology_answer(question: TopologyTakeQuestion) -> TakeAnswer:
    """Take CPUs for a NUMA-bound block or a dedicated pod: free socket, L3, core, thread."""
    machine, available = question.topology.topology, question.available_cpus
    return take_answer(
        available, lambda: take_by_topology(machine, available, question.request_cpus, align_l3=question.align_l3)
    )
