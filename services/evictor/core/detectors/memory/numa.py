"""Detects a memory shortage on a NUMA node by its free memory and the kernel's watermarks, over time.

Facts: docs/facts/katalyst-eviction.md#numa-memory. Unlike upstream, a row of steps below min also escalates to tenants'
pods.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from services.evictor.core.detectors.memory.combined import Action
from services.evictor.core.plugin_kit.numa_order import numa_order

SCOPE = "NumaMemory"
GAP_BYTES = 1 << 30
"""Added to the kernel's min watermark, and to low where page cache is scarce."""
GUARD_BYTES = 256 << 20
"""Added to the kernel's low watermark, so that kswapd and evictions do not take turns."""
CACHE_RESERVE_BYTES = 4 << 30
"""With less inactive page cache than this the machine thrashes long before free memory is low."""
HASTE_FROM = 2
"""Counts from which on a node that is deep below low counts twice."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Free memory below `min` is danger, below `low` pressure."""

    min_bytes: float
    low_bytes: float

    def deep(self, free_bytes: float) -> bool:
        """Nearer to min than to low, or more than the gap below low."""
        gap = self.low_bytes > GAP_BYTES and free_bytes < self.low_bytes - GAP_BYTES
        return free_bytes < (self.min_bytes + self.low_bytes) / 2 or gap


def adjusted(min_bytes: int, low_bytes: int, inactive_file_bytes: int) -> Marks:
    """Return the kernel's watermarks with their margins; low rises if little page cache is left to drop."""
    low = low_bytes + GUARD_BYTES
    if inactive_file_bytes < max(CACHE_RESERVE_BYTES, low):
        low = max(CACHE_RESERVE_BYTES, low + GAP_BYTES)
    return Marks(min_bytes + GAP_BYTES, low)


def by_scale(total_bytes: int, watermark_scale_factor: int) -> Marks:
    """Where the kernel's watermarks are not known: low is total * scale / 10000, min is none."""
    return Marks(0.0, total_bytes * watermark_scale_factor / 10_000)


@dataclass(frozen=True, slots=True)
class Patience:
    """Counts from which on all pods may go, above which reclaimed ones may, and steps to wait in danger."""

    all_pods: int = 12
    reclaimed: int = 6
    danger_wait: int = 1


def counted(count: int, free_bytes: float, marks: Marks, patience: Patience) -> int:
    """The count of one node one step further."""
    if free_bytes < marks.min_bytes:
        # Below min there is no time to count: the node is at once where it would be after long pressure, minus the
        # steps to wait.
        return max(count + 1, patience.all_pods - patience.danger_wait)
    if free_bytes < marks.low_bytes:
        return count + (2 if count >= HASTE_FROM and marks.deep(free_bytes) else 1)
    # Down by one a step, and not to 0: a node that swings around its watermark is still short of memory.
    return max(0, min(count - 1, patience.reclaimed))


def action(count: int, free_bytes: float, marks: Marks, patience: Patience) -> Action:
    """Return what a node with this count requests now; nothing above low, whatever the count."""
    if free_bytes >= marks.low_bytes and free_bytes >= marks.min_bytes:
        return "noop"
    if count >= patience.all_pods:
        return "all"
    return "reclaimed" if free_bytes < marks.min_bytes or count > patience.reclaimed else "noop"


def judge(
    counts: Mapping[str, int], free_bytes: Mapping[str, int | None], marks: Mapping[str, Marks], patience: Patience
) -> tuple[dict[str, int], dict[str, Action]]:
    """One step of all nodes. A node whose free memory is unknown asks for nothing and counts neither up nor down."""
    after: dict[str, int] = dict(counts)
    actions: dict[str, Action] = {}
    for numa in sorted(marks, key=numa_order):
        free, actions[numa] = free_bytes.get(numa), "noop"
        if free is not None:
            after[numa] = counted(counts.get(numa, 0), free, marks[numa], patience)
            actions[numa] = action(after[numa], free, marks[numa], patience)
    return after, actions
