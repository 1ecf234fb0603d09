"""The class pools get their sizes from what tenants need (docs/facts/katalyst-cpu.md#sizes-of-the-tutorial).

With room for disjoint pools the share pool takes what the tenants need plus the reserve, the reclaimed pool the rest.
On a smaller machine tenants may run everywhere, and the reclaimed pool shares CPUs with them at the kernel's lowest
weight (docs/adr/0005-small-machines.md): only whole CPUs that the tenants need are taken from it, a fraction is left
to the kernel.
"""

from dataclasses import dataclass

from services.advisor.core.model.machine import Bounds, reclaim_floor_cpus
from services.advisor.core.model.ramp import Ramp, RampLimits
from services.advisor.core.sizing.provision import Provision, Regulation
from services.advisor.core.sizing.regulate import regulated, rounded
from shared.contracts.envelope import Reason
from shared.core.cgroups.layout import RECLAIM, SHARE

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


@dataclass(frozen=True, slots=True)
class _Step:
    """From the need to the size of the share pool, in CPUs, or in milli-cores where the pools overlap."""

    wanted_cores: float
    wanted: int
    before: Ramp | None
    size: int
    may_shrink: bool


def disjoint_sizes(bounds: Bounds, provision: Provision, before: Ramp | None, *, may_shrink: bool) -> PoolSizes:
    """The three class pools of a machine with room for disjoint ones. `before`: the share pool's ramp so far."""
    assembled, share = provision.assembled, provision.regulated[SHARE]
    size, reclaim = assembled.size_of(SHARE), assembled.size_of(RECLAIM)
    why = _reason("disjoint pools", bounds, _Step(share.wanted_cores, share.wanted_cpus, before, size, may_shrink))
    return PoolSizes(size, reclaim, bounds.reserve_pool_cpus, False, reclaim * MILLIS, share.ramp, why)


def overlapping_sizes(bounds: Bounds, regulation: Regulation, required_cores: float) -> PoolSizes:
    """Sizes of a machine that is too small for disjoint pools, for a need without the reserve.

    Where the tenants' need is not known well enough to take any CPU, they keep at least what they have.
    """
    wanted_cores = required_cores + bounds.reserve_cores
    capacity, pace, before = bounds.cpus * MILLIS, regulation.pace, regulation.ramps.get(SHARE)
    limits = RampLimits(
        lower=0,
        upper=capacity,
        max_down_step=pace.max_down_step_cpus * MILLIS,
        down_period_s=pace.down_period_s,
        max_wait_s=pace.max_down_wait_s,
    )
    wanted = rounded(round(wanted_cores * MILLIS, 3), "off")  # 1.1 cores are 1100 millis, not 1101
    after = _next(before, limits, wanted, regulation)
    floor = reclaim_floor_cpus(bounds.cpus)
    reclaim = max(floor, bounds.cpus - after.size // MILLIS)
    step = _Step(wanted_cores, wanted, before, after.size, regulation.may_shrink)
    why = _reason("overlapping pools", bounds, step)
    offered = max(floor * MILLIS, capacity - after.size)
    return PoolSizes(bounds.cpus, reclaim, 0, True, offered, after, why)


def _next(before: Ramp | None, limits: RampLimits, wanted: int, regulation: Regulation) -> Ramp:
    if before is None:
        return regulated(Ramp(), limits, regulation.now_s, wanted, None)
    least = wanted if regulation.may_shrink else max(wanted, before.size)
    return regulated(before, limits, regulation.now_s, least, before.size)


def _reason(rule: str, bounds: Bounds, step: _Step) -> Reason:
    return Reason(
        rule=rule,
        numbers={
            "cpus": bounds.cpus,
            "reserve_cores": bounds.reserve_cores,
            "wanted_cores": round(step.wanted_cores, 6),
            "wanted": step.wanted,
            "before": step.before.size if step.before else None,
            "size": step.size,
            "may_shrink": step.may_shrink,
        },
    )
