"""NUMA nodes whose NUMA-bound pods use too much CPU (docs/facts/katalyst-eviction.md#numa-cpu)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Generic, TypeVar

from pydantic import Field

from services.evictor.core.detectors.cpu.victim_scores import (
    FREQUENCY_LIMITS_PER_H,
    Filter,
    ScoredPod,
    Scorer,
    best_first,
    kept,
)
from services.evictor.core.detectors.memory.combined import numa_order
from services.evictor.core.detectors.reclaimed.overcommit import Met
from services.evictor.core.plugin_kit.steps import NumaKey, RingSize, Samples, mean, newest, often_enough
from shared.core.decisions import Answer, Question, decision

SCOPE = "cpu.usage.container"
CONDITION = "NumaCPUPressure/NoSchedule"


@dataclass(frozen=True, slots=True)
class Rule:
    """When a NUMA node is overloaded: so many of its samples above the threshold, widened by `expand_ratio`."""

    threshold_ratio: float
    expand_ratio: float = 1.1
    ring_size: int = 4
    met_ratio: float = 0.7

    @property
    def line(self) -> float:
        """Samples above this count."""
        return self.threshold_ratio * self.expand_ratio

    def overloaded(self, usage: Sequence[float]) -> bool:
        """Whether enough samples of a full ring are above the line."""
        ring = newest(usage, self.ring_size)
        return bool(ring) and often_enough(sum(u > self.line for u in ring), self.ring_size, self.met_ratio)

    def gap(self, usage: Sequence[float]) -> float:
        """What is to go so that the node is well below its threshold."""
        return (mean(newest(usage, self.ring_size)) or 0.0) - self.threshold_ratio / self.expand_ratio


@dataclass(frozen=True, slots=True)
class Choosing:
    """Who may be a victim, and which one is best."""

    filters: Collection[Filter] = ()
    skipped_owner_kinds: Collection[str] = ()
    scorers: Collection[Scorer] = ()
    evicted_by_window_h: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """How often a pod's workload was evicted, by the last word of the pod's ordering and window in hours."""


class NumaCpuPod(Question):
    """A pod, its NUMA node, and samples of its usage as a ratio of that node, oldest first."""

    name: str
    owner_kind: str | None = None
    numa: int | None = None
    usage: Samples

    @property
    def order(self) -> str:
        """The last word of every ordering."""
        return self.name


P = TypeVar("P", bound=NumaCpuPod)


@dataclass(frozen=True, slots=True)
class Overload(Generic[P]):
    """The overloaded nodes, the fullest of them, who is left after the filters, and who of them goes first there."""

    numas: tuple[str, ...]
    all_numas: bool
    fullest: str
    mean_ratio: float
    candidates: tuple[P, ...]
    ranked: tuple[tuple[P, int], ...]


class _Scored(ScoredPod, Generic[P]):
    of: P


def overload(
    numas: Mapping[str, Sequence[float]], pods: Iterable[P], rule: Rule, choosing: Choosing
) -> Overload[P] | None:
    """Judge all nodes; None: no node is overloaded."""
    over = sorted((numa for numa, usage in numas.items() if rule.overloaded(usage)), key=numa_order)
    if not over:
        return None
    means = {numa: mean(newest(numas[numa], rule.ring_size)) or 0.0 for numa in over}
    fullest = max(over, key=means.__getitem__)  # the first of equals
    candidates = tuple(pod for pod in sorted(pods, key=lambda pod: pod.order) if _stays(pod, over, choosing))
    there = [
        _Scored[P](
            name=pod.name,
            eviction_ratio_by_window_h=dict(choosing.evicted_by_window_h.get(pod.order, {})),
            usage_avg_ratio=mean(newest(pod.usage, rule.ring_size)),
            of=pod,
        )
        for pod in candidates
        if pod.numa is not None and str(pod.numa) == fullest
    ]
    ranked = best_first(there, choosing.scorers, rule.gap(numas[fullest]), FREQUENCY_LIMITS_PER_H)
    return Overload(
        tuple(over),
        len(over) == len(numas),
        fullest,
        means[fullest],
        candidates,
        tuple((scored.of, points) for scored, points in ranked),
    )


def _stays(pod: NumaCpuPod, over: Collection[str], choosing: Choosing) -> bool:
    there = None if pod.numa is None else str(pod.numa) in over
    return kept(choosing.filters, choosing.skipped_owner_kinds, pod.owner_kind, there)


class NumaUsage(Question):
    """Samples of usage over size of one NUMA node, oldest first."""

    usage: Samples


class NumaCpuQuestion(Question):
    """The rule, the nodes and the pods."""

    enabled: bool
    threshold_ratio: float
    expand_ratio: Annotated[float, Field(gt=0)] = 1.1
    ring_size: RingSize = 4
    met_ratio: float = 0.7
    numas: dict[NumaKey, NumaUsage]
    pods: list[NumaCpuPod]
    filters: list[Filter] | None = None
    skipped_owner_kinds: list[str] | None = None
    scorers: list[Scorer] | None = None
    top_n: int = 1
    grace_period_s: float = -1


class NumaCpuAnswer(Answer):
    """Whether a node is overloaded, which, and who goes first. The condition comes only where every node is."""

    met: Met
    scope: str | None = None
    condition: str | None = None
    overloaded_numas: list[int] = []
    candidates: list[str] = []
    victims: list[str] = []
    deletion_grace_s: float | None = None


@decision("numa_cpu_pressure", area="eviction_cpu_load", asks=NumaCpuQuestion, answers=NumaCpuAnswer)
def numa_cpu_pressure(question: NumaCpuQuestion) -> NumaCpuAnswer:
    """Which NUMA nodes use too much CPU, and who goes?"""
    if not question.enabled:
        return NumaCpuAnswer(met="NOT_MET")
    found = overload(
        {numa: of.usage for numa, of in question.numas.items()},
        question.pods,
        Rule(question.threshold_ratio, question.expand_ratio, question.ring_size, question.met_ratio),
        Choosing(question.filters or (), question.skipped_owner_kinds or (), question.scorers or ()),
    )
    if found is None:
        return NumaCpuAnswer(met="NOT_MET")
    victims = [pod.name for pod, _ in found.ranked[: max(0, question.top_n)]]
    return NumaCpuAnswer(
        met="HARD_MET",
        scope=SCOPE,
        condition=CONDITION if found.all_numas else None,
        overloaded_numas=[int(numa) for numa in found.numas],
        candidates=[pod.name for pod in found.candidates],
        victims=victims,
        deletion_grace_s=question.grace_period_s if victims and question.grace_period_s >= 0 else None,
    )
