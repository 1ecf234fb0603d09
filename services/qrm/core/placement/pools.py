"""Pools get their CPUs: the reserve first, then in the order of serving.

Facts: docs/facts/katalyst-cpu.md#cpu-sets-of-the-tutorial.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shared.contracts.advice import PoolAdvice
from shared.contracts.envelope import Reason
from shared.core.cgroups.layout import RECLAIM, RESERVE, SHARE
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.taking.balanced import take_by_numa_balance
from shared.core.cpus.topology import Topology
from shared.errors import Refused

Order = Literal["reclaim-first", "share-first"]
POOLS = (RECLAIM, RESERVE, SHARE)
NO_CPUS = CpuSet()

MOST_FLOOR_CPUS = 4
"""Floor of reclaimed work on the 48 CPUs of Katalyst's tutorial.

Facts: docs/facts/katalyst-cpu.md#sizes-of-the-tutorial.
"""


@dataclass(frozen=True, slots=True)
class Placement:
    """CPUs of every pool, none of them empty, and the rule with its numbers."""

    pools: Mapping[str, CpuSet]
    why: Reason


def floor_cpus(cpus: int) -> int:
    """Return the CPUs that reclaimed work keeps without fresh input: a quarter of the machine, at least 1, at most
    4."""
    return min(MOST_FLOOR_CPUS, max(1, cpus // 4))


def place_reserve(topology: Topology, advice: PoolAdvice, pinned: CpuSet = NO_CPUS) -> CpuSet:
    """Place the reserve pool, first of all and thread by thread; never on CPUs that others have pinned.

    Raises:
        Refused: an unknown pool, a block bound to one NUMA node, or sizes that this machine cannot hold.
    """
    # Before anything is placed: an advice is followed as a whole or not at all.
    _check_parts(topology, advice)
    return take_by_numa_balance(topology, topology.all - pinned, advice.size_of(RESERVE), granularity="thread")


def place(
    topology: Topology,
    advice: PoolAdvice,
    order: Order = "reclaim-first",
    reserve: CpuSet | None = None,
    owned: CpuSet = NO_CPUS,
) -> Placement:
    """Turn advised sizes into CPUs.

    The reserve pool comes first; `reserve` is its CPUs if `place_reserve` was called already. With "reclaim-first" the
    reclaimed pool then takes its size and the shared pool gets the rest, which prints the tutorial's listings. With
    "share-first" the shared pool takes its size, the reclaimed pool its own from what is left, and CPUs that no pool
    was advised go to the shared pool. If the advice says `overlap`, or gives the reclaimed pool nothing, tenants run on
    every CPU that is not reserved and the reclaimed pool shares its own (at least one) with them: a pool is never
    empty. `owned` CPUs, which pods own or others have pinned, are in no pool; they reduce the reclaimed pool, because
    the tenants' size is what tenants need.

    Raises:
        Refused: as `place_reserve`.
    """
    if reserve is None:
        reserve = place_reserve(topology, advice)
    _check_sum(topology, advice)
    free = topology.all - reserve - owned
    share_size, reclaim_size = _sizes_beside(owned, topology, advice, len(free))
    overlap = advice.overlap or reclaim_size == 0
    if overlap:
        # Tenants on every CPU: reclaimed pods share theirs and yield by weight, for no set can be empty.
        share, reclaim = free, take_by_numa_balance(topology, free, max(1, reclaim_size))
    elif order == "reclaim-first":
        reclaim = take_by_numa_balance(topology, free, reclaim_size)
        share = free - reclaim
    else:
        first = take_by_numa_balance(topology, free, max(1, share_size))
        reclaim = take_by_numa_balance(topology, free - first, reclaim_size)
        share = free - reclaim
    return _placement("overlap" if overlap else order, topology, _pools(share, reclaim, reserve), owned)


def _check_sum(topology: Topology, advice: PoolAdvice) -> None:
    reserve, share, reclaim = (advice.size_of(pool) for pool in (RESERVE, SHARE, RECLAIM))
    # At least one CPU for each pool, as no group can have an empty set.
    needed = reserve + (max(1, reclaim) if advice.overlap else reclaim + max(1, share))
    if needed > len(topology.all):
        raise Refused(
            f"advice {advice.seq}: reserve {reserve}, share {share} and reclaim {reclaim} CPUs need "
            f"{needed}, this machine has {len(topology.all)}",
            reason="too_many_cpus",
        )


def _sizes_beside(owned: CpuSet, topology: Topology, advice: PoolAdvice, free: int) -> tuple[int, int]:
    """Sizes of the shared and the reclaimed pool where `owned` CPUs are in neither: the reclaimed pool gives way."""
    share_size, reclaim_size = advice.size_of(SHARE), advice.size_of(RECLAIM)
    if not owned:
        return share_size, reclaim_size
    room = free if advice.overlap else free - max(1, share_size)
    if room < reclaim_size:
        whole = room - room % topology.threads_per_core  # no core half in one pool and half in another
        reclaim_size = max(0, whole or room)
    return share_size, reclaim_size


def place_floor(topology: Topology, reserve: CpuSet, cpus: int, owned: CpuSet = NO_CPUS) -> Placement:
    """Place the pools without fresh advice: reclaimed work on `cpus` CPUs (at least 1), the tenants on all others.

    Where that would leave the tenants less than half of what is not reserved, they share the reclaimed pool's CPUs.
    """
    free = topology.all - reserve - owned or topology.all - owned or topology.all  # a pool never ends empty
    reserve = topology.all - free - owned
    reclaim = take_by_numa_balance(topology, free, min(max(1, cpus), len(free)))
    # On 2 CPUs a floor of one would be half of the machine: then both run there, and tenants weigh more.
    share = free - reclaim if 2 * len(reclaim) < len(free) else free
    return _placement("safe-floor", topology, _pools(share, reclaim, reserve), owned)


def _check_parts(topology: Topology, advice: PoolAdvice) -> None:
    for part in advice.pools:
        if part.of_pods and part.pool not in POOLS:  # follows the pods, see `arrangement`; they may have gone
            continue
        if part.of_pods or part.pool not in POOLS:
            raise Refused(
                f"advice {advice.seq}: no pool {part.pool!r}; known: {', '.join(POOLS)}", reason="unknown_pool"
            )
        if part.numa >= 0:
            raise Refused(
                f"advice {advice.seq}: pool {part.pool!r} is bound to NUMA node {part.numa}; pools are placed over the "
                "whole machine, give numa -1",
                reason="numa_bound",
            )
        if part.cpus > len(topology.all):
            raise Refused(
                f"advice {advice.seq}: {part.cpus} CPUs for pool {part.pool!r}, this machine has {len(topology.all)}",
                reason="too_many_cpus",
            )


def _pools(share: CpuSet, reclaim: CpuSet, reserve: CpuSet) -> dict[str, CpuSet]:
    return {SHARE: share, RECLAIM: reclaim} | ({RESERVE: reserve} if reserve else {})


def _placement(rule: str, topology: Topology, pools: Mapping[str, CpuSet], owned: CpuSet) -> Placement:
    """Return the pools with their reason; `owned` CPUs are in none of them."""
    sizes = {pool: len(pools.get(pool, NO_CPUS)) for pool in (SHARE, RECLAIM, RESERVE)}
    sizes["shared"] = len(pools[SHARE] & pools[RECLAIM])
    if owned:
        sizes["owned"] = len(owned)
    return Placement(pools, Reason(rule=rule, numbers={"cpus": len(topology.all), **sizes}))
