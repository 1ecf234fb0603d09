"""Orders the pods that go when memory is short (docs/facts/katalyst-eviction.md#order-of-memory-victims)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from services.evictor.core.detectors.memory.combined import Action, MemoryActions
from services.evictor.core.plugin_kit.numa_order import numa_order
from shared.contracts.pod import QosClass
from shared.core.pods.qos import CRITICAL_PRIORITY

Key = Literal["qos", "priority", "usage"]
RANKING: tuple[Key, ...] = ("qos", "priority", "usage")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MemoryUser(Generic[T]):
    """A pod with what it uses, of all memory and of each NUMA node's; None: unknown."""

    namespace: str
    name: str
    """Orders pods of equal rank, after the namespace."""
    qos: QosClass
    priority: int
    usage_bytes: int | None
    numa_usage_bytes: Mapping[str, int | None]
    of: T
    """The caller's object."""

    def usage(self, numa: str | None) -> int | None:
        """Use of one NUMA node's memory, or of all with None."""
        return self.usage_bytes if numa is None else self.numa_usage_bytes.get(numa)

    def evictable(self, action: Action) -> bool:
        """Whether an action may reach this pod."""
        if self.qos == "system_cores" or self.priority >= CRITICAL_PRIORITY:
            return False
        return action == "all" or (action == "reclaimed" and self.qos == "reclaimed_cores")


@dataclass(frozen=True, slots=True)
class VictimOrder:
    """How many pods each shortage may reach, in which order, and which use is too small to help."""

    top_n: int
    ranking: Sequence[Key] = RANKING
    min_utilization_ratio: float = 0.0
    """Least share of an affected NUMA node's memory that a victim uses."""


def in_order(
    pods: Sequence[MemoryUser[T]],
    order: VictimOrder,
    actions: MemoryActions,
    numa_total_bytes: Mapping[str, int],
) -> list[MemoryUser[T]]:
    """At most `top_n` pods for each acting NUMA node, ascending, then for the system; each pod once."""
    chosen: list[MemoryUser[T]] = []
    shortages: list[tuple[str | None, Action]] = [
        *sorted(actions.numa_actions.items(), key=lambda item: numa_order(item[0])),
        (None, actions.system_action),
    ]
    for numa, action in shortages:
        floor = 0.0 if numa is None else order.min_utilization_ratio * numa_total_bytes.get(numa, 0)
        able = [p for p in pods if p.evictable(action) and _at_least(p.usage(numa), floor)]
        first = sorted(able, key=lambda pod: _sort_key(pod, numa, order.ranking))[: order.top_n]
        # A pod that several shortages name goes for the first of them, and is counted once.
        chosen += [pod for pod in first if pod not in chosen]
    return chosen


def _at_least(usage_bytes: int | None, floor_bytes: float) -> bool:
    """Whether a pod uses enough to be worth evicting; an unknown use may be any."""
    return usage_bytes is None or usage_bytes >= floor_bytes


def _sort_key(pod: MemoryUser[T], numa: str | None, ranking: Sequence[Key]) -> tuple[float | str, ...]:
    """First to go first: reclaimed, low priority, large use (unknown is the largest), then the name."""
    usage = pod.usage(numa)
    by: dict[Key, float] = {
        "qos": 0 if pod.qos == "reclaimed_cores" else 1,
        "priority": pod.priority,
        "usage": float("-inf") if usage is None else -usage,
    }
    return (*(by[key] for key in ranking), pod.namespace, pod.name)
