"""Detects that reclaimed pods request too much of what is offered.

Facts: docs/facts/katalyst-eviction.md#reclaimed-resources.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from shared.contracts.pod import QosClass, canonical_resource

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RequestingPod(Generic[T]):
    """A pod with its requests by resource name: milli for CPU, bytes for memory."""

    order: tuple[str, ...]
    """Orders pods of equal requests."""
    qos: QosClass
    requests: Mapping[str, int]
    of: T
    """The caller's object."""

    def request(self, resource: str) -> int:
        """Return its request for a resource (current name), under both spellings together."""
        return sum(v for k, v in self.requests.items() if canonical_resource(k) == resource)


@dataclass(frozen=True, slots=True)
class OfferedResource:
    """One offered resource: as it was spelled, and how much."""

    spelled: str
    amount: int


@dataclass(frozen=True, slots=True)
class ReclaimedOvercommit:
    """A resource with more requests than its threshold."""

    resource: str
    """By today's name."""
    offer: OfferedResource
    observed: int
    threshold: float


def first_overcommit(
    allocatable: Mapping[str, int],
    pods: Sequence[RequestingPod[T]],
    thresholds: Mapping[str, float],
    skip_zero: Collection[str] = (),
) -> ReclaimedOvercommit | None:
    """Return the first resource by name of which reclaimed pods request more than ratio times the offer.

    A resource that is not offered, or has no threshold, is never overcommitted: absent is not zero.
    """
    offers, ratios = offers_by_resource(allocatable), ratios_by_resource(thresholds)
    skipped = {canonical_resource(name) for name in skip_zero}
    for resource in sorted(offers.keys() & ratios.keys()):
        offer = offers[resource]
        if offer.amount <= 0 and resource in skipped:
            continue
        observed, threshold = requested(pods, resource), ratios[resource] * offer.amount
        if observed > threshold:
            return ReclaimedOvercommit(resource, offer, observed, threshold)
    return None


def requested(pods: Iterable[RequestingPod[T]], resource: str) -> int:
    """Return what the reclaimed pods among these request of a resource."""
    return sum(pod.request(resource) for pod in pods if pod.qos == "reclaimed_cores")


def largest_first(pods: Iterable[RequestingPod[T]], resource: str) -> list[RequestingPod[T]]:
    """Reclaimed pods that ask for a resource, the largest request first; a pod that asks for none would free none."""
    asking = [pod for pod in pods if pod.qos == "reclaimed_cores" and pod.request(resource) > 0]
    return sorted(asking, key=lambda pod: (-pod.request(resource), pod.order))


def offers_by_resource(allocatable: Mapping[str, int]) -> dict[str, OfferedResource]:
    """By today's name. Where both spellings are given they are one resource, and the larger amount counts."""
    offers: dict[str, OfferedResource] = {}
    for spelled in sorted(allocatable):
        offer, resource = OfferedResource(spelled, allocatable[spelled]), canonical_resource(spelled)
        if resource not in offers or offer.amount > offers[resource].amount:
            offers[resource] = offer
    return offers


def ratios_by_resource(ratios: Mapping[str, float]) -> dict[str, float]:
    """By today's name; of two spellings the more patient one counts."""
    by_resource: dict[str, float] = {}
    for spelled, ratio in ratios.items():
        resource = canonical_resource(spelled)
        by_resource[resource] = max(ratio, by_resource.get(resource, ratio))
    return by_resource
