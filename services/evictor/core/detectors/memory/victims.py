"""Who goes when memory is short (docs/facts/katalyst-eviction.md#order-of-memory-victims)."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

from services.evictor.core.detectors.memory.combined import Action, numa_order
from shared.contracts.pod import QosClass
from shared.core.decisions import Answer, Question, decision
from shared.core.pods.qos import CRITICAL_PRIORITY

Key = Literal["qos", "priority", "usage"]
RANKING: tuple[Key, ...] = ("qos", "priority", "usage")


class MemoryPod(Question):
    """A pod with what it uses, of all memory and of each NUMA node's."""

    name: str
    namespace: str | None = None
    qos: QosClass
    priority: int
    usage_bytes: int | None = None
    numa_usage_bytes: dict[str, int | None] | None = None

    def usage(self, numa: str | None) -> int | None:
        """Use of one NUMA node's memory, or of all with None."""
        return self.usage_bytes if numa is None else (self.numa_usage_bytes or {}).get(numa)

    def evictable(self, action: Action) -> bool:
        """Whether an action may reach this pod."""
        if self.qos == "system_cores" or self.priority >= CRITICAL_PRIORITY:
            return False
        return action == "all" or (action == "reclaimed" and self.qos == "reclaimed_cores")


class VictimsQuestion(Question):
    """The actions asked for, and the pods."""

    pods: list[MemoryPod]
    system_action: Action
    numa_actions: dict[str, Action]
    top_n: int = 1
    ranking: list[Key] | None = None
    numa_total_bytes: dict[str, int] | None = None
    victim_min_utilization_ratio: float = 0
    cooldown_s: float | None = None
    since_last_eviction_s: float | None = None


class VictimsAnswer(Answer):
    """Names, first to go first."""

    victims: list[str]


@decision("memory_victims", area="eviction_memory", asks=VictimsQuestion, answers=VictimsAnswer)
def memory_victims(question: VictimsQuestion) -> VictimsAnswer:
    """Who goes, for given actions: NUMA nodes ascending, then the system; each pod once."""
    since, cooldown = question.since_last_eviction_s, question.cooldown_s
    if since is not None and cooldown is not None and since < cooldown:
        return VictimsAnswer(victims=[])
    order = in_order(
        question.pods,
        system_action=question.system_action,
        numa_actions=question.numa_actions,
        top_n=max(0, question.top_n),
        ranking=RANKING if question.ranking is None else question.ranking,
        numa_total_bytes=question.numa_total_bytes or {},
        min_utilization_ratio=question.victim_min_utilization_ratio,
    )
    return VictimsAnswer(victims=[pod.name for pod in order])


M = TypeVar("M", bound=MemoryPod)


def in_order(
    pods: Sequence[M],
    *,
    system_action: Action,
    numa_actions: Mapping[str, Action],
    top_n: int,
    ranking: Sequence[Key] = RANKING,
    numa_total_bytes: Mapping[str, int],
    min_utilization_ratio: float = 0.0,
) -> list[M]:
    """At most `top_n` pods for each acting NUMA node, ascending, then for the system; each pod once."""
    chosen: list[M] = []
    places: list[tuple[str | None, Action]] = [
        *sorted(numa_actions.items(), key=lambda item: numa_order(item[0])),
        (None, system_action),
    ]
    for numa, action in places:
        floor = 0.0 if numa is None else min_utilization_ratio * numa_total_bytes.get(numa, 0)
        able = [p for p in pods if p.evictable(action) and _at_least(p.usage(numa), floor)]
        first = sorted(able, key=lambda pod: _order(pod, numa, ranking))[:top_n]
        chosen += [pod for pod in first if pod not in chosen]
    return chosen


def _at_least(usage_bytes: int | None, floor_bytes: float) -> bool:
    """What is unknown cannot be said to be too little."""
    return usage_bytes is None or usage_bytes >= floor_bytes


def _order(pod: MemoryPod, numa: str | None, ranking: Sequence[Key]) -> tuple[float | str, ...]:
    """Sort key, first to go first: reclaimed, low priority, large use (unknown is the largest), then the name."""
    usage = pod.usage(numa)
    by: dict[Key, float] = {
        "qos": 0 if pod.qos == "reclaimed_cores" else 1,
        "priority": pod.priority,
        "usage": float("-inf") if usage is None else -usage,
    }
    return (*(by[key] for key in ranking), pod.namespace or "", pod.name)
