"""How much memory should go: the kinds `release_by_used` and `release_by_allocatable`.

Facts: docs/facts/koordinator-evict.md#memory-by-use.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from services.evictor.core.detectors.marks import EvictionMarks
from services.evictor.core.detectors.reclaimed.allocatable import amount_to_free
from services.evictor.whatif.fields import Int64
from shared.whatif.decisions import Answer, Question, decision
from sublet.reference.koordinator.evict.strategy import SwitchedStrategy, ThresholdStrategy
from sublet.reference.koordinator.evict.victims import MEMORY_OF_CLASS, EvictablePod


class MemoryNode(Question):
    """The node's memory, and what it has of each resource."""

    capacity_memory_bytes: Int64
    allocatable: dict[str, Int64] = {}


def bytes_over_marks(capacity_bytes: int, used_bytes: int, marks: EvictionMarks | None) -> int:
    """What is used above the target once the threshold is met, in whole percent of the capacity as upstream counts."""
    if capacity_bytes <= 0 or marks is None:
        return 0
    used_percent = used_bytes * 100 // capacity_bytes
    if used_percent < marks.threshold_percent:
        return 0
    return max(0, capacity_bytes * (used_percent - marks.target_percent) // 100)


def colocated_excess(
    allocatable: Mapping[str, int], pods: Iterable[EvictablePod], strategy: ThresholdStrategy
) -> dict[str, int]:
    """The requests of batch and of mid memory above their target; only resources of which some should go."""
    marks, requested = strategy.allocatable_marks, Counter[str]()
    if marks is None:
        return {}
    for resource, amount in (pod.colocated_request for pod in pods if counts(pod, strategy) if pod.colocated_request):
        requested[resource] += amount
    excess = {
        resource: amount_to_free(requested[resource], allocatable.get(resource), marks)
        for resource in sorted(MEMORY_OF_CLASS.values())
    }
    return {resource: amount for resource, amount in excess.items() if amount > 0}


def counts(pod: EvictablePod, strategy: ThresholdStrategy) -> bool:
    """Whether a pod's request is one that may be evicted."""
    highest = strategy.allocatable_evict_priority_threshold
    return highest is not None and pod.priority_value <= highest


class UsedQuestion(Question):
    """The node, its use, and the strategy as it is, whether it is valid or not."""

    node: MemoryNode
    node_memory_used_bytes: Int64
    strategy: SwitchedStrategy


class UsedAnswer(Answer):
    """What should go."""

    to_release_bytes: int


@decision("release_by_used", area="koord_memory_evict", asks=UsedQuestion, answers=UsedAnswer)
def release_by_used(question: UsedQuestion) -> UsedAnswer:
    """Bytes to free by the use of the node, as Koordinator counts them."""
    capacity, used = question.node.capacity_memory_bytes, question.node_memory_used_bytes
    return UsedAnswer(to_release_bytes=bytes_over_marks(capacity, used, question.strategy.usage_marks))


class AllocatableQuestion(Question):
    """The node, the strategy, and the pods that request of it."""

    node: MemoryNode
    strategy: SwitchedStrategy
    pods: list[EvictablePod]


class AllocatableAnswer(Answer):
    """Amounts by resource, and what each pod that counts would free of them."""

    to_release: dict[str, int]
    per_pod_release: dict[str, dict[str, int]]


@decision("release_by_allocatable", area="koord_memory_evict", asks=AllocatableQuestion, answers=AllocatableAnswer)
def release_by_allocatable(question: AllocatableQuestion) -> AllocatableAnswer:
    """Amounts to free because requests exceed the allocatable."""
    excess = colocated_excess(question.node.allocatable, question.pods, question.strategy)
    per_pod = {
        pod.name: dict([pod.colocated_request])
        for pod in question.pods
        if counts(pod, question.strategy) and pod.colocated_request and pod.colocated_request[0] in excess
    }
    return AllocatableAnswer(to_release=excess, per_pod_release=per_pod)
