"""Computes what best-effort pods may request on a node, by Koordinator's formula: batch-cpu and batch-memory.

One resource at a time, in milli-cores or bytes. Every demand has two amounts, its use and its request. The policy
decides which of the two is subtracted.

Facts: docs/facts/koordinator-batch.md#amount-of-a-batch-resource.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

CpuPolicy = Literal["usage", "maxUsageRequest"]
MemoryPolicy = Literal["usage", "request", "maxUsageRequest"]

CPU_RECLAIM_PERCENT, MEMORY_RECLAIM_PERCENT = 60, 65
DEGRADE_AFTER_S = 900.0


@dataclass(frozen=True, slots=True)
class ResourceDemand:
    """What one pod above batch and free takes of one resource; None: it requested nothing, or its use is unknown."""

    requested: int | None
    used: int | None
    at_request: bool = False
    """Whether its unused request is not lent: exclusive cores."""

    @property
    def counted_use(self) -> int:
        """Return its use; its request if the use is unknown, or is not lent."""
        if self.requested is not None and (self.used is None or self.at_request):
            return self.requested
        return self.used or 0

    @property
    def larger(self) -> int:
        """The larger of request and use; a pod whose use is not known yet counts by its request here too."""
        return max(self.requested or 0, self.used or 0)


@dataclass(frozen=True, slots=True)
class BatchTerms:
    """The terms of one amount, each of them taken off the capacity."""

    capacity: int
    margin: int
    """What is never lent."""
    system: int
    """Use by what is no pod, at least what is reserved."""
    reserved: int
    pods_used: int
    pods_requested: int
    pods_larger: int


def terms_of(
    capacity: int, margin: int, system_used: int, reserved: int, demands: Iterable[ResourceDemand]
) -> BatchTerms:
    """The terms of a node, or of a part of it, for one resource."""
    pods = tuple(demands)
    return BatchTerms(
        capacity=capacity,
        margin=margin,
        system=max(system_used, reserved),
        reserved=reserved,
        pods_used=sum(pod.counted_use for pod in pods),
        pods_requested=sum(pod.requested or 0 for pod in pods),
        pods_larger=sum(pod.larger for pod in pods),
    )


def batch_amount(terms: BatchTerms, policy: MemoryPolicy, at_most_percent: int | None = None) -> int:
    """Return the total that may be requested. Use by best-effort pods is not subtracted, because a scheduler counts
    their requests."""
    taken = {
        "usage": terms.system + terms.pods_used,
        "request": terms.reserved + terms.pods_requested,
        "maxUsageRequest": terms.system + terms.pods_larger,
    }[policy]
    amount = max(0, terms.capacity - terms.margin - taken)
    return amount if at_most_percent is None else min(amount, terms.capacity * at_most_percent // 100)


def cpu_margin(cpu_millis: int, reclaim_percent: int) -> int:
    """Milli-cores that are never lent, rounded down."""
    return cpu_millis * (100 - reclaim_percent) // 100


def memory_margin(memory_bytes: int, reclaim_percent: int) -> int:
    """Bytes that are never lent, rounded up: a byte too many would be one that tenants miss."""
    return memory_bytes - memory_bytes * reclaim_percent // 100


def degraded(age_s: float | None, degrade_after_s: float = DEGRADE_AFTER_S) -> bool:
    """Whether the figures of a node are too old to offer anything by them; None: there are none.

    Facts: docs/facts/koordinator-batch.md#when-figures-are-too-old.
    """
    return age_s is None or age_s > degrade_after_s
