"""Detects more runnable threads in a shared pool than it has CPUs: soft pressure taints, hard evicts the largest
load.

The rule is `cpu_load_pressure` (docs/facts/katalyst-eviction.md#cpu-load); names and scope follow the tutorial. The
plugin is on by default although the agent's own flag is off: in the tutorial the chart sets
`enable-cpu-pressure-eviction: true`, so load eviction works without a further step.
"""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from services.evictor.core.detectors.cpu.load import (
    CONDITION,
    SCOPE,
    LoadBounds,
    LoadedPod,
    bounds_by_size,
    busiest,
    judged,
)
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from services.evictor.core.plugin_kit.pod_figures import load1
from services.evictor.core.plugin_kit.sample_ring import Rings
from shared.contracts.envelope import Reason
from shared.contracts.pod import Pod
from shared.core.cpus.cpuset import CpuSet


class CpuLoadSettings(PluginSettings):
    """How much load is too much, and for how long."""

    enabled: bool = True
    """Evaluates the plugin. On substrate host it is off unless the settings enable it, because there a tenant is its
    owner's own work."""
    cooling_s: Annotated[float, Field(ge=0, le=3600)] = 300.0
    period_s: Annotated[float, Field(gt=0, le=600)] = 10.0
    """Seconds between two samples in the ring; Katalyst takes one every 30 s. While the node rests, at most one per
    `metrics.rest_period_s`."""
    metric_ring_size: Annotated[int, Field(ge=1, le=1000)] = 10
    """Newest samples that are judged; in a ring that is not full, missing samples count as not above."""
    load_lower_bound_ratio: Annotated[float, Field(gt=0)] = 1.0
    """Load above this times the pool's CPUs is soft pressure."""
    load_upper_bound_ratio: Annotated[float, Field(gt=0)] = 1.8
    """Load above this times the pool's CPUs is hard pressure."""
    load_threshold_met_ratio: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Share of the ring's samples that must be above."""

    @property
    def bounds(self) -> LoadBounds:
        """Return the bounds as the detector takes them."""
        return bounds_by_size(self.load_lower_bound_ratio, self.load_upper_bound_ratio)


@dataclass(frozen=True, slots=True)
class OverloadedPoolPressure(Pressure):
    """The pressure, and the pods of the overloaded pool, the largest load first."""

    ranked: tuple[tuple[Pod, float], ...] = field(default=())


def evaluate(rings: Rings, view: View, settings: CpuLoadSettings) -> tuple[Rings, OverloadedPoolPressure | Silence]:
    """Add the loads to the rings when a period is over; judge the rings and the current loads."""
    loads = {r.pod.uid: (r, load) for r in view.pods if (load := load1(r)) is not None}
    # The rings go too: without knowing the pools, samples of before could be counted for another pool.
    if view.allocation is None or not loads:
        return Rings(), "unknown"
    pools = {p.pool: len(CpuSet.parse(p.cpus)) for p in view.allocation.pools if judged(p.pool)}
    pool_of = {p.uid: p.pool for p in view.allocation.pods}
    rings = rings.after(
        {uid: load for uid, (_, load) in loads.items()},
        view,
        period_s=settings.period_s,
        ring_size=settings.metric_ring_size,
    )
    pods = [
        LoadedPod(r.pod.key, pool_of[uid], rings.of(uid), r.pod)
        for uid, (r, _) in loads.items()
        if pool_of.get(uid) in pools
    ]
    found = busiest(
        pools, pods, settings.bounds, ring_size=settings.metric_ring_size, met_ratio=settings.load_threshold_met_ratio
    )
    if found is None:
        return rings, "calm"
    ranked = tuple((pod.of, loads[pod.of.uid][1]) for pod in found.pods)
    # The rings say "often enough"; an eviction needs the pressure of this moment as well.
    if sum(load for _, load in ranked) <= found.bound:
        return rings, "calm"
    return rings, _pressure(found.pool, pools[found.pool], found.bound, ranked, hard=found.met == "HARD_MET")


def near(view: View, settings: CpuLoadSettings) -> OverloadedPoolPressure | None:
    """Compare the current load of the most loaded pool with the hard bound."""
    if view.allocation is None:
        return None
    pool_of = {p.uid: p.pool for p in view.allocation.pods}
    found = []
    for pool in view.allocation.pools:
        pods = [
            (r.pod, load) for r in view.pods if pool_of.get(r.pod.uid) == pool.pool and (load := load1(r)) is not None
        ]
        cpus = len(CpuSet.parse(pool.cpus))
        if judged(pool.pool) and pods and cpus:
            pods.sort(key=lambda item: (-item[1], item[0].key))
            _, hard_bound = settings.bounds(cpus, sum(load for _, load in pods))
            found.append(_pressure(pool.pool, cpus, hard_bound, tuple(pods), hard=True))
    return max(found, key=lambda p: (p.observed / p.threshold, str(p.why.numbers["pool"])), default=None)


def _pressure(
    pool: str, cpus: int, bound: float, ranked: tuple[tuple[Pod, float], ...], *, hard: bool
) -> OverloadedPoolPressure:
    load = sum(load for _, load in ranked)
    return OverloadedPoolPressure(
        hard=hard,
        scope=SCOPE,
        observed=load,
        threshold=bound,
        condition=CONDITION,
        why=Reason(
            rule="load of a pool above ratio times its CPUs",
            numbers={"pool": pool, "load": load, "bound": bound, "cpus": cpus},
        ),
        ranked=ranked,
    )


def rank(_view: View, pressure: OverloadedPoolPressure, _settings: CpuLoadSettings) -> tuple[Candidate, ...]:
    """Hard: the pods of the pool, the largest load first. Soft: none; the condition keeps new pods away."""
    if not pressure.hard:
        return ()
    return tuple(
        Candidate(pod, Reason(rule="largest load first", numbers={"load": load}), load) for pod, load in pressure.ranked
    )


PLUGIN = Plugin(
    name="cpu-pressure-eviction-plugin", settings=CpuLoadSettings, start=Rings, evaluate=evaluate, rank=rank, near=near
)
