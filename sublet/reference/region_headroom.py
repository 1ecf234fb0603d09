"""`region_headroom_cores` measures what lies between a region's upper bound and what its containers need.

Facts: docs/facts/katalyst-cpu.md#headroom.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from services.advisor.core.demand.cpu import total_cores
from services.advisor.whatif.quantities import Cores
from shared.whatif.decisions import Answer, Question, decision

HeadroomPolicy = Literal["canonical", "numa_dedicated"]
RegionType = Literal["share", "dedicated"]
Score = Annotated[float, Field(ge=-1e6, le=1e6)]


@dataclass(frozen=True, slots=True)
class RegionReserves:
    """What a region may use at most, and what it keeps back; in cores."""

    upper_cores: float
    for_allocate_cores: float
    for_reclaim_cores: float


@dataclass(frozen=True, slots=True)
class Performance:
    """How well a service does, and between which bounds that is scored; the best score lends all."""

    score: float
    worst: float
    best: float

    @property
    def share(self) -> float:
        """The part of its headroom that a service lends, 0 at its worst."""
        return max(0.0, (self.score - self.worst) / (self.best - self.worst))


def region_headroom_cores(
    reserves: RegionReserves, estimates_cores: Iterable[float], performance: Performance | None = None
) -> float:
    """Upper bound - (estimates + reserve for allocation) + reserve for reclaim, never negative.

    Of a dedicated service whose performance is scored only that share counts.
    """
    needed_cores = total_cores([*estimates_cores, reserves.for_allocate_cores])
    spare_cores = max(0.0, math.fsum([reserves.upper_cores, -needed_cores, reserves.for_reclaim_cores]))
    return spare_cores if performance is None else spare_cores * performance.share


class RegionHeadroomQuestion(Question):
    """One region: its bounds, what its containers need, and how its service performs where that is scored."""

    policy: HeadroomPolicy
    region_type: RegionType
    upper_cores: Cores
    reserved_for_allocate_cores: Cores
    reserved_for_reclaim_cores: Cores
    estimates_cores: list[Cores]
    performance_score: Score | None = None
    score_min: Score | None = None
    score_max: Score | None = None

    @model_validator(mode="after")
    def _scored_between_two(self) -> Self:
        if self.score_min is not None and self.score_max is not None and self.score_min >= self.score_max:
            raise ValueError(f"score_min: {self.score_min} is not below score_max {self.score_max}")
        return self

    @property
    def performance(self) -> Performance | None:
        """How the service performs; None where the policy does not ask or the score is not known."""
        score, worst, best = self.performance_score, self.score_min, self.score_max
        if self.policy != "numa_dedicated" or score is None or worst is None or best is None:
            return None
        return Performance(score, worst, best)


class RegionHeadroomAnswer(Answer):
    """Cores of the region that may be lent."""

    headroom_cores: float


@decision("region_headroom", area="cpu_headroom", asks=RegionHeadroomQuestion, answers=RegionHeadroomAnswer)
def region_headroom(question: RegionHeadroomQuestion) -> RegionHeadroomAnswer:
    """Headroom of one region."""
    reserves = RegionReserves(
        question.upper_cores, question.reserved_for_allocate_cores, question.reserved_for_reclaim_cores
    )
    cores = region_headroom_cores(reserves, question.estimates_cores, question.performance)
    return RegionHeadroomAnswer(headroom_cores=cores)
