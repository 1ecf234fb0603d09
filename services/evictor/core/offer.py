"""Reads from an allocation what is offered to reclaimed pods, where advice has made the offer."""

from shared.contracts.allocation import Allocation
from shared.contracts.pod import TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY

USABLE = ("applied", "partial")
"""Statuses of an allocation whose offer was made from advice. Without fresh advice the offer falls by itself
("held", "floor"), and a silent advisor must not cause evictions
(docs/facts/safety-rules.md#rule-1-absent-is-not-zero)."""


def offered(allocation: Allocation | None) -> dict[str, int] | None:
    """The offered resources, by their names in the tutorial; None: missing, stale, or not by advice."""
    if allocation is None or allocation.status not in USABLE:
        return None
    return {
        TUTORIAL_RECLAIMED_CPU: allocation.reclaimed_cpu_millis,
        TUTORIAL_RECLAIMED_MEMORY: allocation.reclaimed_memory_bytes,
    }


def offered_by_numa(allocation: Allocation | None) -> dict[int, dict[str, int]] | None:
    """The offered CPU by NUMA node; memory is not offered by NUMA node."""
    if allocation is None or allocation.status not in USABLE or allocation.reclaimed_numas is None:
        return None
    return {part.numa: {TUTORIAL_RECLAIMED_CPU: part.reclaimed_cpu_millis} for part in allocation.reclaimed_numas}
