"""Do the reclaimed pods ask for too much of what is left? (docs/facts/katalyst-eviction.md#reclaimed-resources)"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from pydantic import Field

from shared.contracts.pod import QosClass, canonical_resource
from shared.core.decisions import Answer, Question, decision

Met = Literal["NOT_MET", "SOFT_MET", "HARD_MET"]
Ratio = Annotated[float, Field(allow_inf_nan=False)]


class ReclaimedPod(Question):
    """A pod with its requests by resource name: milli for CPU, bytes for memory."""

    name: str
    namespace: str | None = None
    qos: QosClass
    requests: dict[str, int]
    soft_evict_notify: bool = False

    @property
    def order(self) -> tuple[str, str]:
        """The last word of every ordering."""
        return (self.namespace or "", self.name)

    def request(self, resource: str) -> int:
        """What it asks of a resource (today's name), under both spellings together."""
        return sum(v for k, v in self.requests.items() if canonical_resource(k) == resource)


class ReclaimedQuestion(Question):
    """What is offered, the thresholds as ratios of it, and who asks for how much."""

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


@dataclass(frozen=True, slots=True)
class Offer:
    """One offered resource: as it was spelled, and how much."""

    spelled: str
    amount: int


@decision("reclaimed_pressure", area="eviction_reclaimed", asks=ReclaimedQuestion, answers=ReclaimedAnswer)
def reclaimed_pressure(question: ReclaimedQuestion) -> ReclaimedAnswer:
    """Do the reclaimed pods ask for too much of what is left, and who goes?

    Hard thresholds come before soft ones, resources go by today's name. A resource that is not offered, or has no
    threshold, is never met: absent is not zero.
    """
    found = _first_met(question)
    if found is None:
        return ReclaimedAnswer(met="NOT_MET")
    met, resource, offer, threshold = found
    pods = _reclaimed(question)
    going = (
        largest_first(pods, resource)[: max(0, question.top_n)]
        if met == "HARD_MET"
        else soft_victims(pods, resource, threshold)
    )
    return ReclaimedAnswer(
        met=met,
        scope=offer.spelled,
        observed=sum(pod.request(resource) for pod in pods),
        threshold=threshold,
        victims=[pod.name for pod in going],
        deletion_grace_s=question.grace_period_s if question.grace_period_s > 0 else None,
    )


def _first_met(question: ReclaimedQuestion) -> tuple[Met, str, Offer, float] | None:
    """The threshold that counts: level, resource, what is offered of it, ratio times that."""
    offers, pods = offers_by_resource(question.allocatable), _reclaimed(question)
    skipped_at_zero = {canonical_resource(name) for name in question.skip_zero_resources or ()}
    levels: tuple[tuple[Met, dict[str, float]], ...] = (
        ("HARD_MET", ratios_by_resource(question.hard_thresholds)),
        ("SOFT_MET", ratios_by_resource(question.soft_thresholds or {})),
    )
    for met, ratios in levels:
        for resource in sorted(offers.keys() & ratios.keys()):
            offer = offers[resource]
            if offer.amount <= 0 and resource in skipped_at_zero:
                continue
            threshold = ratios[resource] * offer.amount
            if sum(pod.request(resource) for pod in pods) > threshold:
                return met, resource, offer, threshold
    return None


def _reclaimed(question: ReclaimedQuestion) -> list[ReclaimedPod]:
    return [pod for pod in question.pods if pod.qos == "reclaimed_cores"]


R = TypeVar("R", bound=ReclaimedPod)


def largest_first(pods: Iterable[R], resource: str) -> list[R]:
    """Pods that ask for a resource, the largest request first; a pod that asks for none would free none."""
    asking = [pod for pod in pods if pod.request(resource) > 0]
    return sorted(asking, key=lambda pod: (-pod.request(resource), pod.order))


def soft_victims(pods: list[ReclaimedPod], resource: str, threshold: float) -> list[ReclaimedPod]:
    """Of the pods that take a notice: the smallest stay while their sum is below the threshold, at least one goes."""
    order = largest_first([pod for pod in pods if pod.soft_evict_notify], resource)
    kept, total = 0, 0
    for pod in reversed(order):
        total += pod.request(resource)
        if total >= threshold:
            break
        kept += 1
    return order[: max(len(order) - kept, 1)]


def offers_by_resource(allocatable: Mapping[str, int]) -> dict[str, Offer]:
    """By today's name. Where both spellings are given they are one resource, and the larger amount counts."""
    offers: dict[str, Offer] = {}
    for spelled in sorted(allocatable):
        offer, resource = Offer(spelled=spelled, amount=allocatable[spelled]), canonical_resource(spelled)
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
