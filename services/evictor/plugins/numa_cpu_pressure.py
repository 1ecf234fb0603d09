"""Detects a NUMA node whose NUMA-bound shared pods use too much CPU, and evicts the pod that best closes the gap.

The rule is `numa_cpu_pressure` (docs/facts/katalyst-eviction.md#numa-cpu). Off by default, as in Katalyst. Evictions of
a pod's workload are counted on this node, from the ledger.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from services.evictor.core.detectors.cpu.numa import (
    CONDITION,
    SCOPE,
    NumaBoundPod,
    NumaCpuRule,
    NumaOverload,
    VictimChoice,
    overload,
)
from services.evictor.core.detectors.cpu.victim_scores import TOO_SMALL_SCORE, Filter, Scorer
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from services.evictor.core.plugin_kit.pod_figures import bound_numas, cpu_usage_cores
from services.evictor.core.plugin_kit.sample_ring import Rings
from shared.contracts.envelope import Reason
from shared.contracts.pod import Pod
from shared.core.cpus.cpuset import CpuSet


class NumaCpuPressureSettings(PluginSettings):
    """How much use is too much; the threshold is Katalyst's for an unknown CPU model."""

    enabled: bool = False
    period_s: Annotated[float, Field(gt=0, le=600)] = 15.0
    """Seconds between two samples in the ring; while the node rests, at most one per `metrics.rest_period_s`."""
    threshold_ratio: Annotated[float, Field(gt=0, le=1)] = 0.6
    """Greatest share of a NUMA node's CPUs that its NUMA-bound shared pods should use."""
    threshold_expand_factor: Annotated[float, Field(ge=1, le=2)] = 1.1
    """A sample counts if it is above the threshold times this; an eviction should bring the node below the threshold
    divided by it."""
    metric_ring_size: Annotated[int, Field(ge=1, le=1000)] = 4
    """Newest samples that are judged; in a ring that is not full, missing samples count as not above."""
    threshold_met_ratio: Annotated[float, Field(gt=0, le=1)] = 0.7
    """Share of the ring's samples that must be above."""
    filters: tuple[Filter, ...] = ("OwnerRef", "OverloadNuma")
    """Which pods are no candidates. OwnerRef: pods of owners of a skipped kind. OverloadNuma: pods on NUMA nodes
    that are not overloaded."""
    skipped_pod_kinds: tuple[str, ...] = ("DaemonSet",)
    """Kinds of owners whose pods the filter OwnerRef leaves out."""
    scorers: tuple[Scorer, ...] = ("Usage",)
    """Scores of a candidate, which are added. Usage: its use is close to the excess. WorkloadEvictionFrequency: its
    workload was rarely evicted."""

    @property
    def rule(self) -> NumaCpuRule:
        """Return the rule as the detector takes it."""
        return NumaCpuRule(
            self.threshold_ratio, self.threshold_expand_factor, self.metric_ring_size, self.threshold_met_ratio
        )


@dataclass(frozen=True, slots=True)
class NumaLoad(Pressure):
    """The pressure, and the pods of the fullest node with usage ratio and score, the best first."""

    ranked: tuple[tuple[Pod, float, int], ...] = field(default=())


def evaluate(rings: Rings, view: View, settings: NumaCpuPressureSettings) -> tuple[Rings, NumaLoad | Silence]:
    """Add the use to the rings when a period is over; judge the rings and the current use."""
    sizes = {n.numa: size for n in view.sample.numas if (size := len(CpuSet.parse(n.cpus))) > 0}
    numa_of = bound_numas(view)
    bound = [
        (r.pod, numa, usage / sizes[numa])
        for r in view.pods
        if r.pod.qos == "shared_cores" and (numa := numa_of.get(r.pod.uid)) in sizes and numa is not None
        if (usage := cpu_usage_cores(r)) is not None
    ]
    if not bound:
        return Rings(), "unknown"
    now = {f"numa/{numa}": sum(u for _, at, u in bound if at == numa) for numa in sizes}
    rings = rings.after(
        now | {pod.uid: usage for pod, _, usage in bound},
        view,
        period_s=settings.period_s,
        ring_size=settings.metric_ring_size,
    )
    found = overload(
        {str(numa): rings.of(f"numa/{numa}") for numa in sizes},
        [NumaBoundPod(pod.key, pod.owner_kind, numa, rings.of(pod.uid), pod) for pod, numa, _ in bound],
        settings.rule,
        VictimChoice(
            settings.filters,
            settings.skipped_pod_kinds,
            settings.scorers,
            {pod.key: view.evicted_by_window_h.get(pod.uid, {}) for pod, _, _ in bound},
        ),
    )
    # The ring describes the past: if use has fallen by now, no pod is evicted for it.
    if found is None or now[f"numa/{found.fullest}"] <= settings.rule.line:
        return rings, "calm"
    usage_of = {pod.uid: usage for pod, _, usage in bound}
    return rings, _pressure(found, now[f"numa/{found.fullest}"], settings.rule.line, usage_of)


def _pressure(found: NumaOverload[Pod], observed: float, line: float, usage_of: Mapping[str, float]) -> NumaLoad:
    return NumaLoad(
        hard=True,
        scope=SCOPE,
        observed=observed,
        threshold=line,
        condition=CONDITION if found.all_numas else None,
        why=Reason(
            rule="CPU usage of a NUMA node above its threshold",
            numbers={
                "numa": found.fullest,
                "usage_ratio": observed,
                "mean_ratio": found.mean_ratio,
                "threshold_ratio": line,
                "overloaded": ",".join(found.numas),
            },
        ),
        ranked=tuple((pod.of, usage_of[pod.of.uid], points) for pod, points in found.ranked),
    )


def rank(_view: View, pressure: NumaLoad, _settings: NumaCpuPressureSettings) -> tuple[Candidate, ...]:
    """Rank the highest score first. A pod that is too small to close the gap is left out, because its eviction would
    not help."""
    return tuple(
        Candidate(pod, Reason(rule="highest score first", numbers={"score": points, "usage_ratio": usage}), usage)
        for pod, usage, points in pressure.ranked
        if points > TOO_SMALL_SCORE
    )


PLUGIN = Plugin(
    name="numa-cpu-pressure-plugin", settings=NumaCpuPressureSettings, start=Rings, evaluate=evaluate, rank=rank
)
