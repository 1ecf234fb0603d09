"""`node_headroom_millis` measures what the reclaim pool can really supply, in milli-cores by NUMA node.

A NUMA node with bound reclaimed pods is measured separately. The others are measured together, because their pods may
run on any of them, and share the result evenly (docs/facts/katalyst-cpu.md#headroom).
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from services.advisor.core.offer.utilization import UtilRules, util_capacity_cores
from shared.core.cpus.cpuset import CpuSet

Rounding = Literal["milli", "core"]
MILLIS = 1000
_NOISE_DIGITS = 6
"""Fractions below a millionth of a unit come from floating point, not from the machine."""


@dataclass(frozen=True, slots=True)
class GroupUse:
    """CPU use of a cgroup in cores, and its quota in cores if it has one."""

    usage_cores: float = 0.0
    quota_cores: float | None = None


@dataclass(frozen=True, slots=True)
class NumaPool:
    """The reclaim pool's part of one NUMA node."""

    pool_cpus: int
    """CPUs of the pool there."""
    used_cores: float
    """How much of these CPUs is used, by whomever."""
    cpus: int
    """All CPUs of the NUMA node."""
    last_cores: float = 0.0
    """The last reported amount; 0: nothing yet."""


@dataclass(frozen=True, slots=True)
class HeadroomRules:
    """How headroom is measured and rounded."""

    util: UtilRules | None = None
    """None: what the pool supplies; otherwise by its use."""
    max_capacity_ratio: float = 1.0
    """Bound of the util-based capacity as a part of the NUMA nodes' CPUs; 0: none."""
    rounding: Rounding = "milli"


@dataclass(frozen=True, slots=True)
class ReclaimedUse:
    """Use of reclaimed pods: all together, and by NUMA node of bound pods."""

    whole: GroupUse = field(default_factory=GroupUse)
    bound: Mapping[int, GroupUse] = field(default_factory=dict)


def numa_pools(
    pool: CpuSet, numa_cpus: Mapping[int, CpuSet], used_ratio: Mapping[int, float], last_millis: Mapping[int, float]
) -> dict[int, NumaPool]:
    """The pool by NUMA node.

    Args:
        pool: CPUs of the reclaim pool.
        numa_cpus: the machine's CPUs by NUMA node.
        used_ratio: how much of each CPU is used; one that is missing counts as unused.
        last_millis: milli-cores reported last, by NUMA node.
    """
    return {
        numa: NumaPool(
            pool_cpus=len(pool & cpus),
            used_cores=math.fsum(used_ratio.get(cpu, 0.0) for cpu in pool & cpus),
            cpus=len(cpus),
            last_cores=last_millis.get(numa, 0.0) / MILLIS,
        )
        for numa, cpus in numa_cpus.items()
    }


def capacity_millis(pools: Mapping[int, NumaPool], headroom_millis: Mapping[int, int]) -> dict[int, int]:
    """Return the capacity in milli-cores by NUMA node: the pool's CPUs, or the offer if that is larger."""
    return {numa: max(pools[numa].pool_cpus * MILLIS, headroom_millis[numa]) for numa in sorted(headroom_millis)}


def supply_cores(pool_cpus: int, used_cores: float, group: GroupUse) -> float:
    """CPUs of the pool that are not used, and those that reclaimed pods use, at most their quota."""
    # The use of reclaimed pods is already theirs; only the use of others reduces the supply.
    cores = max(pool_cpus - used_cores, 0.0) + group.usage_cores
    return cores if group.quota_cores is None else min(cores, group.quota_cores)


def node_headroom_millis(
    pools: Mapping[int, NumaPool], use: ReclaimedUse, bound_numas: Collection[int], rules: HeadroomRules
) -> dict[int, int]:
    """Headroom in milli-cores by NUMA node, for each that holds a CPU of the pool; ascending. The node's is the sum."""
    held = {numa: pools[numa] for numa in sorted(pools) if pools[numa].pool_cpus > 0}
    alone = {numa: [held[numa]] for numa in held if numa in bound_numas}
    millis = {
        numa: _bound_millis(_cores(parts, use.bound.get(numa, GroupUse()), rules), rules)
        for numa, parts in alone.items()
    }
    together = {numa: pool for numa, pool in held.items() if numa not in alone}
    if together:
        share = _shared_millis(_cores(list(together.values()), use.whole, rules), len(together), rules)
        millis |= dict.fromkeys(together, share)
    return {numa: millis[numa] for numa in held}


def _cores(parts: Sequence[NumaPool], group: GroupUse, rules: HeadroomRules) -> float:
    supply = supply_cores(sum(part.pool_cpus for part in parts), math.fsum(part.used_cores for part in parts), group)
    if rules.util is None:
        return supply
    last = math.fsum(part.last_cores for part in parts)
    limit = rules.max_capacity_ratio * sum(part.cpus for part in parts)
    return util_capacity_cores(supply, group.usage_cores, last, rules.util, limit)


def _bound_millis(cores: float, rules: HeadroomRules) -> int:
    if rules.rounding == "milli" or rules.util is not None:
        return to_whole(math.floor, cores * MILLIS)
    return to_whole(math.ceil, cores) * MILLIS


def _shared_millis(cores: float, numas: int, rules: HeadroomRules) -> int:
    if rules.rounding == "milli":
        return to_whole(math.floor, cores / numas * MILLIS)
    together = cores if rules.util is None else to_whole(math.ceil, cores)
    return to_whole(math.floor, together / numas) * MILLIS


def to_whole(rounded: Callable[[float], int], amount: float) -> int:
    """A whole number from a measured one: 3.0000000000004 is 3, whichever way is rounded."""
    return rounded(round(amount, _NOISE_DIGITS))
