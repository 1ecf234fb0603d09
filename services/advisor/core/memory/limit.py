"""The memory guard limits how much memory reclaimed pods may use (docs/facts/katalyst-memory.md#memory-guard).

The limit is never below what they use: a limit that falls below it kills (docs/facts/linux-cgroups.md#memory-limits).
When their memory must be taken back, that is the work of qrm's bounded steps and of the evictor, not of the limit.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from services.advisor.core.model.figures import NodeMemory
from shared.errors import Refused


@dataclass(frozen=True, slots=True)
class MemoryZone:
    """A NUMA node, or the whole machine as one. `low_bytes` is its low watermark if the kernel reports it."""

    total_bytes: int
    free_bytes: int
    reclaim_used_bytes: int | None
    low_bytes: int | None = None


def guarded_limit_bytes(
    zones: Iterable[MemoryZone], watermark_scale_factor: float, critical_bytes: int, critical_factor: float = 1.0
) -> int:
    """Return the use of reclaimed pods plus, per zone, the free memory above the critical watermark.

    Raises:
        Refused: `missing_metric`, the use in a zone is unknown, or there is no zone.
    """
    spare = [_allowed_bytes(zone, watermark_scale_factor, critical_bytes, critical_factor) for zone in zones]
    if not spare:
        raise Refused("memory guard: no NUMA node is known", reason="missing_metric")
    return sum(spare)


def _allowed_bytes(zone: MemoryZone, watermark_scale_factor: float, critical_bytes: int, critical_factor: float) -> int:
    if zone.reclaim_used_bytes is None:
        raise Refused("memory guard: the reclaimed pods' use is not known", reason="missing_metric")
    low = zone.total_bytes * watermark_scale_factor / 10_000 if zone.low_bytes is None else zone.low_bytes
    critical = max(critical_bytes, int(low * critical_factor))
    return zone.reclaim_used_bytes + max(0, zone.free_bytes - critical)


def next_limit_bytes(wanted_bytes: int, before_bytes: int | None, used_bytes: int, step_bytes: int) -> int:
    """Return the next limit on the way to the wanted one: up at once, down by at most one step, never below the use.

    `before_bytes` is the limit in force, None if there is none; any limit is then a step down.
    """
    least_bytes = max(wanted_bytes, used_bytes)
    return least_bytes if before_bytes is None else max(least_bytes, before_bytes - step_bytes)


LIMIT_STEPS = 512
"""A limit is rounded up to a 512th of the machine's memory, so that small changes do not cause a write."""
DOWN_STEPS = 16
"""A limit shrinks by a 16th of the machine's memory in one round at most: the kernel reclaims while it is written."""


def node_limit_bytes(node: NodeMemory, critical_bytes: int, before_bytes: int | None = None) -> int | None:
    """Return the limit of the reclaimed pool's cgroup over the whole node; None if a figure is missing: leave it
    unchanged.

    Compared with the last round (`before_bytes`) the limit rises at once and falls by at most a `DOWN_STEPS`th of the
    memory.

    Available memory counts as free memory: on a machine that has run for a while, the page cache holds nearly all free
    memory, and a limit based on free memory alone would freeze batch work at its present size.
    """
    total, available, used = node.total_bytes, node.available_bytes, node.reclaimed_used_bytes
    if total is None or available is None or used is None or node.watermark_scale_factor is None:
        return None
    wanted = guarded_limit_bytes([MemoryZone(total, available, used)], node.watermark_scale_factor, critical_bytes)
    limit = next_limit_bytes(wanted, before_bytes, used, total // DOWN_STEPS)
    step = max(1, total // LIMIT_STEPS)
    # Up: rounded down it might lie below what is used.
    return -(-limit // step) * step
