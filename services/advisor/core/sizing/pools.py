"""Computes the sizes of the class pools from what tenants need (docs/facts/katalyst-cpu.md#sizes-of-the-tutorial).

If disjoint pools fit, the share pool gets what the tenants need plus the reserve, and the reclaimed pool gets the rest.
On a smaller machine tenants may run everywhere, and the reclaimed pool shares CPUs with them at the kernel's lowest
weight (docs/adr/0005-small-machines.md): only whole CPUs that the tenants need are taken from it, and the kernel
handles a fraction. Beside a margin (below) a CPU of which half is needed is taken as well, and the offer is steady.

If CPUs are shared by choice (docs/shared-cpus.md), tenants may run everywhere as well. No size is made even, because no
pod has a core alone. The offer is a mean over minutes: pods that it starts stay long, and are slowed down rather than
evicted while tenants need more than usual. If a demand says what is used now, the rest is a margin: CPUs are kept for
it, the offer counts it as left, and it takes the place of the share pool's floor; reclaimed pods keep two CPUs then.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from services.advisor.core.model.machine import Bounds, reclaim_floor_cpus
from services.advisor.core.model.ramp import Ramp, RampLimits
from services.advisor.core.model.reasons import Reasons
from services.advisor.core.sizing.provision import Provision, Regulation
from services.advisor.core.sizing.regulate import regulated, rounded
from shared.contracts.envelope import Reason
from shared.core.cgroups.layout import RECLAIM, SHARE

MILLIS = 1000
MEAN_OVER_S = 300.0
"""Time constant of the offer where CPUs are shared, as long as Koordinator's window
(docs/facts/koordinator-batch.md#amount-of-a-batch-resource)."""
HOLD_CPU_RATIO = 1 / 12
"""A steady offer is at most this part of the CPUs above its mean: four on 48, two pods' worth."""
BESIDE_FLOOR_CPUS = 2
"""CPUs that reclaimed pods keep beside a margin, as Koordinator's do
(docs/facts/koordinator-cpu-suppress.md#the-policy-cpuset)."""
MAX_OVERSOLD_RATIO = 10.0
"""Most that the offer may be above the reclaimed pool, as the message bounds it."""


@dataclass(frozen=True, slots=True)
class MeanLeft:
    """What tenants left of shared CPUs, in milli-cores, as a mean up to a time (monotonic seconds)."""

    millis: float
    at_s: float
    steady_millis: float = 0.0
    """The mean as it is offered: it rises with it at once, and does not fall with every trough."""

    def after(self, left_millis: int, now_s: float, hold_millis: float) -> "MeanLeft":
        """The mean with what has been left since: it weighs the more, the longer that was."""
        part = 1 - math.exp(-max(0.0, now_s - self.at_s) / MEAN_OVER_S)
        mean = self.millis + part * (left_millis - self.millis)
        return MeanLeft(mean, now_s, max(mean, min(self.steady_millis, mean + hold_millis)))


@dataclass(frozen=True, slots=True)
class SharedNeed:
    """What tenants need where pools overlap, in cores without the reserve, and what of it is used now."""

    cores: float
    now_cores: float | None = None
    """None: not known, so that nothing of it is a margin."""
    most_offered_ratio: float = 1.0
    """See `Demand`."""


@dataclass(frozen=True, slots=True)
class PoolSizes:
    """CPUs of each pool, and the CPU that may be offered to reclaimed pods."""

    share_cpus: int
    reclaim_cpus: int
    reserve_cpus: int
    overlap: bool
    reclaimed_cpu_millis: int
    ramp: Ramp
    why: Sequence[Reason]
    mean_left: MeanLeft | None = None
    """Behind a steady offer; None where each pool has CPUs of its own."""

    @property
    def oversold_ratio(self) -> float:
        """How much more is offered than the reclaimed pool holds now."""
        # Where dedicated pods leave a single CPU the tenants have it: the pool holds nothing, and nothing is offered.
        return max(1.0, self.reclaimed_cpu_millis / (max(1, self.reclaim_cpus) * MILLIS))


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
    step = _Step(share.wanted_cores, share.wanted_cpus, before, size, may_shrink)
    why = Reasons(lambda: [_reason("disjoint pools", bounds, step)])
    return PoolSizes(size, reclaim, bounds.reserve_pool_cpus, False, reclaim * MILLIS, share.ramp, why)


def overlapping_sizes(
    bounds: Bounds, regulation: Regulation, need: SharedNeed, mean_left: MeanLeft | None
) -> PoolSizes:
    """Return the sizes on a machine that is too small for disjoint pools; `mean_left` is the last round's.

    While the tenants' need is not known well enough to take any CPU, they keep at least what they have.
    """
    # Pools that overlap by need have no size of their own, and no floor of one.
    step, after = _regulated_millis(bounds, regulation, need.cores, 0)
    floor, cpus = reclaim_floor_cpus(bounds.cpus), bounds.cpus
    offer = _steady_offer(cpus, after.size, regulation, need, mean_left)
    reclaim = max(floor, cpus - after.size // MILLIS)
    offered, numbers = max(floor * MILLIS, cpus * MILLIS - after.size), {}
    if need.now_cores is not None:
        # The offer does not keep the margin, so the pool has to; a whole CPU for each fraction would be half of 2 CPUs.
        reclaim = max(floor, cpus - (after.size + MILLIS // 2) // MILLIS)
        offered, numbers = offer.within_millis(reclaim), offer.numbers
    why = Reasons(lambda: [_reason("overlapping pools", bounds, step, **numbers)])
    return PoolSizes(cpus, reclaim, 0, True, offered, after, why, offer.mean)


def shared_sizes(bounds: Bounds, regulation: Regulation, need: SharedNeed, mean_left: MeanLeft | None) -> PoolSizes:
    """Sizes where CPUs are shared by choice; `mean_left` is the last round's.

    They fit side by side: qrm can place them so where the kernel has no idle class.
    """
    # Who keeps a margin of its own above what is used needs no floor that is the same on every node, on neither side:
    # of 16 CPUs it would be a quarter. One CPU is left to the tenants in any case, and two to reclaimed pods.
    lower_cpus, floor_cpus = bounds.min_share_cpus, reclaim_floor_cpus(bounds.cpus)
    if need.now_cores is not None:
        lower_cpus, floor_cpus = 1, min(BESIDE_FLOOR_CPUS, floor_cpus)
    step, after = _regulated_millis(bounds, regulation, need.cores, lower_cpus)
    cpus = bounds.cpus - bounds.reserve_pool_cpus
    # Whole CPUs for the tenants, unlike on a small machine: here a fraction of one is no great part of what is left.
    reclaim = max(floor_cpus, cpus - -(-after.size // MILLIS))
    offer = _steady_offer(cpus, after.size, regulation, need, mean_left)
    offered = offer.within_millis(reclaim)
    why = Reasons(lambda: [_reason("shared CPUs", bounds, step, **offer.numbers)])
    return PoolSizes(cpus - reclaim, reclaim, bounds.reserve_pool_cpus, True, offered, after, why, offer.mean)


@dataclass(frozen=True, slots=True)
class _SteadyOffer:
    """What tenants leave, as a mean over minutes, and what of it is never offered, in milli-cores."""

    left: int
    mean: MeanLeft
    withheld: int

    @property
    def numbers(self) -> dict[str, int]:
        withheld = {"withheld": self.withheld} if self.withheld else {}
        return {"left": self.left, "mean_left": int(self.mean.millis), **withheld}

    def within_millis(self, reclaim_cpus: int) -> int:
        """The offer beside a reclaimed pool of this size."""
        # What is never offered is taken off last: the mean is one of what tenants leave, whatever is made of it.
        return min(
            max(0, int(self.mean.steady_millis) - self.withheld), int(MAX_OVERSOLD_RATIO) * reclaim_cpus * MILLIS
        )


def _steady_offer(
    cpus: int, size_millis: int, regulation: Regulation, need: SharedNeed, before: MeanLeft | None
) -> _SteadyOffer:
    used = size_millis if need.now_cores is None else min(size_millis, math.ceil(need.now_cores * MILLIS))
    left = max(0, cpus * MILLIS - used)
    hold_millis = 0.0 if need.now_cores is None else HOLD_CPU_RATIO * cpus * MILLIS
    mean = MeanLeft(left, regulation.now_s, left)
    if before is not None:
        mean = before.after(left, regulation.now_s, hold_millis)
        # Not known well enough to take CPUs from a tenant is not known well enough to promise more of them either.
        if not regulation.may_shrink:
            steady = min(mean.steady_millis, before.steady_millis)
            mean = MeanLeft(min(mean.millis, before.millis), mean.at_s, steady)
    withheld = math.ceil(round((1 - need.most_offered_ratio) * cpus * MILLIS, 3))
    return _SteadyOffer(left, mean, withheld)


def _regulated_millis(
    bounds: Bounds, regulation: Regulation, required_cores: float, lower_cpus: int
) -> tuple[_Step, Ramp]:
    """The tenants' size in milli-cores: with the reserve, at the pace, within what is not reserved for the system."""
    wanted_cores = required_cores + bounds.reserve_cores
    pace, before = regulation.pace, regulation.ramps.get(SHARE)
    limits = RampLimits(
        lower=lower_cpus * MILLIS,
        upper=(bounds.cpus - bounds.reserve_pool_cpus) * MILLIS,
        max_down_step=pace.max_down_step_cpus * MILLIS,
        down_period_s=pace.down_period_s,
        max_wait_s=pace.max_down_wait_s,
    )
    wanted = rounded(round(wanted_cores * MILLIS, 3), "off")  # 1.1 cores are 1100 millis, not 1101
    after = _next(before, limits, wanted, regulation)
    return _Step(wanted_cores, wanted, before, after.size, regulation.may_shrink), after


def _next(before: Ramp | None, limits: RampLimits, wanted: int, regulation: Regulation) -> Ramp:
    if before is None:
        return regulated(Ramp(), limits, regulation.now_s, wanted, None)
    least = wanted if regulation.may_shrink else max(wanted, before.size)
    return regulated(before, limits, regulation.now_s, least, before.size)


def _reason(rule: str, bounds: Bounds, step: _Step, **more: int) -> Reason:
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
            **more,
        },
    )
