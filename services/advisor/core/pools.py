"""Sizes of the pools from what the tenants need (docs/facts/katalyst-cpu.md#sizes-of-the-tutorial).

With room for disjoint pools the share pool takes what the tenants need plus the reserve, the reclaimed pool the rest.
On a smaller machine tenants may run everywhere, and the reclaimed pool shares CPUs with them at the kernel's lowest
weight (docs/adr/0005-small-machines.md): only whole CPUs that the tenants need are taken from it, a fraction is left
to the kernel.
"""

from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field, model_validator

from services.advisor.core.estimate import Cores, RuleName, total_cores
from services.advisor.core.machine import SEED_CPUS, Bounds, reclaim_floor_cpus
from services.advisor.core.provision import Pace, Provision
from services.advisor.core.regulate import Even, Limits, Ramp, regulated, rounded
from shared.contracts.envelope import Reason
from shared.core.cgroups.layout import RECLAIM, SHARE
from shared.core.decisions import Answer, Question, decision

MILLIS = 1000


@dataclass(frozen=True, slots=True)
class PoolSizes:
    """CPUs of each pool, and the CPU that may be offered to reclaimed pods."""

    share_cpus: int
    reclaim_cpus: int
    reserve_cpus: int
    overlap: bool
    reclaimed_cpu_millis: int
    ramp: Ramp
    why: Reason


def disjoint_sizes(bounds: Bounds, provision: Provision, before: Ramp | None, *, may_shrink: bool) -> PoolSizes:
    """The three class pools of a machine with room for disjoint ones. `before`: the share pool's ramp so far."""
    assembled, share = provision.assembled, provision.regulated[SHARE]
    size, reclaim = assembled.size_of(SHARE), assembled.size_of(RECLAIM)
    why = _reason("disjoint pools", bounds, before, share.wanted_cores, share.wanted_cpus, size, may_shrink)
    return PoolSizes(size, reclaim, bounds.reserve_pool_cpus, False, reclaim * MILLIS, share.ramp, why)


def overlapping_sizes(
    bounds: Bounds, pace: Pace, ramp: Ramp | None, now_s: float, required_cores: float, *, may_shrink: bool = True
) -> PoolSizes:
    """Sizes of a machine that is too small for disjoint pools, for a need without the reserve.

    `ramp` is the last round's, None in the first. Without `may_shrink` the tenants keep at least what they have: their
    need is not known well enough to take any.
    """
    wanted_cores = required_cores + bounds.reserve_cores
    capacity = bounds.cpus * MILLIS
    limits = Limits(
        lower=0,
        upper=capacity,
        max_down_step=pace.max_down_step_cpus * MILLIS,
        down_period_s=pace.down_period_s,
        max_wait_s=pace.max_down_wait_s,
    )
    wanted = rounded(round(wanted_cores * MILLIS, 3), "off")  # 1.1 cores are 1100 millis, not 1101
    after = _next(ramp, limits, now_s, wanted, may_shrink)
    floor = reclaim_floor_cpus(bounds.cpus)
    reclaim = max(floor, bounds.cpus - after.size // MILLIS)
    why = _reason("overlapping pools", bounds, ramp, wanted_cores, wanted, after.size, may_shrink)
    offered = max(floor * MILLIS, capacity - after.size)
    return PoolSizes(bounds.cpus, reclaim, 0, True, offered, after, why)


def _next(ramp: Ramp | None, limits: Limits, now_s: float, wanted: int, may_shrink: bool) -> Ramp:
    if ramp is None:
        return regulated(Ramp(), limits, now_s, wanted, None)
    return regulated(ramp, limits, now_s, wanted if may_shrink else max(wanted, ramp.size), ramp.size)


def _reason(
    rule: str, bounds: Bounds, ramp: Ramp | None, wanted_cores: float, wanted: int, size: int, may_shrink: bool
) -> Reason:
    """Sizes are CPUs, or milli-cores where the pools overlap."""
    return Reason(
        rule=rule,
        numbers={
            "cpus": bounds.cpus,
            "reserve_cores": bounds.reserve_cores,
            "wanted_cores": round(wanted_cores, 6),
            "wanted": wanted,
            "before": ramp.size if ramp else None,
            "size": size,
            "may_shrink": may_shrink,
        },
    )


class SeedQuestion(Question):
    """A plain node and what its shared containers need."""

    cpus: Annotated[int, Field(ge=1, le=1_000_000)]
    reserve_pool_cpus: Annotated[int, Field(ge=0)] = 0
    reserved_for_allocate_cores: Cores = float(SEED_CPUS)
    min_share_cpus: Annotated[int, Field(ge=0)] = SEED_CPUS
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
    limits = Limits(question.min_share_cpus, max(0, available - SEED_CPUS), even)
    share = 0
    if question.shared_estimates_cores or question.rule != "head":
        needed = total_cores([*question.shared_estimates_cores, question.reserved_for_allocate_cores])
        share = regulated(Ramp(), limits, 0.0, rounded(needed, limits.even), None).size
    reclaim = available - share
    return SeedAnswer(share_cpus=share, reclaim_cpus=reclaim, reported_reclaimed_millicpu=reclaim * MILLIS)
