"""What the kinds of the area `placement` that take CPUs ask and answer."""

from collections.abc import Callable
from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from shared.core.cpus.cpuset import CpuSet, canonical_cpu_list
from shared.core.cpus.topology_input import TopologyInput
from shared.core.decisions import Answer, Question
from shared.errors import Refused


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
