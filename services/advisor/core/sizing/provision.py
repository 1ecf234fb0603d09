"""`provide` makes sizes of all pools from what each region needs: reserve, regulator, assembler.

Facts: docs/facts/katalyst-cpu.md#assembler.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from services.advisor.core.model.ramp import Even, Ramp, RampLimits, RampPace
from services.advisor.core.model.region import Region
from services.advisor.core.model.shape import Footprint, Shape
from services.advisor.core.sizing.assemble import Assembled, RegionRequirement, assemble
from services.advisor.core.sizing.fitting import fit_pools
from services.advisor.core.sizing.regulate import regulated, rounded
from services.advisor.core.sizing.reserves import reserve_of_region
from shared.core.cgroups.layout import SHARE

NO_RAMP = Ramp()


@dataclass(frozen=True, slots=True)
class Need:
    """What one region needs, in cores without any reserve, and its current size; None if unknown."""

    region: Region
    footprint: Footprint
    required_cores: float
    effective_cpus: int | None = None
    reclaimable: bool = True
    pace: RampPace | None = None
    """How fast this region may change; None: as all do."""


@dataclass(frozen=True, slots=True)
class Regulated:
    """One region's part of the round: its need, the size wanted with the reserve, and the size that it may have."""

    need: Need
    wanted_cpus: int
    ramp: Ramp

    @property
    def wanted_cores(self) -> float:
        """The need with the reserve."""
        return self.need.required_cores + self.need.footprint.reserve_cores


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


@dataclass(frozen=True, slots=True)
class Regulation:
    """How sizes may change in this round: the pace, the ramps of the last round by the region's name, and the time."""

    pace: RampPace
    ramps: Mapping[str, Ramp]
    now_s: float
    """Monotonic."""
    may_shrink: bool = True
    """False where the need is not known well enough to take CPUs from a tenant."""


def provide(shape: Shape, needs: Sequence[Need], regulation: Regulation) -> Provision:
    """The sizes of this round, from one need for each region; isolated pods get what they asked for."""
    done = {need.region.name: _regulated(shape, need, regulation) for need in needs if need.region.type != "isolation"}
    if len(needs) == 1 and needs[0].region.type == "share" and needs[0].region.numa is None:
        region, ramp = needs[0].region, done[needs[0].region.name].ramp
        alone = _LonePool(region.pool, needs[0].footprint.numas, needs[0].reclaimable)
        return Provision(_assembled_alone(shape, alone, ramp.size, region.request_cores), done, (region,))
    sizes = {name: one.ramp.size for name, one in done.items()}
    if shape.spread:
        sizes |= _fitted_to_nodes(shape, needs, sizes)
    requirements = [_requirement(shape, need, sizes.get(need.region.name, 0)) for need in needs]
    return Provision(assemble(shape.node, requirements), done, tuple(need.region for need in needs))


class _LonePool(NamedTuple):
    """The only region of a node, where that is an unbound share pool."""

    pool: str
    numas: tuple[int, ...]
    reclaimable: bool


# The usual node: its size stays the same for many rounds.
@lru_cache(maxsize=1024)
def _assembled_alone(shape: Shape, alone: _LonePool, required_cpus: int, request_cores: float) -> Assembled:
    requirement = RegionRequirement(
        pool=alone.pool,
        type="share",
        numas=alone.numas,
        required_cpus=required_cpus,
        request_cores=request_cores,
        reclaimable=alone.reclaimable,
    )
    return assemble(shape.node, [requirement])


def _fitted_to_nodes(shape: Shape, needs: Sequence[Need], sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the sizes of bound pools that fit together on their NUMA node; unbound pools get the rest."""
    by_node: dict[int, dict[str, int]] = {}
    for need in needs:
        numa = need.region.numa
        if numa is not None and need.region.name in sizes:
            by_node.setdefault(numa, {})[need.region.name] = sizes[need.region.name]
    fitted: dict[str, int] = {}
    for numa, wanted in by_node.items():
        fitted |= fit_pools(wanted, {}, max(0, _open_cpus(shape, numa)), expand=False, unit=shape.node.unit).pools
    return fitted


@lru_cache(maxsize=64)
def footprint_alone(shape: Shape) -> Footprint:
    """Return the footprint of the share pool without any other region."""
    return footprints_of(shape, (Region(SHARE, "share"),))[SHARE]


def footprints_of(shape: Shape, regions: Sequence[Region]) -> dict[str, Footprint]:
    """Return the footprints of the regions by name: a bound one on its node, the others on all nodes without a bound
    region."""
    bound = {region.numa for region in regions if shape.keeps_off(region)}
    unbound = tuple(numa for numa in sorted(shape.cpus) if numa not in bound)
    sharing: dict[int, int] = {}
    for region in regions:
        if region.type == "share":
            for numa in unbound if region.numa is None else (region.numa,):
                sharing[numa] = sharing.get(numa, 0) + 1
    footprints = {}
    for region in regions:
        numas = unbound if region.numa is None else (region.numa,)
        reserve = reserve_of_region(shape.reserve_cores, numas, shape.cpus, sharing)
        footprints[region.name] = Footprint(numas, reserve)
    return footprints


def _regulated(shape: Shape, need: Need, regulation: Regulation) -> Regulated:
    pace = need.pace or regulation.pace
    # Even sizes keep the threads of a core in one pool; pools that overlap share cores anyway.
    even = pace.even if need.region.type == "share" and shape.smt and not shape.node.overlap else "off"
    limits = _limits(shape, need.footprint.numas, pace, even)
    before = regulation.ramps.get(need.region.name, NO_RAMP)
    wanted = rounded(need.required_cores + need.footprint.reserve_cores, even)
    # The need of a view without figures is a guess: it may grow a pool, and never shrink one (docs/facts/safety-
    # rules.md#rule-1-absent-is-not-zero).
    least = wanted if regulation.may_shrink else max(wanted, need.effective_cpus or 0)
    return Regulated(need, wanted, regulated(before, limits, regulation.now_s, least, need.effective_cpus))


@lru_cache(maxsize=256)
def _limits(shape: Shape, numas: tuple[int, ...], pace: RampPace, even: Even) -> RampLimits:
    return RampLimits(
        lower=shape.min_cpus,
        upper=max(0, sum(_open_cpus(shape, numa) for numa in numas)),
        even=even,
        max_up_step=pace.max_up_step_cpus,
        max_down_step=pace.max_down_step_cpus,
        down_period_s=pace.down_period_s,
        max_wait_s=pace.max_down_wait_s,
    )


def _open_cpus(shape: Shape, numa: int) -> int:
    """CPUs of a NUMA node that pools of tenants may have."""
    return shape.node.available[numa] - shape.node.kept_for_reclaim.get(numa, 0)


def _requirement(shape: Shape, need: Need, required_cpus: int) -> RegionRequirement:
    region = need.region
    isolated = region.type == "isolation"
    request_cores = region.request_cores
    return RegionRequirement(
        pool=region.pool,
        type=region.type,
        numas=need.footprint.numas,
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
