"""`isolate` gives noisy shared pods CPUs of their own (docs/facts/katalyst-cpu.md#isolation).

A container that has more runnable tasks than its size allows, several times in a row, moves its whole pod out of the
pool. The pod returns once it has been calm for long enough. A pool never loses more than a share of its pods and cores.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

_ROUNDING_ERROR = 1e-9


@dataclass(frozen=True, slots=True)
class IsolationRules:
    """When a container is noisy (tasks above `cpu_ratio` x its cores, or above its cores + `cpu_size`), and the limits.

    `lock_in_threshold` noisy rounds in a row isolate its pod, `lock_out_s` of calm free it. Of a pool at most
    `max_resource_ratio` of the cores and `max_pod_ratio` of the pods are isolated, never the last pod.
    """

    cpu_ratio: float = 1.5
    cpu_size: float = 2.0
    lock_in_threshold: int = 3
    lock_out_s: float = 120.0
    max_resource_ratio: float = 0.2
    max_pod_ratio: float = 0.5
    disabled_pools: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ContainerTasks:
    """One shared container: its size is the larger of limit and request; `runnable` is None where not measured."""

    pod: str
    container: str
    pool: str
    cores: float
    runnable: float | None

    @property
    def key(self) -> str:
        """pod/container."""
        return f"{self.pod}/{self.container}"


@dataclass(frozen=True, slots=True)
class NoiseRecord:
    """The history of one container: consecutive noisy rounds, and since when (seconds) it has been calm."""

    hits: int = 0
    calm_since_s: float | None = None


@dataclass(frozen=True, slots=True)
class Isolation:
    """Pods that have CPUs of their own, and what was seen of every container, by its key."""

    pods: frozenset[str] = frozenset()
    watches: Mapping[str, NoiseRecord] = field(default_factory=dict)


@dataclass(slots=True)
class _Pool:
    """How much of one pool may still be isolated."""

    cores: dict[str, float]
    rules: IsolationRules
    taken: set[str] = field(default_factory=set)

    def has_room(self, pod: str) -> bool:
        taken = math.fsum(self.cores[one] for one in self.taken)
        most_cores = math.fsum(self.cores.values()) * self.rules.max_resource_ratio
        count = len(self.cores)
        most_pods = min(count - 1, int(count * self.rules.max_pod_ratio + _ROUNDING_ERROR))
        return taken + self.cores[pod] <= most_cores + _ROUNDING_ERROR and len(self.taken) < most_pods


def isolate(rules: IsolationRules, runners: Iterable[ContainerTasks], before: Isolation, now_s: float) -> Isolation:
    """The isolated pods of this round. The limits hold for those that stay as well."""
    # In Katalyst's order (docs/facts/katalyst-cpu.md#isolation); a fixed one keeps the choice from round to round.
    runners = sorted(runners, key=lambda one: one.key, reverse=True)
    pools = {pool: _Pool(_cores_of(pool, runners), rules) for pool in {one.pool for one in runners}}
    watches: dict[str, NoiseRecord] = {}
    for one in runners:
        if one.pool in rules.disabled_pools:
            continue
        pool = pools[one.pool]
        was = one.pod in before.pods
        watch = _watched(rules, one, before.watches.get(one.key, NoiseRecord()), now_s)
        watches[one.key] = watch
        # Room is asked for those that stay as well: a pool that has become smaller takes pods back.
        if one.pod not in pool.taken and pool.has_room(one.pod) and _stands_out(rules, one, watch, was, now_s):
            pool.taken.add(one.pod)
    return Isolation(frozenset(pod for pool in pools.values() for pod in pool.taken), dict(sorted(watches.items())))


def _cores_of(pool: str, runners: Iterable[ContainerTasks]) -> dict[str, float]:
    cores: dict[str, float] = {}
    for one in runners:
        if one.pool == pool:
            cores[one.pod] = cores.get(one.pod, 0.0) + one.cores
    return cores


def _is_noisy(rules: IsolationRules, one: ContainerTasks) -> bool:
    tasks = one.runnable or 0.0
    return tasks > one.cores * rules.cpu_ratio or tasks > one.cores + rules.cpu_size


def _watched(rules: IsolationRules, one: ContainerTasks, before: NoiseRecord, now_s: float) -> NoiseRecord:
    """The record after this round; a container that was not measured keeps its record."""
    if one.runnable is None:
        return before
    if _is_noisy(rules, one):
        return NoiseRecord(hits=min(before.hits + 1, rules.lock_in_threshold))
    # Hits restart, because only consecutive rounds count.
    return NoiseRecord(calm_since_s=now_s if before.calm_since_s is None else before.calm_since_s)


def _stands_out(
    rules: IsolationRules, one: ContainerTasks, watch: NoiseRecord, was_isolated: bool, now_s: float
) -> bool:
    # Not measured: neither noisy nor calm, so it stays where it is.
    if one.runnable is None:
        return was_isolated
    if watch.calm_since_s is None:
        return was_isolated or watch.hits >= rules.lock_in_threshold
    return was_isolated and now_s < watch.calm_since_s + rules.lock_out_s
