"""Detects a NUMA node that spends much of its time in the kernel: soft taints, hard evicts the largest contributor.

The rules are `numa_sys_cpu_stats` and `numa_sys_cpu_pressure` (docs/facts/katalyst-eviction.md#numa-system-cpu).
Off by default, as in Katalyst. Without the containers' system time nothing is judged.
"""

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from services.evictor.core.detectors.cpu.numa_sys import (
    CONDITION,
    SCOPE,
    NumaSysRule,
    SysTimePod,
    most_system_time,
    stats,
)
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from services.evictor.core.plugin_kit.pod_figures import bound_numas, cpu_sys_cores, cpu_usage_cores
from services.evictor.core.plugin_kit.sample_ring import Rings
from shared.contracts.envelope import Reason
from shared.contracts.pod import Pod
from shared.core.cpus.cpuset import CpuSet


class NumaSysCpuPressureSettings(PluginSettings):
    """Greatest share of a node's time spent in the kernel."""

    enabled: bool = False
    grace_period_s: Annotated[float, Field(ge=-1, le=3600)] = 60
    period_s: Annotated[float, Field(gt=0, le=600)] = 10.0
    """Seconds between two samples in the rings; while the node rests, at most one per `metrics.rest_period_s`."""
    metric_ring_size: Annotated[int, Field(ge=1, le=1000)] = 4
    """Newest samples that are judged; in a ring that is not full, missing samples count as not above."""
    threshold_met_ratio: Annotated[float, Field(gt=0, le=1)] = 0.7
    """Share of the ring's samples that must be above."""
    cpu_soft_ratio: Annotated[float, Field(gt=0, le=1)] = 0.4
    """Soft pressure requires that pods use more than this share of a NUMA node's CPUs."""
    cpu_hard_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Hard pressure requires that pods use more than this share of a NUMA node's CPUs."""
    sys_soft_ratio: Annotated[float, Field(gt=0, le=1)] = 0.4
    """Soft pressure also requires that more than this share of their use is kernel time."""
    sys_hard_ratio: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Hard pressure also requires that more than this share of their use is kernel time."""
    pod_min_sys_ratio: Annotated[float, Field(ge=0, le=1)] = 0.3
    """A pod with a smaller share of kernel time is no victim."""

    @property
    def rule(self) -> NumaSysRule:
        """Return the rule as the detector takes it."""
        return NumaSysRule(
            self.cpu_soft_ratio,
            self.cpu_hard_ratio,
            self.sys_soft_ratio,
            self.sys_hard_ratio,
            self.metric_ring_size,
            self.threshold_met_ratio,
        )


@dataclass(frozen=True, slots=True)
class SystemTime(Pressure):
    """The pressure, and the pods of that node, the most kernel time first."""

    ranked: tuple[tuple[Pod, float, float], ...] = field(default=())


def evaluate(rings: Rings, view: View, settings: NumaSysCpuPressureSettings) -> tuple[Rings, SystemTime | Silence]:
    """Add use and kernel time to the rings when a period is over; judge the rings and the current figures."""
    sizes = {n.numa: size for n in view.sample.numas if (size := len(CpuSet.parse(n.cpus))) > 0}
    numa_of = bound_numas(view)
    pods = [
        SysTimePod(r.pod.key, numa_of.get(r.pod.uid), cpu, sys, r.pod)
        for r in view.pods
        if (cpu := cpu_usage_cores(r)) is not None and (sys := cpu_sys_cores(r)) is not None
    ]
    used = {numa: sum(p.cpu_cores for p in pods if p.numa == numa) / size for numa, size in sizes.items()}
    system = {numa: sum(p.sys_cores for p in pods if p.numa == numa) / size for numa, size in sizes.items()}
    if not any(pod.numa in sizes for pod in pods):
        return Rings(), "unknown"
    rings = rings.after(
        {f"cpu/{n}": u for n, u in used.items()} | {f"sys/{n}": s for n, s in system.items()},
        view,
        period_s=settings.period_s,
        ring_size=settings.metric_ring_size,
    )
    found = stats({str(n): (rings.of(f"cpu/{n}"), rings.of(f"sys/{n}")) for n in sizes}, settings.rule)
    if not found:
        return rings, "calm"
    worst = found[0]
    hard = worst.met == "HARD_MET"
    cpu_line, threshold = settings.cpu_soft_ratio, settings.sys_soft_ratio
    if hard:
        cpu_line, threshold = settings.cpu_hard_ratio, settings.sys_hard_ratio
    cpu, now = used[worst.numa], system[worst.numa]
    # The rings may still be full of a pressure that has just ended.
    if cpu <= cpu_line or now / cpu <= threshold:
        return rings, "calm"
    order = most_system_time(pods, worst.numa, settings.pod_min_sys_ratio) if hard else []
    numbers = {"numa": worst.numa, "cpu_ratio": cpu, "sys_ratio": now, "threshold_ratio": threshold}
    return rings, SystemTime(
        hard=hard,
        scope=SCOPE,
        observed=worst.sys_ratio,
        threshold=threshold,
        condition=CONDITION,
        why=Reason(rule="system time of a NUMA node above its share", numbers=numbers),
        ranked=tuple((pod.of, pod.sys_cores, pod.cpu_cores) for pod in order),
    )


def rank(_view: View, pressure: SystemTime, _settings: NumaSysCpuPressureSettings) -> tuple[Candidate, ...]:
    """Hard: the pods of that node, the most kernel time first. Soft: none."""
    return tuple(
        Candidate(pod, Reason(rule="most system time first", numbers={"sys_cores": sys, "cpu_cores": cpu}))
        for pod, sys, cpu in pressure.ranked
    )


PLUGIN = Plugin(
    name="numa-sys-cpu-pressure-plugin", settings=NumaSysCpuPressureSettings, start=Rings, evaluate=evaluate, rank=rank
)
