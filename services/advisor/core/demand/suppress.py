"""The CPU time that Koordinator's suppression leaves to best-effort work.

Facts: docs/facts/koordinator-cpu-suppress.md#the-budget.
"""

from collections.abc import Iterable
from dataclasses import dataclass

SUPPRESS_THRESHOLD_PERCENT = 65
"""How busy the node may be, by all that runs on it."""


@dataclass(frozen=True, slots=True)
class NodeCpuUse:
    """The node's CPU: its capacity, the reservation (kubelet, annotation), and the use by everything."""

    capacity_millis: int
    used_millis: int
    reserved_millis: int = 0


@dataclass(frozen=True, slots=True)
class WorkloadUse:
    """CPU that one pod or one application of the host uses, and whether it is best-effort."""

    used_millis: int
    best_effort: bool


@dataclass(frozen=True, slots=True)
class SuppressRule:
    """How busy the node may be, and what best-effort work keeps in any case; None: nothing."""

    threshold_percent: int = SUPPRESS_THRESHOLD_PERCENT
    min_percent: int | None = None


def best_effort_budget_millis(node: NodeCpuUse, workloads: Iterable[WorkloadUse], rule: SuppressRule) -> int:
    """Return the threshold's share of the node minus what everything else uses; negative if that is more than the
    share.

    The system's use is what the node uses beyond all workloads, and at least the reservation.
    """
    known = tuple(workloads)
    system_millis = max(node.used_millis - sum(w.used_millis for w in known), 0, node.reserved_millis)
    others_millis = sum(w.used_millis for w in known if not w.best_effort) + system_millis
    budget_millis = percent_of(node.capacity_millis, rule.threshold_percent) - others_millis
    if rule.min_percent is None:
        return budget_millis
    return max(budget_millis, percent_of(node.capacity_millis, rule.min_percent))


def percent_of(amount: int, percent: int) -> int:
    """Whole percent of an amount, rounded towards 0."""
    part = amount * abs(percent) // 100
    return part if percent >= 0 else -part
