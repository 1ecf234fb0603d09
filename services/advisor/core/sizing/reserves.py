"""Reserves say what each NUMA node keeps for reclaimed pods, and which part of the tenants' reserve a region gets.

Facts: docs/facts/katalyst-cpu.md#regions-and-reserves.
"""

import math
from collections.abc import Collection, Mapping

_ROUNDING_ERROR = 1e-9
"""Less than this above a whole number is that number: 0.07 x 100 is 7.000000000000001."""


def kept_for_reclaim(cpus: Mapping[int, int], reserved_cores: int, min_ratio: float | None = None) -> dict[int, int]:
    """CPUs of each NUMA node that reclaimed pods always keep: the same on every node, at least one.

    Args:
        cpus: CPUs of each NUMA node by id.
        reserved_cores: for the whole machine; at least one for each node, at most all CPUs.
        min_ratio: at least this part of each node's CPUs.
    """
    if not cpus:
        return {}
    # At least one CPU on each node: reclaimed pods may be bound to any.
    total = min(max(reserved_cores, len(cpus)), sum(cpus.values()))
    each = total // len(cpus)
    return {numa: max(each, math.ceil((min_ratio or 0.0) * size - _ROUNDING_ERROR)) for numa, size in cpus.items()}


def reserve_of_region(
    reserve_cores: float, numas: Collection[int], all_numas: Collection[int], shared_by: Mapping[int, int]
) -> float:
    """The part of the machine's reserve that is added to the need of one region.

    Args:
        reserve_cores: of the whole machine, spread evenly over its NUMA nodes.
        numas: the nodes of the region.
        all_numas: every node of the machine.
        shared_by: by node, how many share regions lie there: they divide the node's part.
    """
    each = reserve_cores / max(1, len(all_numas))
    return math.fsum(each / max(1, shared_by.get(numa, 0)) for numa in numas)
