"""Detects pools with more threads that want to run than CPUs (docs/facts/katalyst-eviction.md#cpu-load)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from services.evictor.core.detectors.verdict import Met
from services.evictor.core.plugin_kit.sample_ring import newest, often_enough
from shared.core.cgroups.layout import RECLAIM, RESERVE

SCOPE = "cpu.load.1min.container"
CONDITION = "CPUPressure/NoSchedule"
UNJUDGED_POOLS = frozenset({RECLAIM, "dedicated", RESERVE, "fallback"})
UNJUDGED_PREFIXES = ("system", "isolation")

LoadBounds = Callable[[float, float], tuple[float, float]]
"""From a pool's CPUs and its load: load above the first bound is soft pressure, above the second hard."""
T = TypeVar("T")


def bounds_by_size(lower_ratio: float, upper_ratio: float) -> LoadBounds:
    """Bounds as ratios of the pool's size."""

    def bounds(pool_cpus: float, _load: float) -> tuple[float, float]:
        return pool_cpus * lower_ratio, pool_cpus * upper_ratio

    return bounds


def judged(pool: str) -> bool:
    """Whether a pool's load counts at all."""
    return pool not in UNJUDGED_POOLS and not pool.startswith(UNJUDGED_PREFIXES)


@dataclass(frozen=True, slots=True)
class LoadedPod(Generic[T]):
    """A pod of a pool with samples of its load over one minute, oldest first."""

    name: str
    """Orders pods of equal load."""
    pool: str
    loads: Sequence[float]
    of: T
    """The caller's object."""


@dataclass(frozen=True, slots=True)
class OverloadedPool(Generic[T]):
    """The pool that decides, its newest load and the bound that it exceeds, and its pods, the largest load first."""

    met: Met
    pool: str
    load: float
    bound: float
    pods: tuple[LoadedPod[T], ...]


def busiest(
    pools: Mapping[str, float], pods: Iterable[LoadedPod[T]], bounds: LoadBounds, *, ring_size: int, met_ratio: float
) -> OverloadedPool[T] | None:
    """Return the first pool by name with hard pressure, otherwise the first with soft pressure; None without
    pressure."""
    soft: OverloadedPool[T] | None = None
    members: dict[str, list[LoadedPod[T]]] = {}
    for pod in pods:
        members.setdefault(pod.pool, []).append(pod)
    for pool in sorted(filter(judged, pools.keys() & members.keys())):
        loads = pool_loads([pod.loads for pod in members[pool]], ring_size)
        bounded = [(load, *bounds(pools[pool], load)) for load in loads]
        counted = [(load, lower, upper) for load, lower, upper in bounded if lower > 0]
        hard = often_enough(sum(load > upper for load, _, upper in counted), ring_size, met_ratio)
        over = often_enough(sum(load > lower for load, lower, _ in counted), ring_size, met_ratio)
        if counted and (hard or (over and soft is None)):
            newest_load, lower, upper = counted[-1]
            order = sorted(members[pool], key=lambda pod: (-sum(newest(pod.loads, ring_size)), pod.name))
            met: Met = "HARD_MET" if hard else "SOFT_MET"
            found = OverloadedPool(met, pool, newest_load, upper if hard else lower, tuple(order))
            if hard:
                return found
            soft = found
    return soft


def pool_loads(loads: Sequence[Sequence[float]], ring_size: int) -> list[float]:
    """Sums over the pods, oldest first; the newest samples of all pods are of one moment."""
    rings = [newest(samples, ring_size) for samples in loads]
    longest = max(map(len, rings), default=0)
    return [sum(ring[-back] for ring in rings if len(ring) >= back) for back in range(longest, 0, -1)]
