"""Reclaimed pods ask for far more of one NUMA node than it has left to sublet: the largest request there goes.

The rule is `zone_resource_pressure` (docs/facts/katalyst-eviction.md#reclaimed-resources-by-zone). Off by default: it
needs offers by NUMA node, and the node's own (`reclaimed_overcommit`) covers machines that bind nobody.
"""

from dataclasses import dataclass, field

from services.evictor.core.detectors.reclaimed.zones import NUMA, Zone, ZonePod, first_crowded
from services.evictor.core.plugin import Candidate, Plugin, PluginSettings, Pressure, Silence, View
from services.evictor.core.plugin_kit.pod_figures import bound_numas
from shared.contracts.envelope import Reason
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, Pod
from shared.core.quantities import Multiple


class Settings(PluginSettings):
    """Thresholds as ratios of what a NUMA node offers."""

    enabled: bool = False
    eviction_threshold: dict[str, Multiple] = {RECLAIMED_CPU: 5.0, RECLAIMED_MEMORY: 5.0}
    """By resource name, either spelling."""
    skip_zero_resources: tuple[str, ...] = ()
    """Resources of which an offer of 0 is not judged."""


@dataclass(frozen=True, slots=True)
class Crowd(Pressure):
    """The pressure, and who asks for the scarce resource of that node, the largest request first."""

    asking: tuple[tuple[Pod, int], ...] = field(default=())


class _Bound(ZonePod):
    pod: Pod

    @property
    def order(self) -> str:
        """Names alone may be borne twice."""
        return self.pod.key


def evaluate(_memory: None, view: View, settings: Settings) -> tuple[None, Crowd | Silence]:
    """Compare the requests bound to each NUMA node with what it offers."""
    if not view.reclaimed_by_numa:
        return None, "unknown"
    zones = [
        Zone(type=NUMA, id=str(numa), allocatable=dict(offer), allocations=[])
        for numa, offer in view.reclaimed_by_numa.items()
    ]
    numa_of = bound_numas(view)
    pods = [_bound(r.pod, numa_of.get(r.pod.uid)) for r in view.pods if not r.pod.terminating]
    found = first_crowded(zones, pods, settings.eviction_threshold, settings.skip_zero_resources)
    if found is None:
        return None, "calm"
    return None, Crowd(
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
        asking=tuple((bound.pod, amount) for bound, amount in found.asking),
    )


def rank(_view: View, pressure: Crowd, _settings: Settings) -> tuple[Candidate, ...]:
    """Reclaimed pods of that node that ask for the scarce resource, the largest request first."""
    return tuple(
        Candidate(pod, Reason(rule="largest request of the NUMA node first", numbers={"request": amount}), amount)
        for pod, amount in pressure.asking
    )


def _bound(pod: Pod, numa: int | None) -> _Bound:
    amounts = {RECLAIMED_CPU: pod.cpu_request_millis, RECLAIMED_MEMORY: pod.memory_request_bytes}
    return _Bound(
        name=pod.name,
        qos=pod.qos,
        requests={resource: amount for resource, amount in amounts.items() if amount > 0},
        numa_bind_result=numa,
        pod=pod,
    )


PLUGIN = Plugin(
    name="reclaimed-numa-resource-pressure-eviction-plugin",
    settings=Settings,
    start=lambda: None,
    evaluate=evaluate,
    rank=rank,
)
