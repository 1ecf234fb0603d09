"""`canonical_headroom_bytes` is Katalyst's memory headroom of a node.

It is what the tenants leave below the capacity, with a buffer by utilisation on top where that is asked for: the
tenants' estimates hold memory that is free. The advisor follows the same rule without the buffer
(docs/facts/katalyst-memory.md#canonical-headroom).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from services.advisor.core.demand.memory import estimate_bytes
from services.advisor.core.memory.holders import Holder
from services.advisor.core.memory.offer import canonical_offer_bytes
from services.advisor.core.memory.watermarks import SCALE_UNIT, WATERMARK_FACTOR
from services.advisor.core.model.machine import KATALYST_UNKNOWN_BYTES
from shared.errors import Refused

GIB = 1 << 30
LOWEST_CPUS_PER_GIB = 1 / 6
HIGHEST_CPUS_PER_GIB = 1 / 3.5


@dataclass(frozen=True, slots=True)
class BufferRules:
    """How much of free and cached memory is offered beyond the estimates. The defaults are Katalyst's."""

    free_ratio: float = 0.6
    static_bytes: float = 20 * GIB
    cache_ratio: float = 0.0
    """0: cached memory is not counted."""


@dataclass(frozen=True, slots=True)
class NodeUse:
    """The machine and how its memory is used now."""

    cpus: int
    memory_bytes: int
    total_bytes: int
    free_bytes: int
    used_bytes: int
    watermark_scale_factor: float

    @property
    def cpus_per_gib(self) -> float:
        """CPUs for each GiB of memory."""
        return self.cpus * GIB / self.memory_bytes


def canonical_headroom_bytes(
    capacity_bytes: int,
    reserved_bytes: int,
    holders: Sequence[Holder],
    numa_totals: dict[int, int],
    buffer: tuple[NodeUse, BufferRules] | None = None,
) -> int:
    """Capacity - reserve - what the containers take, plus the buffer, never above capacity - reserve.

    Raises:
        Refused: `missing_metric`, the size of a NUMA node that a container takes whole is not known.
    """
    tenants_bytes = sum(claimed_bytes(holder, numa_totals) for holder in holders)
    buffer_bytes = 0.0 if buffer is None else util_buffer_bytes(*buffer, tenants_bytes, holders)
    return int(canonical_offer_bytes(capacity_bytes, reserved_bytes, tenants_bytes, buffer_bytes))


def util_buffer_bytes(node: NodeUse, rules: BufferRules, tenants_bytes: int, holders: Sequence[Holder]) -> float:
    """What may be offered beyond the estimates: free memory that the tenants' growth and the kernel do not need."""
    watermark = node.total_bytes * WATERMARK_FACTOR * node.watermark_scale_factor / SCALE_UNIT
    growth = tenants_bytes - _tenants_use_bytes(holders) + _system_cache_bytes(holders)
    buffer = max(node.free_bytes * rules.free_ratio - watermark - growth, 0.0)
    if rules.cache_ratio > 0 and LOWEST_CPUS_PER_GIB < node.cpus_per_gib < HIGHEST_CPUS_PER_GIB:
        cached_bytes = node.total_bytes - node.used_bytes - node.free_bytes
        buffer = max(buffer, cached_bytes * rules.cache_ratio)
    return buffer + rules.static_bytes


def _tenants_use_bytes(holders: Sequence[Holder]) -> int:
    return sum(holder.use_bytes or 0 for holder in holders if holder.qos in ("shared_cores", "dedicated_cores"))


def _system_cache_bytes(holders: Sequence[Holder]) -> int:
    """The part of the system's own use that its estimate leaves out."""
    figures = [holder.figures for holder in holders if holder.qos == "system_cores"]
    return sum((figure.cache_bytes or 0) + (figure.shmem_bytes or 0) for figure in figures)


def claimed_bytes(holder: Holder, numa_totals: Mapping[int, int]) -> int:
    """What a container takes from the node: its NUMA nodes, its request where it lends nothing, else its estimate.

    Raises:
        Refused: `missing_metric`, the size of a NUMA node that it takes whole is not known.
    """
    if holder.reclaimed:
        return 0
    if holder.closed:
        over = sorted(numa_totals) if holder.numas is None else sorted(set(holder.numas))
        return sum(_total_bytes(numa, numa_totals) for numa in over)
    if not holder.lends:
        return holder.request_bytes
    return estimate_bytes(holder.qos, holder.figures, 0, KATALYST_UNKNOWN_BYTES)


def _total_bytes(numa: int, totals: Mapping[int, int]) -> int:
    if numa not in totals:
        raise Refused(f"memory of NUMA node {numa}: its total is not known; read it first", reason="missing_metric")
    return totals[numa]
