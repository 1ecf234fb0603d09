"""The kind `memory_evict_tick`: whom one tick evicts, by every memory feature that is on.

Facts: docs/facts/koordinator-evict.md#a-tick-of-memory-eviction.
"""

from collections.abc import Sequence

from services.evictor.whatif.fields import Int64
from shared.whatif.decisions import Answer, Question, decision
from sublet.reference.koordinator.evict.release import MemoryNode, bytes_over_marks, colocated_excess
from sublet.reference.koordinator.evict.strategy import MEMORY_FEATURES, MemoryFeature, SwitchedStrategy
from sublet.reference.koordinator.evict.tasks import MEMORY, Amounts, EvictTask, work_off
from sublet.reference.koordinator.evict.victims import (
    EvictablePod,
    allows_policy,
    best_effort_order,
    by_request,
    by_use,
    priority_order,
)


class EvictTickQuestion(Question):
    """One moment of the node; null: not known, or, of the strategy, none."""

    node: MemoryNode | None = None
    node_memory_used_bytes: Int64 | None = None
    features: list[str]
    strategy: SwitchedStrategy | None = None
    since_last_eviction_s: float | None = None
    cooldown_s: float = 4
    pods: list[EvictablePod]

    @property
    def cooling(self) -> bool:
        """Whether the last eviction is too short a time ago."""
        return self.since_last_eviction_s is not None and self.since_last_eviction_s < self.cooldown_s


class EvictTickAnswer(Answer):
    """Names, first to go first."""

    evicted: list[str]


@decision("memory_evict_tick", area="koord_memory_evict", asks=EvictTickQuestion, answers=EvictTickAnswer)
def memory_evict_tick(question: EvictTickQuestion) -> EvictTickAnswer:
    """Whom Koordinator evicts for memory now."""
    node, strategy = question.node, question.strategy
    if node is None or node.capacity_memory_bytes <= 0 or strategy is None or not strategy.enable or question.cooling:
        return EvictTickAnswer(evicted=[])
    tasks = [
        _task(feature, question, node, strategy)
        for feature in MEMORY_FEATURES
        if feature in question.features and strategy.valid_for(feature)
    ]
    return EvictTickAnswer(evicted=work_off(tasks, _credits(question.pods)).newly_evicted)


def _task(
    feature: MemoryFeature, question: EvictTickQuestion, node: MemoryNode, strategy: SwitchedStrategy
) -> EvictTask:
    pods = [pod for pod in question.pods if allows_policy(feature, pod.annotations)]
    if feature == "MemoryAllocatableEvict":
        excess = colocated_excess(node.allocatable, question.pods, strategy)
        highest = strategy.allocatable_evict_priority_threshold or 0
        return EvictTask("request", excess, _names(priority_order(pods, highest, by_request)))
    used = question.node_memory_used_bytes
    to_release = 0 if used is None else bytes_over_marks(node.capacity_memory_bytes, used, strategy.usage_marks)
    highest = strategy.evict_enabled_priority_threshold or 0
    order = best_effort_order(pods) if feature == "BEMemoryEvict" else priority_order(pods, highest, by_use)
    return EvictTask("used", {MEMORY: to_release}, _names(order))


def _names(pods: Sequence[EvictablePod]) -> list[str]:
    return [pod.name for pod in pods]


def _credits(pods: Sequence[EvictablePod]) -> dict[str, Amounts]:
    return {
        pod.name: {
            "used": {MEMORY: pod.memory_used_bytes or 0},
            "request": dict([pod.colocated_request] if pod.colocated_request else []),
        }
        for pod in pods
    }
