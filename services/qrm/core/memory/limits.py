"""Memory limits of the reclaimed class and its pods move in steps, so that no write makes the kernel kill.

v1 refuses a limit below use with EBUSY and changes nothing; v2 kills at once for `memory.max`, and only throttles and
reclaims for `memory.high`. Both reclaim while the writer waits (docs/facts/linux-cgroups.md#memory-limits).
"""

from dataclasses import dataclass

from shared.core.cgroups.knobs import UNLIMITED, Knob, Version

MARGIN_BYTES = 32 << 20  # room above current use: what may be allocated between reading the use and writing the limit
STEP_BYTES = 256 << 20  # reclaimed by one write at most, so that a pass is not held up by it


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Use of one cgroup: all of it, and the part that the kernel can drop without loss (inactive page cache)."""

    usage_bytes: int
    droppable_bytes: int = 0


def limit_steps(limit_bytes: int, use: MemoryUse, version: Version) -> list[tuple[Knob, int]]:
    """Return the current settings on the way to a limit; ask again every pass until they equal the limit.

    v1: never below the use that cannot be dropped. v2: `memory.high` pushes, `memory.max` follows and never goes below
    current use. Both go down by at most `STEP_BYTES` of current use at a time, and up at once.
    """
    bounded = max(limit_bytes, use.usage_bytes - STEP_BYTES)
    if version == 1:
        return [(Knob.MEMORY_MAX, max(bounded, use.usage_bytes - use.droppable_bytes + MARGIN_BYTES))]
    # In this order: `memory.high` makes the room in which `memory.max` may follow.
    return [(Knob.MEMORY_HIGH, bounded), (Knob.MEMORY_MAX, max(limit_bytes, use.usage_bytes + MARGIN_BYTES))]


def high_step(high_bytes: int, now_bytes: int, use: MemoryUse) -> int:
    """Return the current `memory.high` on the way to the wanted one; it stays while use has not come down to it.

    A step that followed the use would be written forever if memory cannot be reclaimed, and each write makes the kernel
    try while the writer waits.
    """
    if high_bytes <= now_bytes < use.usage_bytes:
        return now_bytes
    return max(high_bytes, use.usage_bytes - STEP_BYTES)


def in_force(limit_bytes: int, hard_bytes: int | None) -> bool:
    """Return whether a hard limit, as the kernel has it, is at most the wanted limit; a lower one is not ours to
    lift.

    None: there is no such setting, and nothing is in force.
    """
    return hard_bytes is not None and hard_bytes != UNLIMITED and hard_bytes <= limit_bytes


def own_limit_steps(limit_bytes: int, hard_bytes: int, use: MemoryUse, version: Version) -> list[tuple[Knob, int]]:
    """Return the current settings on the way to the limit that a pod or container requested; empty if it is in
    force.

    Unlike a class's limit it only goes down, and it stays when use comes near: the kernel must end what takes more than
    it declared. While more is in use, the limit waits above the use; v2 meanwhile pushes with `memory.high`, and
    releases that at the end. On v1 page cache may be in the way: the kernel drops it, or refuses.
    """
    if in_force(limit_bytes, hard_bytes):
        return []
    in_the_way = use.usage_bytes - (use.droppable_bytes if version == 1 else 0)
    if in_the_way <= limit_bytes:
        return [(Knob.MEMORY_MAX, max(limit_bytes, use.usage_bytes - STEP_BYTES)), (Knob.MEMORY_HIGH, UNLIMITED)]
    steps = limit_steps(limit_bytes, use, version)
    return [(knob, value) for knob, value in steps if knob is Knob.MEMORY_HIGH or not in_force(value, hard_bytes)]
