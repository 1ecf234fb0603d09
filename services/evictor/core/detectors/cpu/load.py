"""More threads want to run in a pool than it has CPUs (docs/facts/katalyst-eviction.md#cpu-load)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from services.evictor.core.detectors.reclaimed.overcommit import Met
from services.evictor.core.plugin_kit.steps import RingSize, Samples, newest, often_enough
from shared.core.cgroups.layout import RECLAIM, RESERVE
from shared.core.decisions import Answer, Question, decision

SCOPE = "cpu.load.1min.container"
CONDITION = "CPUPressure/NoSchedule"
UNJUDGED_POOLS = frozenset({RECLAIM, "dedicated", RESERVE, "fallback"})
UNJUDGED_PREFIXES = ("system", "isolation")


@dataclass(frozen=True, slots=True)
class Rule:
    """The bounds as ratios of a pool's size, and how the advised sizes change them."""

    lower_ratio: float = 1.0
    upper_ratio: float = 1.8
    enable_reclaim: bool = False
    reserved_for_allocate_cores: float = 4.0
    allow_overlap: bool = False
    shared_pools_at_limit: bool = False

    @property
    def advised(self) -> bool:
        """Whether the size of a pool follows its need, so that load above size is how it should be."""
        return self.enable_reclaim and self.reserved_for_allocate_cores == 0 and not self.allow_overlap

    def bounds(self, pool_cpus: float, load: float) -> tuple[float, float]:
        """Load above the first is soft pressure, above the second hard; advised pools have it only at their limit."""
        if not self.advised:
            return pool_cpus * self.lower_ratio, pool_cpus * self.upper_ratio
        if self.shared_pools_at_limit:
            return 1.0, pool_cpus * self.upper_ratio
        return load + 1, (load + 1) * self.upper_ratio


def judged(pool: str) -> bool:
    """Whether a pool's load counts at all."""
    return pool not in UNJUDGED_POOLS and not pool.startswith(UNJUDGED_PREFIXES)


class LoadPod(Question):
    """A pod, its pool, and samples of its load over one minute, oldest first."""

    name: str
    pool: str
    loads: Samples

    @property
    def order(self) -> str:
        """The last word of every ordering."""
        return self.name


L = TypeVar("L", bound=LoadPod)


@dataclass(frozen=True, slots=True)
class Loaded(Generic[L]):
    """The pool that decides, its newest load and the bound that it is over, and its pods, the largest load first."""

    met: Met
    pool: str
    load: float
    bound: float
    pods: tuple[L, ...]


def busiest(
    pools: Mapping[str, float], pods: Iterable[L], rule: Rule, *, ring_size: int, met_ratio: float
) -> Loaded[L] | None:
    """The first pool by name that is hard, else the first that is soft; None: none is either."""
    soft: Loaded[L] | None = None
    members: dict[str, list[L]] = {}
    for pod in pods:
        members.setdefault(pod.pool, []).append(pod)
    for pool in sorted(filter(judged, pools.keys() & members.keys())):
        loads = pool_loads([pod.loads for pod in members[pool]], ring_size)
        bounds = [(load, *rule.bounds(pools[pool], load)) for load in loads]
        counted = [(load, lower, upper) for load, lower, upper in bounds if lower > 0]
        hard = often_enough(sum(load > upper for load, _, upper in counted), ring_size, met_ratio)
        over = often_enough(sum(load > lower for load, lower, _ in counted), ring_size, met_ratio)
        if counted and (hard or (over and soft is None)):
            newest_load, lower, upper = counted[-1]
            order = sorted(members[pool], key=lambda pod: (-sum(newest(pod.loads, ring_size)), pod.order))
            found = Loaded(
                "HARD_MET" if hard else "SOFT_MET", pool, newest_load, upper if hard else lower, tuple(order)
            )
            if hard:
                return found
            soft = found
    return soft


def pool_loads(loads: Sequence[Sequence[float]], ring_size: int) -> list[float]:
    """Sums over the pods, oldest first; the newest samples of all pods are of one moment."""
    rings = [newest(samples, ring_size) for samples in loads]
    longest = max(map(len, rings), default=0)
    return [sum(ring[-back] for ring in rings if len(ring) >= back) for back in range(longest, 0, -1)]


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
    rule = Rule(
        question.lower_ratio,
        question.upper_ratio,
        question.enable_reclaim,
        question.reserved_for_allocate_cores,
        question.allow_overlap,
        question.shared_pools_at_limit,
    )
    lower, upper = rule.bounds(question.pool_cpus, question.load)
    return BoundsAnswer(lower=lower, upper=upper)


class LoadPool(Question):
    """The size of one pool."""

    cpus: float


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
    rule = Rule(
        question.lower_bound_ratio,
        question.upper_bound_ratio,
        question.enable_reclaim,
        question.reserved_for_allocate_cores,
        shared_pools_at_limit=question.shared_pools_at_limit,
    )
    found = busiest(
        {name: pool.cpus for name, pool in question.pools.items()},
        question.pods,
        rule,
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
        victims=[pod.name for pod in going],
        deletion_grace_s=question.grace_period_s if going and question.grace_period_s >= 0 else None,
    )
