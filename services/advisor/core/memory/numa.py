"""`numa_headroom_bytes` measures the memory headroom by NUMA node
(docs/facts/katalyst-memory.md#numa-aware-headroom).

The headroom of every NUMA node is reduced by the same share: for the watermarks, the reserve, and what tenants have
requested and not used yet. The requests of reclaimed pods are added, because that memory is already theirs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.advisor.core.memory.holders import Holder, reclaimed_requests
from services.advisor.core.memory.watermarks import SCALE_UNIT


@dataclass(frozen=True, slots=True)
class NumaRoom:
    """Memory of one NUMA node that is open to reclaimed pods."""

    total_bytes: int
    free_bytes: int
    inactive_file_bytes: int


@dataclass(frozen=True, slots=True)
class NumaRules:
    """What counts as reclaimable, and how far requests may exceed the limit. The defaults are Katalyst's."""

    cache_ratio: float = 0.0
    """Part of the inactive page cache that counts as free."""
    request_ratio: float = 0.1
    """Largest part of the tenants' requests that is kept back for them."""
    max_oversold_ratio: float = 2.0
    """Headroom as a multiple of the limit of the reclaimed pods' cgroup; 0: no such bound."""


@dataclass(frozen=True, slots=True)
class ReclaimLimits:
    """Memory limits of the reclaimed pods' cgroups: of all, and of those bound to a NUMA node; None: not known."""

    whole_bytes: int | None = None
    bound_bytes: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NumaReserve:
    """Memory that stays free whatever the pods request: the reserve, and what the kernel's watermarks demand."""

    reserved_bytes: float
    """As much of the node's reserve as falls on the NUMA nodes in question."""
    watermark_scale_factor: float
    """`vm.watermark_scale_factor`."""


def numa_headroom_bytes(
    rooms: Mapping[int, NumaRoom],
    holders: Sequence[Holder],
    reserve: NumaReserve,
    rules: NumaRules,
    limits: ReclaimLimits | None = None,
) -> dict[int, int]:
    """Return the headroom by NUMA node, ascending; the node's headroom is the sum.

    Args:
        rooms: the NUMA nodes that no container owns completely.
        holders: every container.
        reserve: what is never lent.
        rules: what counts.
        limits: of the reclaimed pods' cgroups; None or unknown: no bound.
    """
    reclaimable = {n: rooms[n].free_bytes + rooms[n].inactive_file_bytes * rules.cache_ratio for n in sorted(rooms)}
    total_bytes, could_bytes = sum(room.total_bytes for room in rooms.values()), math.fsum(reclaimable.values())
    watermark = total_bytes * reserve.watermark_scale_factor / SCALE_UNIT
    kept = max(total_bytes - could_bytes, 0.0) * kept_ratio(holders, rules.request_ratio)
    left = max(could_bytes - watermark - reserve.reserved_bytes - kept, 0.0)
    factor = left / could_bytes * request_per_use(holders) if could_bytes > 0 else 0.0
    requests = reclaimed_requests(holders, rooms)
    bounds = _bounds(rooms, holders, rules, limits or ReclaimLimits())
    return {numa: int(min(reclaimable[numa] * factor + requests[numa], bounds[numa])) for numa in reclaimable}


def request_per_use(holders: Sequence[Holder]) -> float:
    """Return how much reclaimed pods request per byte of use; 1 while no use is known."""
    asked, used = _asked_and_used([holder for holder in holders if holder.reclaimed])
    return asked / used if used > 0 else 1.0


def kept_ratio(holders: Sequence[Holder], request_ratio: float) -> float:
    """The part of the memory in use that is kept back for what tenants asked for and do not use yet; never negative.

    A container without a figure counts as using all that it asked for, so nothing is kept back for it.
    """
    asked, used = _asked_and_used([holder for holder in holders if not holder.reclaimed])
    _, reclaimed_used = _asked_and_used([holder for holder in holders if holder.reclaimed])
    if used + reclaimed_used <= 0:
        return 0.0
    return max(min(asked - used, asked * request_ratio) / (used + reclaimed_used), 0.0)


def _asked_and_used(holders: Sequence[Holder]) -> tuple[int, int]:
    """Sums over the containers that asked for memory at all."""
    asking = [holder for holder in holders if holder.request_bytes > 0]
    used = [holder.request_bytes if holder.use_bytes is None else holder.use_bytes for holder in asking]
    return sum(holder.request_bytes for holder in asking), sum(used)


def _bounds(
    rooms: Mapping[int, NumaRoom], holders: Sequence[Holder], rules: NumaRules, limits: ReclaimLimits
) -> dict[int, float]:
    """Return the most that each NUMA node may report: its own cgroup's limit if pods are bound to it, otherwise a
    share of the total."""
    bound = {holder.bound_numa for holder in holders if holder.reclaimed}
    others = sum(numa not in bound for numa in rooms)
    bounds = dict.fromkeys(rooms, math.inf)
    for numa in rooms if rules.max_oversold_ratio > 0 else ():
        limit = limits.bound_bytes.get(numa) if numa in bound else limits.whole_bytes
        if limit is not None:
            bounds[numa] = limit / (1 if numa in bound else others) * rules.max_oversold_ratio
    return bounds
