"""Detects that reclaimed pods ask for too much of one zone.

Facts: docs/facts/katalyst-eviction.md#reclaimed-resources-by-zone.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from services.evictor.core.detectors.reclaimed.overcommit import (
    OfferedResource,
    RequestingPod,
    first_overcommit,
    largest_first,
)
from services.evictor.core.plugin_kit.numa_order import numa_order

NUMA = "Numa"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OfferedZone(Generic[T]):
    """A NUMA node or a device: what reclaimed pods may have of it, and what each pod holds of it."""

    id: str
    allocatable: Mapping[str, int]
    pods: Sequence[RequestingPod[T]]
    type: str = NUMA

    @property
    def order(self) -> tuple[tuple[int, str], str]:
        """Ids ascending as numbers, then by type."""
        return numa_order(self.id), self.type


@dataclass(frozen=True, slots=True)
class CrowdedZone(Generic[T]):
    """One resource of a zone that is requested beyond its threshold, and its requesters, the largest first."""

    zone: OfferedZone[T]
    offer: OfferedResource
    observed: int
    threshold: float
    asking: tuple[tuple[RequestingPod[T], int], ...]

    @property
    def scope(self) -> str:
        """Return the scope as it appears in events."""
        return f"zone{self.zone.id}|{self.offer.spelled}"


def first_crowded(
    zones: Sequence[OfferedZone[T]], thresholds: Mapping[str, float], skip_zero: Collection[str] = ()
) -> CrowdedZone[T] | None:
    """Return the first zone, ascending, and its first resource by name with requests above ratio times the offer.

    A zone that offers nothing at all has not been reported: then no zone is judged.
    """
    if any(not zone.allocatable for zone in zones):
        return None
    for zone in sorted(zones, key=lambda zone: zone.order):
        found = first_overcommit(zone.allocatable, zone.pods, thresholds, skip_zero)
        if found is not None:
            asking = tuple((pod, pod.request(found.resource)) for pod in largest_first(zone.pods, found.resource))
            return CrowdedZone(zone, found.offer, found.observed, found.threshold, asking)
    return None
