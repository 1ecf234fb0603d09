"""The what-if kind `reserved_for_reclaim` splits the reclaimed pods' reserve over NUMA nodes."""

from typing import Annotated

from pydantic import Field

from services.advisor.core.sizing.reserves import kept_for_reclaim
from services.advisor.whatif.quantities import Cpus
from shared.whatif.decisions import Answer, Question, decision


class ReservedQuestion(Question):
    """A machine of like NUMA nodes, numbered from 0."""

    cpus: Annotated[int, Field(ge=1, le=1_000_000)]
    numas: Annotated[int, Field(ge=1, le=1024)]
    reserved_cores: Cpus
    numa_min_ratio: Annotated[float, Field(ge=0, le=1)] | None = None


class ReservedAnswer(Answer):
    """CPUs kept on each NUMA node, by its id."""

    per_numa_cpus: dict[int, int]


@decision("reserved_for_reclaim", area="cpu_sizing", asks=ReservedQuestion, answers=ReservedAnswer)
def reserved_for_reclaim(question: ReservedQuestion) -> ReservedAnswer:
    """Return what every NUMA node reserves for reclaimed pods."""
    each, more = divmod(question.cpus, question.numas)
    cpus = {numa: each + (numa < more) for numa in range(question.numas)}
    return ReservedAnswer(per_numa_cpus=kept_for_reclaim(cpus, question.reserved_cores, question.numa_min_ratio))
