"""The what-if kind `assemble_provision` asks the assembler about regions that a question describes."""

import math
from typing import Annotated, Any

from pydantic import Field

from services.advisor.core.model.region import RegionType
from services.advisor.core.model.shape import NodeCpus
from services.advisor.core.sizing.assemble import RegionRequirement, assemble
from services.advisor.whatif.quantities import Cores, Cpus
from shared.whatif.decisions import Answer, Question, decision

NumaId = Annotated[int, Field(ge=0, le=1_000_000)]


class RegionInput(Question):
    """One region; isolated ones have bounds instead of a requirement."""

    pool: str
    type: RegionType
    numas: list[NumaId] = []
    numa_binding: bool = False
    required_cores: Cores | None = None
    pods_request_cores: Cores | None = None
    isolation_upper_cpus: Cpus | None = None
    isolation_lower_cpus: Cpus | None = None

    def requirement(self) -> RegionRequirement:
        """The region as the service has it."""
        return RegionRequirement(
            pool=self.pool,
            type=self.type,
            numas=tuple(sorted(set(self.numas))),
            bound=self.numa_binding,
            required_cpus=math.floor(self.required_cores or 0.0),
            request_cores=self.pods_request_cores or 0.0,
            upper_cpus=self.isolation_upper_cpus or 0,
            lower_cpus=self.isolation_lower_cpus or 0,
        )


class AssembleQuestion(Question):
    """The node's CPUs and its regions."""

    enable_reclaim: bool
    allow_overlap: bool
    available_per_numa_cpus: dict[NumaId, Cpus]
    reserved_for_reclaim_per_numa_cpus: dict[NumaId, Cpus]
    reserve_pool_cpus: Cpus
    regions: list[RegionInput]


class AssembleAnswer(Answer):
    """Sizes by pool and NUMA node, and by NUMA node and pool the CPUs of share pools that reclaimed pods use too."""

    pool_sizes: dict[str, dict[int, int]]
    reclaim_overlap: dict[int, dict[str, int]]
    explain: dict[str, Any] | None = None


@decision("assemble_provision", area="cpu_sizing", asks=AssembleQuestion, answers=AssembleAnswer)
def assemble_provision(question: AssembleQuestion) -> AssembleAnswer:
    """Pool sizes of the node from the regions' requirements."""
    node = NodeCpus(
        available=question.available_per_numa_cpus,
        kept_for_reclaim=question.reserved_for_reclaim_per_numa_cpus,
        reserve_pool_cpus=question.reserve_pool_cpus,
        reclaim=question.enable_reclaim,
        overlap=question.allow_overlap,
    )
    done = assemble(node, [region.requirement() for region in question.regions])
    return AssembleAnswer(
        pool_sizes={pool: dict(sizes) for pool, sizes in done.pools.items()},
        reclaim_overlap={numa: dict(pools) for numa, pools in done.reclaim_overlap.items()},
        explain={"throttled": list(done.throttled), "dedicated_overlap": done.dedicated_overlap},
    )
