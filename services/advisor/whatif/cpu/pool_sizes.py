"""The what-if kind `seed_pool_sizes` sizes the pools of a plain node."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from services.advisor.core.demand.cpu import total_cores
from services.advisor.core.model.machine import KATALYST_RESERVE_CPUS
from services.advisor.core.model.ramp import Even, Ramp, RampLimits
from services.advisor.core.sizing.pools import MILLIS
from services.advisor.core.sizing.regulate import regulated, rounded
from services.advisor.whatif.cpu.estimate import RuleName
from services.advisor.whatif.quantities import Cores
from shared.whatif.decisions import Answer, Question, decision


class SeedQuestion(Question):
    """A plain node and what its shared containers need."""

    cpus: Annotated[int, Field(ge=1, le=1_000_000)]
    reserve_pool_cpus: Annotated[int, Field(ge=0)] = 0
    reserved_for_allocate_cores: Cores = float(KATALYST_RESERVE_CPUS)
    min_share_cpus: Annotated[int, Field(ge=0)] = KATALYST_RESERVE_CPUS
    shared_estimates_cores: list[Cores]
    rule: RuleName | None = None

    @model_validator(mode="after")
    def _room(self) -> Self:
        if self.reserve_pool_cpus > self.cpus:
            raise ValueError(f"reserve_pool_cpus: {self.reserve_pool_cpus} of {self.cpus} CPUs")
        return self


class SeedAnswer(Answer):
    """Sizes of share and reclaimed pool, and what is reported."""

    share_cpus: int
    reclaim_cpus: int
    reported_reclaimed_millicpu: int


@decision("seed_pool_sizes", area="cpu_sizing", asks=SeedQuestion, answers=SeedAnswer)
def seed_pool_sizes(question: SeedQuestion) -> SeedAnswer:
    """Share, reclaim and the reported amount for a plain node: the table of the tutorial.

    Named revisions round before the clamp, as they did; without a rule the size stays even after it.
    """
    available = question.cpus - question.reserve_pool_cpus
    even: Even = "before_limits" if question.rule else "after_limits"
    limits = RampLimits(question.min_share_cpus, max(0, available - KATALYST_RESERVE_CPUS), even)
    share = 0
    if question.shared_estimates_cores or question.rule != "head":
        needed = total_cores([*question.shared_estimates_cores, question.reserved_for_allocate_cores])
        share = regulated(Ramp(), limits, 0.0, rounded(needed, limits.even), None).size
    reclaim = available - share
    return SeedAnswer(share_cpus=share, reclaim_cpus=reclaim, reported_reclaimed_millicpu=reclaim * MILLIS)
