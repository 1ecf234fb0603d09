"""Detects reclaimed pods that request far more of one NUMA node than it offers, and evicts the largest request
there.

The rule is `zone_resource_pressure` (docs/facts/katalyst-eviction.md#reclaimed-resources-by-zone). Off by default: it
needs offers by NUMA node, and `reclaimed_overcommit` covers machines that bind no pods to NUMA nodes.
"""

from dataclasses import dataclass, field

from services.evictor.core.detectors.reclaimed.overcommit import RequestingPod
from services.evictor.core.detectors.reclaimed.zones import OfferedZone, first_crowded
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from services.evictor.core.plugin_kit.pod_figures import bound_numas, reclaimed_requests
from shared.contracts.envelope import Reason
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, Pod
from shared.core.quantities import Multiple


class ReclaimedNumaOvercommitSettings(PluginSettings):
    """Thresholds as multiples of what a NUMA node offers."""

    enabled: bool = False
    eviction_threshold: dict[str, Multiple] = {RECLAIMED_CPU: 5.0, RECLAIMED_MEMORY: 5.0}
    """By resource name, either spelling."""
    skip_zero_resources: tuple[str, ...] = ()
    """Resources whose offer of 0 is ignored."""


@dataclass(frozen=True, slots=True)
class CrowdedNuma(Pressure):
    """The pressure, and the pods that request the scarce resource of that node, the largest request first."""

    asking: tuple[tuple[Pod, int], ...] = field(default=())


def evaluate(
    _memory: None, view: View, settings: ReclaimedNumaOvercommitSettings
) -> tuple[None, CrowdedNuma | Silence]:
    """Compare the requests bound to each NUMA node with its offer."""
    if not view.reclaimed_by_numa:
        return None, "unknown"
    # A pod on its way out takes its request with it.
    numa_of, staying = bound_numas(view), [r.pod for r in view.pods if not r.pod.terminating]
    zones = [
        OfferedZone(str(numa), offer, [_requesting(pod) for pod in staying if numa_of.get(pod.uid) == numa])
        for numa, offer in view.reclaimed_by_numa.items()
    ]
    found = first_crowded(zones, settings.eviction_threshold, settings.skip_zero_resources)
    if found is None:
        return None, "calm"
    return None, CrowdedNuma(
        hard=True,
        scope=found.scope,
        observed=found.observed,
        threshold=found.threshold,
        why=Reason(
            rule="requests above ratio times offer of the NUMA node",
            numbers={
                "requests": found.observed,
                "offered": found.offer.amount,
                "threshold": found.threshold,
                "numa": found.zone.id,
            },
        ),
        asking=tuple((pod.of, amount) for pod, amount in found.asking),
    )


def rank(_view: View, pressure: CrowdedNuma, _settings: ReclaimedNumaOvercommitSettings) -> tuple[Candidate, ...]:
    """Rank the reclaimed pods of that node that request the scarce resource, the largest request first."""
    return tuple(
        Candidate(pod, Reason(rule="largest request of the NUMA node first", numbers={"request": amount}), amount)
        for pod, amount in pressure.asking
    )


def _requesting(pod: Pod) -> RequestingPod[Pod]:
    return RequestingPod((pod.key,), pod.qos, reclaimed_requests(pod), pod)


PLUGIN = Plugin(
    name="reclaimed-numa-resource-pressure-eviction-plugin",
    settings=ReclaimedNumaOvercommitSettings,
    start=lambda: None,
    evaluate=evaluate,
    rank=rank,
)
