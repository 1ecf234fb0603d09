"""Do the reclaimed pods ask for too much of one zone? (docs/facts/katalyst-eviction.md#reclaimed-resources-by-zone)"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from services.evictor.core.detectors.memory.combined import numa_order
from services.evictor.core.detectors.reclaimed.overcommit import (
    Met,
    Offer,
    Ratio,
    offers_by_resource,
    ratios_by_resource,
)
from shared.contracts.pod import QosClass, canonical_resource
from shared.core.decisions import Answer, Question, decision

NUMA = "Numa"


class ZoneShare(Question):
    """What one pod holds of a zone."""

    pod: str
    requests: dict[str, int]


class Zone(Question):
    """A NUMA node or a device, with what reclaimed pods may have of it and what they have."""

    type: str
    id: str
    allocatable: dict[str, int]
    allocations: list[ZoneShare]

    @property
    def order(self) -> tuple[tuple[int, str], str]:
        """Ids ascending as numbers, then by type."""
        return numa_order(self.id), self.type


class ZonePod(Question):
    """A pod, what it asks for, and the NUMA node that it is bound to."""

    name: str
    qos: QosClass
    requests: dict[str, int]
    numa_bind_result: int | None = None

    @property
    def order(self) -> str:
        """The last word of every ordering."""
        return self.name


class ZoneQuestion(Question):
    """The zones, thresholds as ratios of what each offers, and the pods."""

    zones: list[Zone]
    hard_thresholds: dict[str, Ratio]
    skip_zero_resources: list[str] | None = None
    pods: list[ZonePod]
    top_n: int = 1


class ZoneAnswer(Answer):
    """Whether a threshold is met in any zone, on which numbers, and who goes first."""

    met: Met
    scope: str | None = None
    observed: float | None = None
    threshold: float | None = None
    victims: list[str] = []


P = TypeVar("P", bound=ZonePod)


@dataclass(frozen=True, slots=True)
class Crowded(Generic[P]):
    """One resource of one zone of which too much is asked, and who asks, the largest request first."""

    zone: Zone
    offer: Offer
    observed: int
    threshold: float
    asking: tuple[tuple[P, int], ...]

    @property
    def scope(self) -> str:
        """As it stands in events."""
        return f"zone{self.zone.id}|{self.offer.spelled}"


@decision("zone_resource_pressure", area="eviction_reclaimed", asks=ZoneQuestion, answers=ZoneAnswer)
def zone_resource_pressure(question: ZoneQuestion) -> ZoneAnswer:
    """Do the reclaimed pods ask for too much of what is left in one zone, and who goes?"""
    found = first_crowded(question.zones, question.pods, question.hard_thresholds, question.skip_zero_resources or ())
    if found is None:
        return ZoneAnswer(met="NOT_MET")
    return ZoneAnswer(
        met="HARD_MET",
        scope=found.scope,
        observed=found.observed,
        threshold=found.threshold,
        victims=[pod.name for pod, _ in found.asking[: max(0, question.top_n)]],
    )


def first_crowded(
    zones: list[Zone], pods: list[P], thresholds: Mapping[str, float], skip_zero: list[str] | tuple[str, ...]
) -> Crowded[P] | None:
    """The first zone, ascending, and of it the first resource by name, of which more than ratio times offer is asked.

    A zone that offers nothing at all has not been reported: then no zone is judged.
    """
    if any(not zone.allocatable for zone in zones):
        return None
    reclaimed = [pod for pod in pods if pod.qos == "reclaimed_cores"]
    ratios, skipped = ratios_by_resource(thresholds), {canonical_resource(name) for name in skip_zero}
    for zone in sorted(zones, key=lambda zone: zone.order):
        offers = offers_by_resource(zone.allocatable)
        for resource in sorted(offers.keys() & ratios.keys()):
            offer, threshold = offers[resource], ratios[resource] * offers[resource].amount
            if offer.amount <= 0 and resource in skipped:
                continue
            asking = _asking(zone, reclaimed, resource)
            observed = sum(amount for _, amount in asking)
            if observed > threshold:
                return Crowded(zone, offer, observed, threshold, asking)
    return None


def _asking(zone: Zone, pods: list[P], resource: str) -> tuple[tuple[P, int], ...]:
    asked = ((pod, _amount(_share(zone, pod), resource)) for pod in pods)
    return tuple(sorted(((p, a) for p, a in asked if a > 0), key=lambda item: (-item[1], item[0].order)))


def _share(zone: Zone, pod: ZonePod) -> Mapping[str, int]:
    """What a pod holds of a zone; without an entry there, all of its requests if it is bound to that NUMA node."""
    held: dict[str, int] = {}
    for share in zone.allocations:
        if share.pod == pod.name:
            for name, amount in share.requests.items():
                held[name] = held.get(name, 0) + amount
    bound = zone.type == NUMA and pod.numa_bind_result is not None and str(pod.numa_bind_result) == zone.id
    return held or (pod.requests if bound else {})


def _amount(requests: Mapping[str, int], resource: str) -> int:
    return sum(amount for name, amount in requests.items() if canonical_resource(name) == resource)
