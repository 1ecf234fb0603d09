"""The kinds `cpu_load_bounds`, `cpu_load_pressure` and `cpu_suppression`: load of pools, and starved reclaimed pods."""

from typing import Annotated

from pydantic import Field

from services.evictor.core.detectors.cpu.load import (
    CONDITION,
    SCOPE,
    LoadBounds,
    LoadedPod,
    bounds_by_size,
    busiest,
)
from services.evictor.core.detectors.cpu.suppression import CpuClaim, SuppressionBounds, supply_cores, suppressed
from services.evictor.core.detectors.verdict import Met
from services.evictor.whatif.fields import CoreAmount, InTime, RingSize, Samples
from shared.whatif.decisions import Answer, Question, decision


class BoundsQuestion(Question):
    """One pool at one moment."""

    pool_cpus: float
    load: float
    lower_ratio: float = 1.0
    upper_ratio: float = 1.8
    enable_reclaim: bool
    reserved_for_allocate_cores: float
    allow_overlap: bool = False
    shared_pools_at_limit: bool


class BoundsAnswer(Answer):
    """Soft above the first, hard above the second."""

    lower: float
    upper: float


@decision("cpu_load_bounds", area="eviction_cpu_load", asks=BoundsQuestion, answers=BoundsAnswer)
def cpu_load_bounds(question: BoundsQuestion) -> BoundsAnswer:
    """The two bounds of a pool's load."""
    bounds = _bounds(
        question.lower_ratio,
        question.upper_ratio,
        advised=question.enable_reclaim and question.reserved_for_allocate_cores == 0 and not question.allow_overlap,
        at_limit=question.shared_pools_at_limit,
    )
    lower, upper = bounds(question.pool_cpus, question.load)
    return BoundsAnswer(lower=lower, upper=upper)


def _bounds(lower_ratio: float, upper_ratio: float, *, advised: bool, at_limit: bool) -> LoadBounds:
    """The evictor's bounds, or Katalyst's for pools whose size follows their need: there load above size is meant."""
    if not advised:
        return bounds_by_size(lower_ratio, upper_ratio)
    if at_limit:
        return lambda pool_cpus, _load: (1.0, pool_cpus * upper_ratio)
    return lambda _pool_cpus, load: (load + 1, (load + 1) * upper_ratio)


class LoadPool(Question):
    """The size of one pool."""

    cpus: float


class LoadPod(Question):
    """A pod, its pool, and samples of its load over one minute, oldest first."""

    name: str
    pool: str
    loads: Samples


class LoadQuestion(Question):
    """The pools, their pods, and the rule."""

    ring_size: RingSize = 10
    lower_bound_ratio: float = 1.0
    upper_bound_ratio: float = 1.8
    threshold_met_ratio: float = 0.8
    pools: dict[str, LoadPool]
    pods: list[LoadPod]
    enable_reclaim: bool = False
    reserved_for_allocate_cores: float = 4.0
    shared_pools_at_limit: bool = False
    top_n: int = 1
    since_last_eviction_s: float | None = None
    cooldown_s: float = 300.0
    grace_period_s: float = -1


class LoadAnswer(Answer):
    """Whether a pool is over, and who goes first."""

    met: Met
    scope: str | None = None
    condition: str | None = None
    victims: list[str] = []
    deletion_grace_s: float | None = None


@decision("cpu_load_pressure", area="eviction_cpu_load", asks=LoadQuestion, answers=LoadAnswer)
def cpu_load_pressure(question: LoadQuestion) -> LoadAnswer:
    """Is the load of the shared pools too much for their size, and who goes?"""
    found = busiest(
        {name: pool.cpus for name, pool in question.pools.items()},
        (LoadedPod(pod.name, pod.pool, pod.loads, pod.name) for pod in question.pods),
        _bounds(
            question.lower_bound_ratio,
            question.upper_bound_ratio,
            advised=question.enable_reclaim and question.reserved_for_allocate_cores == 0,
            at_limit=question.shared_pools_at_limit,
        ),
        ring_size=question.ring_size,
        met_ratio=question.threshold_met_ratio,
    )
    if found is None:
        return LoadAnswer(met="NOT_MET")
    since = question.since_last_eviction_s
    cooling = since is not None and since < question.cooldown_s
    going = [] if cooling or found.met != "HARD_MET" else found.pods[: max(0, question.top_n)]
    return LoadAnswer(
        met=found.met,
        scope=SCOPE,
        condition=CONDITION,
        victims=[pod.of for pod in going],
        deletion_grace_s=question.grace_period_s if going and question.grace_period_s >= 0 else None,
    )


class SuppressedPod(Question):
    """A reclaimed pod, what it asks for, and how many times less it bears; null: it does not say."""

    name: str
    priority: int | None = None
    request_cores: CoreAmount
    tolerance_ratio: float | None = None


class Moment(Question):
    """When the situation is looked at."""

    t_s: float


class SuppressionQuestion(Question):
    """The reclaimed pool, its pods, and when they are looked at."""

    reclaim_pool_cpus: Annotated[int, Field(ge=0)]
    cpu_usage_ratio: CoreAmount
    """Of each of the pool's CPUs, by all that runs on them."""
    reclaim_usage_cores: CoreAmount
    reclaim_quota_cores: CoreAmount | None = None
    max_tolerance_ratio: float = 5.0
    min_duration_s: float = 300.0
    pods: list[SuppressedPod]
    steps: Annotated[list[Moment], InTime]


class SuppressionVerdict(Answer):
    """The result of one moment."""

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
    bounds = SuppressionBounds(question.max_tolerance_ratio, question.min_duration_s)
    claims = [CpuClaim(p.name, p.name, p.priority, p.request_cores, p.tolerance_ratio, p.name) for p in question.pods]
    since_s: dict[str, float] = {}
    verdicts = []
    for moment in question.steps:
        since_s, going = suppressed(since_s, claims, supply, moment.t_s, bounds)
        verdicts.append(SuppressionVerdict(supply_cores=supply, soft_victims=[found.claim.of for found in going]))
    return SuppressionAnswer(steps=verdicts)
