"""From what each region needs to the sizes of all pools: reserve, regulator, assembler.

Facts: docs/facts/katalyst-cpu.md#assembler.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from services.advisor.core.assemble import Assembled, NodeCpus, Requirement, assemble
from services.advisor.core.fitting import fit_pools
from services.advisor.core.isolation import Isolation
from services.advisor.core.machine import SEED_CPUS
from services.advisor.core.regions import Region
from services.advisor.core.regulate import (
    MAX_RAMP_DOWN_STEP_CPUS,
    MIN_RAMP_DOWN_PERIOD_S,
    Even,
    Limits,
    Ramp,
    regulated,
    rounded,
)
from services.advisor.core.reserves import reserve_of_region


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the tenants' pools may change, and when sizes are made even; they grow at once unless told otherwise."""

    max_down_step_cpus: int = MAX_RAMP_DOWN_STEP_CPUS
    down_period_s: float = MIN_RAMP_DOWN_PERIOD_S
    max_up_step_cpus: int | None = None
    even: Even = "after_limits"
    max_down_wait_s: float = 0.0
    """See `Limits.max_wait_s`."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The CPUs of the node, and what is kept back for and from every region."""

    node: NodeCpus
    cpus: Mapping[int, int]
    """All CPUs of each NUMA node."""
    smt: bool
    reserve_cores: float
    """Added to what the tenants need, for the whole machine."""
    min_cpus: int = SEED_CPUS
    """No share pool and no dedicated pod gets less."""
    spread: bool = False
    """Whether unbound pools may also use what bound ones leave of their NUMA nodes; in Katalyst they may not."""

    def keeps_off(self, region: Region) -> bool:
        """Whether the region keeps unbound ones off its NUMA node."""
        return region.numa is not None and not self.spread


@dataclass(frozen=True, slots=True)
class Need:
    """What one region needs, in cores without any reserve, and its size now; None where that is not known."""

    region: Region
    ground: "Ground"
    required_cores: float
    effective_cpus: int | None = None
    reclaimable: bool = True


@dataclass(frozen=True, slots=True)
class Ground:
    """The NUMA nodes where a region lies, and the part of the machine's reserve (cores) that is added to its need."""

    numas: tuple[int, ...]
    reserve_cores: float


@dataclass(frozen=True, slots=True)
class Regulated:
    """One region's part of the round: its need, the size wanted with the reserve, and the size that it may have."""

    need: Need
    wanted_cpus: int
    ramp: Ramp

    @property
    def wanted_cores(self) -> float:
        """The need with the reserve."""
        return self.need.required_cores + self.need.ground.reserve_cores


@dataclass(frozen=True, slots=True)
class Provision:
    """Sizes of all pools, and what the next round must know of each region, by its name."""

    assembled: Assembled
    regulated: Mapping[str, Regulated] = field(default_factory=dict)
    regions: tuple[Region, ...] = ()

    @property
    def ramps(self) -> dict[str, Ramp]:
        """The regulators' memory."""
        return {name: one.ramp for name, one in self.regulated.items()}


def provide(
    shape: Shape,
    needs: Sequence[Need],
    pace: Pace,
    ramps: Mapping[str, Ramp],
    now_s: float,
    *,
    may_shrink: bool = True,
) -> Provision:
    """The sizes of this round.

    Args:
        shape: the node.
        needs: one for each region; isolated pods get what they asked for, whatever they need.
        pace: how fast sizes change.
        ramps: of the last round, by the region's name.
        now_s: monotonic seconds.
        may_shrink: False where the need is not known well enough to take CPUs from a tenant.
    """
    done = {
        need.region.name: _regulated(shape, need, pace, ramps, now_s, may_shrink)
        for need in needs
        if need.region.type != "isolation"
    }
    sizes = {name: one.ramp.size for name, one in done.items()}
    if shape.spread:
        sizes |= _fitted_to_nodes(shape, needs, sizes)
    requirements = [_requirement(shape, need, sizes.get(need.region.name, 0)) for need in needs]
    return Provision(assemble(shape.node, requirements), done, tuple(need.region for need in needs))


