"""Detects reclaimed pods that get far less CPU than they request for too long: soft, so that they run elsewhere.

The rule is `cpu_suppression` (docs/facts/katalyst-eviction.md#cpu-suppression). Off by default, as in Katalyst.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from services.evictor.core.detectors.cpu.suppression import (
    CpuClaim,
    SuppressedClaim,
    SuppressionBounds,
    supply_cores,
    suppressed,
)
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from shared.contracts.envelope import Reason
from shared.contracts.pod import Pod
from shared.core.cgroups.layout import RECLAIM
from shared.core.cpus.cpuset import CpuSet
from shared.core.pods.qos_annotations import pod_qos

SCOPE = "cpu.suppression.reclaimed"


class CpuSuppressionSettings(PluginSettings):
    """How much suppression is too much, and for how long."""

    enabled: bool = False
    max_suppression_tolerance_ratio: Annotated[float, Field(gt=0, le=1000)] = 5.0
    """Greatest tolerance of any pod, in requests per available core, whatever its annotation says."""
    min_suppression_tolerance_duration_s: Annotated[float, Field(ge=0, le=86400)] = 300.0
    """How long a pod must have been suppressed beyond its tolerance before it is a candidate."""
    longest_gap_s: Annotated[float, Field(gt=0, le=3600)] = 30.0
    """Two samples further apart restart every clock."""

    @property
    def bounds(self) -> SuppressionBounds:
        """Return the bounds as the detector takes them."""
        return SuppressionBounds(self.max_suppression_tolerance_ratio, self.min_suppression_tolerance_duration_s)


@dataclass(frozen=True, slots=True)
class SuppressionMemory:
    """The start of each pod's suppression, by UID, and the time of the last check."""

    since_s: Mapping[str, float] = field(default_factory=dict)
    seen_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class Suppression(Pressure):
    """The pressure, and the pods that have been suppressed for too long."""

    going: tuple[SuppressedClaim[Pod], ...] = field(default=())


def evaluate(
    memory: SuppressionMemory, view: View, settings: CpuSuppressionSettings
) -> tuple[SuppressionMemory, Suppression | Silence]:
    """Compare the requests of reclaimed pods with what they can have."""
    supply = _supply(view)
    if supply is None:
        return SuppressionMemory(), "unknown"
    # The state of the pods in between is unknown: a gap must not count as suppression.
    if memory.seen_at_s is not None and view.t_s - memory.seen_at_s > settings.longest_gap_s:
        memory = SuppressionMemory()
    claims = [_claim(r.pod) for r in view.pods if r.pod.qos == "reclaimed_cores" and not r.pod.terminating]
    since_s, going = suppressed(memory.since_s, claims, supply, view.t_s, settings.bounds)
    memory = SuppressionMemory(since_s, view.t_s)
    if not going:
        return memory, "calm"
    worst = going[0]
    asked = sum(claim.request_cores for claim in claims)
    return memory, Suppression(
        hard=False,
        scope=SCOPE,
        observed=asked,
        threshold=worst.tolerance_ratio * supply,
        why=Reason(
            rule="requests above tolerance times supply for too long",
            numbers={
                "supply_cores": supply,
                "requests_cores": asked,
                "suppression_ratio": worst.ratio,
                "tolerance_ratio": worst.tolerance_ratio,
            },
        ),
        going=tuple(going),
    )


def rank(_view: View, pressure: Suppression, _settings: CpuSuppressionSettings) -> tuple[Candidate, ...]:
    """Rank large requests first, low priority first."""
    return tuple(
        Candidate(
            found.claim.of,
            Reason(
                rule=f"current pool suppression rate {found.ratio:.2f} is over than the pod suppression tolerance "
                f"rate {found.tolerance_ratio:.2f}",
                numbers={"request_cores": found.claim.request_cores},
            ),
            found.claim.request_cores,
        )
        for found in pressure.going
    )


def _supply(view: View) -> float | None:
    """Return the available cores; None if the pool, the use of its CPUs or its own use is unknown."""
    pool = view.allocation.pool(RECLAIM) if view.allocation is not None else None
    reading, usage = view.sample.pool(RECLAIM), view.sample.node_reading.cpus
    if pool is None or reading is None or reading.cpu_usage_cores is None or usage is None:
        return None
    percent, cpus = usage.by_cpu(), tuple(CpuSet.parse(pool.cpus))
    # A CPU without a figure would count as idle, and hide the suppression.
    if any(cpu not in percent for cpu in cpus):
        return None
    busy = sum(percent[cpu] for cpu in cpus) / 100
    return supply_cores(len(cpus), busy, reading.cpu_usage_cores, reading.cpu_limit_cores)


def _claim(pod: Pod) -> CpuClaim[Pod]:
    return CpuClaim(
        key=pod.uid,  # a successor of the same name starts anew
        name=pod.key,
        priority=pod.priority,
        request_cores=pod.cpu_request_millis / 1000,
        tolerance_ratio=pod_qos(pod.annotations).suppression_tolerance_ratio,
        of=pod,
    )


PLUGIN = Plugin(
    name="cpu-pressure-suppression-plugin",
    settings=CpuSuppressionSettings,
    start=SuppressionMemory,
    evaluate=evaluate,
    rank=rank,
)
