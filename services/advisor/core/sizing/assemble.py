"""The assembler makes pool sizes of what regions require (docs/facts/katalyst-cpu.md#assembler).

A region is a share pool, a pod isolated from one, or a pod with dedicated CPUs. Bound regions are assembled on their
NUMA node; all others together on the nodes that carry no bound region, under the id -1.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from services.advisor.core.model.region import NO_NUMA, RegionType
from services.advisor.core.model.shape import NodeCpus
from services.advisor.core.sizing.fitting import fit_pools, overlap_of
from shared.core.cgroups.layout import RECLAIM, RESERVE


@dataclass(frozen=True, slots=True)
class RegionRequirement:
    """What one region requires, after the regulator. `numas` are its NUMA nodes, `bound` says whether it must stay
    there.

    `request_cores` are the requests of its pods. An isolated pod wants `upper_cpus`, and gets `lower_cpus` if that is
    too much. An `exclusive` dedicated pod has its whole NUMA node.
    """

    pool: str
    type: RegionType
    numas: tuple[int, ...] = ()
    bound: bool = False
    required_cpus: int = 0
    request_cores: float = 0.0
    upper_cpus: int = 0
    lower_cpus: int = 0
    exclusive: bool = False
    reclaimable: bool = True


@dataclass(frozen=True, slots=True)
class Assembled:
    """Sizes by pool and NUMA node (-1: on no node in particular), and where reclaimed pods run inside other pools."""

    pools: Mapping[str, Mapping[int, int]]
    reclaim_overlap: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """By NUMA node and share pool."""
    dedicated_overlap: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    """By NUMA node and dedicated pool."""
    throttled: tuple[str, ...] = ()
    """Share pools that wanted more than exists."""

    def size_of(self, pool: str) -> int:
        """CPUs of a pool over all NUMA nodes."""
        return sum(self.pools.get(pool, {}).values())


def assemble(node: NodeCpus, regions: Sequence[RegionRequirement]) -> Assembled:
    """Sizes of every pool, always with the reserve and the reclaimed pool."""
    return _assembled(node, tuple(regions))


# Requirements are in whole CPUs, and from round to round mostly the same.
@lru_cache(maxsize=256)
def _assembled(node: NodeCpus, regions: tuple[RegionRequirement, ...]) -> Assembled:
    sizes: dict[str, dict[int, int]] = {RESERVE: {NO_NUMA: node.reserve_pool_cpus}, RECLAIM: {}}
    shared: dict[int, dict[str, int]] = {}
    dedicated: dict[int, dict[str, int]] = {}
    throttled: set[str] = set()
    # Rounding favours the first pools, so the order must not depend on the list.
    ordered = sorted(regions, key=lambda region: (region.pool, region.type, region.numas))
    bound_numas = sorted({numa for region in ordered if region.bound for numa in region.numas})
    places: dict[int, tuple[int, ...]] = {numa: (numa,) for numa in bound_numas}
    for key, numas in (places | {NO_NUMA: unbound_numas(node, ordered)}).items():
        here = [r for r in ordered if r.bound == (key != NO_NUMA) and (key == NO_NUMA or key in r.numas)]
        part = _RegionGroup.of(node, numas, here).assembled()
        for pool, size in part.sizes.items():
            sizes.setdefault(pool, {})[key] = size
        sizes[RECLAIM][key] = part.reclaim
        if part.reclaim_overlap:
            shared[key] = part.reclaim_overlap
        if part.dedicated_overlap:
            dedicated[key] = part.dedicated_overlap
        if part.throttled:
            throttled |= {region.pool for region in here if region.type == "share"}
    return Assembled(dict(sorted(sizes.items())), shared, dedicated, tuple(sorted(throttled)))


def unbound_numas(node: NodeCpus, regions: Iterable[RegionRequirement]) -> tuple[int, ...]:
    """The NUMA nodes without a bound region, ascending."""
    taken = {numa for region in regions if region.bound for numa in region.numas}
    return tuple(sorted(set(node.available) - taken))


@dataclass(frozen=True, slots=True)
class _GroupSizes:
    """One place, assembled."""

    sizes: dict[str, int]
    reclaim: int
    reclaim_overlap: dict[str, int]
    dedicated_overlap: dict[str, int]
    throttled: bool


@dataclass(frozen=True, slots=True)
class _RegionGroup:
    """The regions of one place, a NUMA node or all those without bound regions, and the CPUs there."""

    node: NodeCpus
    available: int
    kept: int
    share: Mapping[str, RegionRequirement]
    isolated: Mapping[str, RegionRequirement]
    dedicated: Mapping[str, RegionRequirement]
    exclusive: Mapping[str, RegionRequirement]

    @classmethod
    def of(cls, node: NodeCpus, numas: Iterable[int], regions: Iterable[RegionRequirement]) -> "_RegionGroup":
        numas, regions = tuple(numas), tuple(regions)
        own = {r.pool: r for r in regions if r.type == "dedicated"}
        return cls(
            node=node,
            available=sum(node.available.get(numa, 0) for numa in numas),
            kept=sum(node.kept_for_reclaim.get(numa, 0) for numa in numas),
            share={r.pool: r for r in regions if r.type == "share"},
            isolated={r.pool: r for r in regions if r.type == "isolation"},
            dedicated={pool: r for pool, r in own.items() if not r.exclusive},
            exclusive={pool: r for pool, r in own.items() if r.exclusive},
        )

    def assembled(self) -> _GroupSizes:
        # Where pools overlap reclaimed pods need no CPUs of their own: what they keep lies inside the others.
        room = max(0, self.available - (0 if self.node.overlap else self.kept))
        required, requests = self._share_sizes()
        own_requests = {pool: _request_of(region) for pool, region in self.dedicated.items()}
        isolated = self._isolated_sizes(required, requests, room - sum(own_requests.values()))
        expand = self.node.overlap or not self.node.reclaim
        # If share pools grow to fill the machine (overlap, or nothing to sublet), requests set the proportion
        # (docs/facts/katalyst-cpu.md#assembler).
        base = requests if expand else self._wanted(required, requests)
        fixed = {**isolated, **own_requests}
        fitted = fit_pools(base, fixed, room, expand=expand, unit=self.node.unit)
        sizes = dict(fitted.pools)
        lent = self._lent(sizes)
        if self.exclusive:
            return self._with_exclusive(sizes, fitted.throttled)
        if self.node.overlap:
            block, overlap, lent = self._overlapping(sizes, required, room, isolated, lent)
        else:
            block, overlap = self._disjoint(sizes, room, lent), {}
        left = max(0, block - sum(overlap.values()) - sum(lent.values()))
        return _GroupSizes(sizes, left, overlap, lent, fitted.throttled)

    def _share_sizes(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return what share pools require and what their pods requested: at least one CPU each."""
        # At least one, for no group can have an empty set (docs/facts/linux-cgroups.md#cpu-sets).
        required = {pool: max(1, region.required_cpus) for pool, region in self.share.items()}
        return required, {pool: max(1, math.ceil(region.request_cores)) for pool, region in self.share.items()}

    def _wanted(self, required: Mapping[str, int], requests: Mapping[str, int]) -> dict[str, int]:
        return {pool: required[pool] if self.share[pool].reclaimable else requests[pool] for pool in self.share}

    def _isolated_sizes(self, required: Mapping[str, int], requests: Mapping[str, int], room: int) -> dict[str, int]:
        upper = {pool: region.upper_cpus for pool, region in self.isolated.items()}
        # The larger of both: an isolated pod must not take what others asked for, even if they do not use it now.
        if max(sum(required.values()), sum(requests.values())) + sum(upper.values()) > room:
            return {pool: region.lower_cpus for pool, region in self.isolated.items()}
        return upper

    def _lent(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """CPUs that dedicated pods have and do not need."""
        if not self.node.reclaim:
            return {}
        lent = {
            pool: sizes[pool] - max(1, region.required_cpus)
            for pool, region in self.dedicated.items()
            if region.reclaimable
        }
        return {pool: cpus for pool, cpus in lent.items() if cpus > 0}

    def _disjoint(self, sizes: Mapping[str, int], room: int, lent: Mapping[str, int]) -> int:
        if not self.node.reclaim:
            # Reclaimed pods keep their CPUs even if reclaiming is off, because running pods must not be left without a
            # CPU.
            return self.kept
        return room - sum(sizes.values()) + sum(lent.values()) + self.kept

    def _overlapping(
        self,
        sizes: Mapping[str, int],
        required: Mapping[str, int],
        room: int,
        isolated: Mapping[str, int],
        lent: Mapping[str, int],
    ) -> tuple[int, dict[str, int], dict[str, int]]:
        """CPUs of the reclaimed pool, and which of them lie inside share pools and dedicated ones."""
        lending = {pool for pool, region in self.share.items() if region.reclaimable and self.node.reclaim}
        own = sum(sizes[pool] for pool in self.dedicated)
        kept_back = sum(required[pool] if pool in lending else sizes[pool] for pool in self.share)
        block = room - sum(sizes[pool] for pool in isolated) - kept_back - own
        shared = {pool: sizes[pool] for pool in (*self.share, *self.dedicated)}
        block += sum(lent.values())
        if not self.node.reclaim and not self.share and block >= self.kept:
            return self.kept, {}, {}
        # Less than what they always keep: the rest is borrowed inside the pools, so that no tenant's size shrinks.
        if not self.node.reclaim or block < self.kept:
            return self._borrowed(shared, self.kept)
        overlap = {pool: max(1, sizes[pool] - required[pool]) for pool in sorted(lending)}
        return block, overlap, dict(lent)

    def _borrowed(self, pools: Mapping[str, int], cpus: int) -> tuple[int, dict[str, int], dict[str, int]]:
        """Return the least CPUs that reclaimed pods keep inside the pools, as far as the pools have so many."""
        overlap = overlap_of(pools, min(cpus, sum(pools.values())))
        in_share = {pool: part for pool, part in overlap.items() if pool in self.share}
        return cpus, in_share, {pool: part for pool, part in overlap.items() if pool in self.dedicated}

    def _with_exclusive(self, sizes: dict[str, int], throttled: bool) -> _GroupSizes:
        """Size the node of an exclusive pod, where reclaimed pods run only on that pod's own CPUs."""
        lent = {}
        for pool, region in self.exclusive.items():
            needed = region.required_cpus if region.reclaimable and self.node.reclaim else self.available
            lent[pool] = max(self.kept, self.available - needed)
        return _GroupSizes(sizes, 0, {}, lent, throttled)


def _request_of(region: RegionRequirement) -> int:
    """CPUs of a dedicated pod; one that spans NUMA nodes has its part of them on each."""
    return math.ceil(
        region.request_cores / len(region.numas) if region.bound and region.numas else region.request_cores
    )
