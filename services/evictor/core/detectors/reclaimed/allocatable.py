"""Finds how much of the requests should go because they exceed a part of what is allocatable.

Facts: docs/facts/koordinator-evict.md#by-allocatable.
"""

from services.evictor.core.detectors.marks import EvictionMarks


def amount_to_free(requested: int, allocatable: int | None, marks: EvictionMarks) -> int:
    """Return the part of `requested` above the target if it is above the threshold; 0 without a credible
    allocatable.

    Absent is not zero: an amount that nobody reports says nothing, while an amount of 0 makes every request too much.
    """
    if allocatable is None or allocatable < 0 or marks.threshold_percent < 0:
        return 0
    if marks.threshold_percent == 0:
        return max(0, requested)
    if requested * 100 <= marks.threshold_percent * allocatable:
        return 0
    return min(requested, max(0, (requested * 100 - marks.target_percent * allocatable) // 100))
