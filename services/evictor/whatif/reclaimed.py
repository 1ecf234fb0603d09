"""The kinds `reclaimed_pressure` and `zone_resource_pressure`: do reclaimed pods ask for too much?"""

from collections.abc import Sequence

from services.evictor.core.detectors.reclaimed.overcommit import RequestingPod, first_overcommit, largest_first
from services.evictor.core.detectors.reclaimed.zones import NUMA, OfferedZone, first_crowded
from services.evictor.core.detectors.verdict import Met
from services.evictor.whatif.fields import Ratio
from shared.contracts.pod import QosClass
from shared.whatif.decisions import Answer, Question, decision


class ReclaimedPod(Question):
    """A pod with its requests by resource name: milli for CPU, bytes for memory."""

    name: str
    namespace: str | None = None
    qos: QosClass
    requests: dict[str, int]
    soft_evict_notify: bool = False


class ReclaimedQuestion(Question):
    """The offer, the thresholds as ratios of it, and the requests."""

    allocatable: dict[str, int]
    hard_thresholds: dict[str, Ratio]
    soft_thresholds: dict[str, Ratio] | None = None
    skip_zero_resources: list[str] | None = None
    pods: list[ReclaimedPod]
    top_n: int = 1
    grace_period_s: int = -1


class ReclaimedAnswer(Answer):
    """Whether a threshold is met, on which numbers, and who goes first."""

    met: Met
    scope: str | None = None
    observed: float | None = None
    threshold: float | None = None
    victims: list[str] = []
    deletion_grace_s: int | None = None


@decision("reclaimed_pressure", area="eviction_reclaimed", asks=ReclaimedQuestion, answers=ReclaimedAnswer)
def reclaimed_pressure(question: ReclaimedQuestion) -> ReclaimedAnswer:
    """Do the reclaimed pods ask for too much of what is left, and who goes?

    Hard thresholds come before soft ones, resources go by today's name. A resource that is not offered, or has no
    threshold, is never met: absent is not zero.
    """
    pods = [RequestingPod((pod.namespace or "", pod.name), pod.qos, pod.requests, pod) for pod in question.pods]
    skipped = question.skip_zero_resources or ()
    hard = first_overcommit(question.allocatable, pods, question.hard_thresholds, skipped)
    found = hard or first_overcommit(question.allocatable, pods, question.soft_thresholds or {}, skipped)
    if found is None:
        return ReclaimedAnswer(met="NOT_MET")
    if hard is not None:
        going = largest_first(pods, found.resource)[: max(0, question.top_n)]
    else:
        going = _soft_victims(pods, found.resource, found.threshold)
    return ReclaimedAnswer(
        met="SOFT_MET" if hard is None else "HARD_MET",
        scope=found.offer.spelled,
        observed=found.observed,
        threshold=found.threshold,
        victims=[pod.of.name for pod in going],
        deletion_grace_s=question.grace_period_s if question.grace_period_s > 0 else None,
    )


def _soft_victims(
    pods: Sequence[RequestingPod[ReclaimedPod]], resource: str, threshold: float
) -> list[RequestingPod[ReclaimedPod]]:
    """Katalyst's rule for a soft threshold, which the evictor does not have.

    Of the pods that accept a notice, the smallest stay while their sum is below the threshold; at least one is evicted.
    """
    order = largest_first([pod for pod in pods if pod.of.soft_evict_notify], resource)
    staying, total = 0, 0
    for pod in reversed(order):
        total += pod.request(resource)
        if total >= threshold:
            break
        staying += 1
    return order[: max(len(order) - staying, 1)]


class ZoneShare(Question):
    """What one pod holds of a zone."""

    pod: str
    requests: dict[str, int]


class Zone(Question):
    """A NUMA node or a device, with the amount for reclaimed pods and their requests."""

    type: str
    id: str
    allocatable: dict[str, int]
    allocations: list[ZoneShare]


class ZonePod(Question):
    """A pod, what it asks for, and the NUMA node that it is bound to."""

    name: str
    qos: QosClass
    requests: dict[str, int]
    numa_bind_result: int | None = None


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


@decision("zone_resource_pressure", area="eviction_reclaimed", asks=ZoneQuestion, answers=ZoneAnswer)
def zone_resource_pressure(question: ZoneQuestion) -> ZoneAnswer:
    """Do the reclaimed pods ask for too much of what is left in one zone, and who goes?"""
    zones = [
        OfferedZone(
            zone.id,
            zone.allocatable,
            [RequestingPod((pod.name,), pod.qos, _share(zone, pod), pod.name) for pod in question.pods],
            zone.type,
        )
        for zone in question.zones
    ]
    found = first_crowded(zones, question.hard_thresholds, question.skip_zero_resources or ())
    if found is None:
        return ZoneAnswer(met="NOT_MET")
    return ZoneAnswer(
        met="HARD_MET",
        scope=found.scope,
        observed=found.observed,
        threshold=found.threshold,
        victims=[pod.of for pod, _ in found.asking[: max(0, question.top_n)]],
    )


def _share(zone: Zone, pod: ZonePod) -> dict[str, int]:
    """Return what a pod holds of a zone; without an entry there, all of its requests if it is bound to that NUMA
    node."""
    share: dict[str, int] = {}
    for allocation in zone.allocations:
        if allocation.pod == pod.name:
            for name, amount in allocation.requests.items():
                share[name] = share.get(name, 0) + amount
    bound = zone.type == NUMA and pod.numa_bind_result is not None and str(pod.numa_bind_result) == zone.id
    return share or (pod.requests if bound else {})