def _fitted_to_nodes(shape: Shape, needs: Sequence[Need], sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes of bound pools so that together they fit on their NUMA node, where unbound pools have the rest."""
    by_node: dict[int, dict[str, int]] = {}
    for need in needs:
        numa = need.region.numa
        if numa is not None and need.region.name in sizes:
            by_node.setdefault(numa, {})[need.region.name] = sizes[need.region.name]
    fitted: dict[str, int] = {}
    for numa, wanted in by_node.items():
        room = max(0, shape.node.available[numa] - shape.node.kept_for_reclaim.get(numa, 0))
        fitted |= fit_pools(wanted, {}, room, expand=False, unit=shape.node.unit).pools
    return fitted


def provide_isolated(
    shape: Shape,
    isolation: Isolation,
    needs_of: Callable[[Collection[str]], Sequence[Need]],
    pace: Pace,
    ramps: Mapping[str, Ramp],
    now_s: float,
    *,
    may_shrink: bool = True,
) -> tuple[Isolation, Provision]:
    """The sizes with these pods isolated; where that does not fit, without any isolated pod.

    `needs_of` gives the needs of all regions when these pods are isolated; else as `provide`.
    """
    needs = needs_of(isolation.pods)
    done = provide(shape, needs, pace, ramps, now_s, may_shrink=may_shrink)
    if not isolation.pods or _isolation_fits(shape, done, needs):
        return isolation, done
    done = provide(shape, needs_of(()), pace, ramps, now_s, may_shrink=may_shrink)
    return Isolation(watches=isolation.watches), done


def _isolation_fits(shape: Shape, provision: Provision, needs: Sequence[Need]) -> bool:
    """Whether the share pools and the limits of the isolated pods fit on the CPUs that are not bound to a NUMA node."""
    bound = {need.region.numa for need in needs if shape.keeps_off(need.region)}
    room = sum(cpus for numa, cpus in shape.cpus.items() if numa not in bound)
    free = [need.region for need in needs if not shape.keeps_off(need.region)]
    share = sum(provision.regulated[region.name].ramp.size for region in free if region.type == "share")
    return share + sum(math.floor(region.limit_cores) for region in free if region.type == "isolation") <= room


def grounds_of(shape: Shape, regions: Sequence[Region]) -> dict[str, Ground]:
    """Where the regions lie, by name: a bound one on its node, the others on all nodes without a bound region."""
    bound = {region.numa for region in regions if shape.keeps_off(region)}
    unbound = tuple(numa for numa in sorted(shape.cpus) if numa not in bound)
    sharing: dict[int, int] = {}
    for region in regions:
        if region.type == "share":
            for numa in unbound if region.numa is None else (region.numa,):
                sharing[numa] = sharing.get(numa, 0) + 1
    grounds = {}
    for region in regions:
        numas = unbound if region.numa is None else (region.numa,)
        reserve = reserve_of_region(shape.reserve_cores, numas, shape.cpus, sharing)
        grounds[region.name] = Ground(numas, reserve)
    return grounds


def _regulated(
    shape: Shape, need: Need, pace: Pace, ramps: Mapping[str, Ramp], now_s: float, may_shrink: bool
) -> Regulated:
    even = pace.even if need.region.type == "share" and shape.smt and not shape.node.overlap else "off"
    limits = Limits(
        lower=shape.min_cpus,
        upper=max(0, sum(shape.node.available[n] - shape.node.kept_for_reclaim.get(n, 0) for n in need.ground.numas)),
        even=even,
        max_up_step=pace.max_up_step_cpus,
        max_down_step=pace.max_down_step_cpus,
        down_period_s=pace.down_period_s,
        max_wait_s=pace.max_down_wait_s,
    )
    before = ramps.get(need.region.name, Ramp())
    wanted = rounded(need.required_cores + need.ground.reserve_cores, even)
    least = wanted if may_shrink else max(wanted, need.effective_cpus or 0)
    ramp = regulated(before, limits, now_s, least, need.effective_cpus)
    return Regulated(need, wanted, ramp)


def _requirement(shape: Shape, need: Need, required_cpus: int) -> Requirement:
    region = need.region
    isolated = region.type == "isolation"
    request_cores = region.request_cores
    return Requirement(
        pool=region.pool,
        type=region.type,
        numas=need.ground.numas,
        bound=shape.keeps_off(region),
        required_cpus=required_cpus,
        request_cores=request_cores,
        upper_cpus=_whole_units(shape, region.limit_cores) if isolated else 0,
        lower_cpus=_whole_units(shape, request_cores) if isolated else 0,
        exclusive=region.exclusive,
        reclaimable=need.reclaimable,
    )


def _whole_units(shape: Shape, cores: float) -> int:
    """CPUs of an isolated pod, at least one; where CPUs of a core stay together, up to a whole one."""
    unit = shape.node.unit
    return -(-max(1, math.floor(cores)) // unit) * unit
