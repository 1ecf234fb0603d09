"""Detects NUMA nodes whose NUMA-bound pods use too much CPU (docs/facts/katalyst-eviction.md#numa-cpu)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from services.evictor.core.detectors.cpu.victim_scores import (
    FREQUENCY_LIMITS_PER_H,
    Filter,
    RatedPod,
    Scorer,
    best_first,
    passes,
)
from services.evictor.core.plugin_kit.numa_order import numa_order
from services.evictor.core.plugin_kit.sample_ring import mean, newest, often_enough

SCOPE = "cpu.usage.container"
CONDITION = "NumaCPUPressure/NoSchedule"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NumaCpuRule:
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
        """How much usage must go so that the node is well below its threshold."""
        return (mean(newest(usage, self.ring_size)) or 0.0) - self.threshold_ratio / self.expand_ratio


@dataclass(frozen=True, slots=True)
class VictimChoice:
    """Which pods may be victims, and which one is best."""

    filters: Collection[Filter] = ()
    skipped_owner_kinds: Collection[str] = ()
    scorers: Collection[Scorer] = ()
    evicted_by_window_h: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """How often a pod's workload was evicted, by the pod's name here and window in hours."""


@dataclass(frozen=True, slots=True)
class NumaBoundPod(Generic[T]):
    """A pod, its NUMA node, and samples of its usage as a ratio of that node, oldest first."""

    name: str
    """Orders pods of equal score."""
    owner_kind: str | None
    numa: int | None
    usage: Sequence[float]
    of: T
    """The caller's object."""


@dataclass(frozen=True, slots=True)
class NumaOverload(Generic[T]):
    """The overloaded nodes, the fullest of them, who passes the filters, and who of them goes first there."""

    numas: tuple[str, ...]
    all_numas: bool
    fullest: str
    mean_ratio: float
    candidates: tuple[NumaBoundPod[T], ...]
    ranked: tuple[tuple[NumaBoundPod[T], int], ...]


def overload(
    numas: Mapping[str, Sequence[float]], pods: Iterable[NumaBoundPod[T]], rule: NumaCpuRule, choice: VictimChoice
) -> NumaOverload[T] | None:
    """Judge all nodes; None: no node is overloaded."""
    over = sorted((numa for numa, usage in numas.items() if rule.overloaded(usage)), key=numa_order)
    if not over:
        return None
    means = {numa: mean(newest(numas[numa], rule.ring_size)) or 0.0 for numa in over}
    fullest = max(over, key=means.__getitem__)  # the first of equals
    candidates = tuple(pod for pod in sorted(pods, key=lambda pod: pod.name) if _passes(pod, over, choice))
    on_fullest = [
        RatedPod(
            pod.name,
            mean(newest(pod.usage, rule.ring_size)),
            pod,
            choice.evicted_by_window_h.get(pod.name, {}),
        )
        for pod in candidates
        if pod.numa is not None and str(pod.numa) == fullest
    ]
    ranked = best_first(on_fullest, choice.scorers, rule.gap(numas[fullest]), FREQUENCY_LIMITS_PER_H)
    return NumaOverload(
        tuple(over),
        len(over) == len(numas),
        fullest,
        means[fullest],
        candidates,
        tuple((rated.of, points) for rated, points in ranked),
    )


def _passes(pod: NumaBoundPod[T], over: Collection[str], choice: VictimChoice) -> bool:
    on_overloaded = None if pod.numa is None else str(pod.numa) in over
    return passes(choice.filters, choice.skipped_owner_kinds, pod.owner_kind, on_overloaded)
