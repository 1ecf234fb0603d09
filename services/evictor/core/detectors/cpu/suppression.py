"""Reclaimed pods that get far less CPU than they asked for (docs/facts/katalyst-eviction.md#cpu-suppression)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from pydantic import Field

from services.evictor.core.plugin_kit.steps import InTime
from shared.core.decisions import Answer, Question, decision

Amount = Annotated[float, Field(ge=0)]


def supply_cores(pool_cpus: float, busy_cores: float, usage_cores: float, quota_cores: float | None) -> float:
    """CPU time that reclaimed pods can have: what is idle of their pool and what they use, within their quota."""
    supply = max(pool_cpus - busy_cores, 0.0) + usage_cores
    return supply if quota_cores is None else min(supply, quota_cores)


class SuppressedPod(Question):
    """A reclaimed pod, what it asks for, and how many times less it bears; null: it does not say."""

    name: str
    priority: int | None = None
    request_cores: Amount
    tolerance_ratio: float | None = None

    @property
    def order(self) -> tuple[float, float, str]:
        """Large requests first, low priority first (none is the lowest), then the name."""
        return -self.request_cores, float("-inf") if self.priority is None else self.priority, self.name

    @property
    def key(self) -> str:
        """How the pod is known from step to step."""
        return self.name


P = TypeVar("P", bound=SuppressedPod)


@dataclass(frozen=True, slots=True)
class Suppressed(Generic[P]):
    """A pod that has borne too little for too long: by how much, and how much it would bear."""

    pod: P
    ratio: float
    tolerance_ratio: float


@dataclass(frozen=True, slots=True)
class Bounds:
    """No pod bears more than `max_tolerance_ratio`; none goes before `min_duration_s` have passed."""

    max_tolerance_ratio: float = 5.0
    min_duration_s: float = 300.0


def step(
    since_s: Mapping[str, float], pods: Iterable[P], supply: float, t_s: float, bounds: Bounds
) -> tuple[dict[str, float], list[Suppressed[P]]]:
    """One moment: since when each pod has been suppressed beyond its tolerance, and who goes.

    A pod that goes takes its request with it, so that those after it are judged by what is left.
    """
    order = sorted(pods, key=lambda pod: pod.order)
    asked = sum(pod.request_cores for pod in order)
    after: dict[str, float] = {}
    going = []
    for pod in order:
        tolerance = bounds.max_tolerance_ratio
        if pod.tolerance_ratio is not None:
            tolerance = min(pod.tolerance_ratio, tolerance)
        ratio = _ratio(asked, supply)
        if ratio <= tolerance:
            continue
        after[pod.key] = since_s.get(pod.key, t_s)
        if t_s - after[pod.key] > bounds.min_duration_s:
            going.append(Suppressed(pod, ratio, tolerance))
            asked -= pod.request_cores
    return after, going


def _ratio(asked: float, supply: float) -> float:
    """How many times the supply is asked for."""
    if supply > 0:
        return asked / supply
    return float("inf") if asked > 0 else 0.0


class Moment(Question):
    """When the situation is looked at."""

    t_s: float


class SuppressionQuestion(Question):
    """The reclaimed pool, its pods, and when they are looked at."""

    reclaim_pool_cpus: Annotated[int, Field(ge=0)]
    cpu_usage_ratio: Amount
    """Of each of the pool's CPUs, by all that runs on them."""
    reclaim_usage_cores: Amount
    reclaim_quota_cores: Amount | None = None
    max_tolerance_ratio: float = 5.0
    min_duration_s: float = 300.0
    pods: list[SuppressedPod]
    steps: Annotated[list[Moment], InTime]


class SuppressionVerdict(Answer):
    """What one moment comes to."""

    supply_cores: float
    soft_victims: list[str]


class SuppressionAnswer(Answer):
    """One verdict for each step."""

    steps: list[SuppressionVerdict]


@decision("cpu_suppression", area="eviction_cpu_load", asks=SuppressionQuestion, answers=SuppressionAnswer)
def cpu_suppression(question: SuppressionQuestion) -> SuppressionAnswer:
    """Which reclaimed pods get too little CPU for too long?"""
    supply = supply_cores(
        question.reclaim_pool_cpus,
        question.reclaim_pool_cpus * question.cpu_usage_ratio,
        question.reclaim_usage_cores,
        question.reclaim_quota_cores,
    )
    bounds = Bounds(question.max_tolerance_ratio, question.min_duration_s)
    since_s: dict[str, float] = {}
    verdicts = []
    for moment in question.steps:
        since_s, going = step(since_s, question.pods, supply, moment.t_s, bounds)
        verdicts.append(SuppressionVerdict(supply_cores=supply, soft_victims=[found.pod.name for found in going]))
    return SuppressionAnswer(steps=verdicts)
