"""Who may be evicted, and in which order: the kinds `koord_victim_order` and `eviction_policy_allowed`.

Facts: docs/facts/koordinator-evict.md#what-a-pod-says.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from services.evictor.whatif.fields import Int64
from shared.core.pods.koord_qos import KOORD_DOMAIN, SUB_PRIORITY_LABEL, KoordQos, PriorityClass, priority_class
from shared.core.text.annotation_values import json_names
from shared.errors import Refused
from shared.whatif.decisions import Answer, Question, decision
from sublet.reference.koord_pod_class import (
    EVICTION_ENABLED_LABEL,
    EVICTION_PRIORITY,
    PRIORITY_VALUES,
    priority_number,
)

EVICTION_POLICY = f"{KOORD_DOMAIN}eviction-policy"
BATCH_MEMORY = "kubernetes.io/batch-memory"
MID_MEMORY = "kubernetes.io/mid-memory"
MEMORY_OF_CLASS: dict[PriorityClass, str] = {"koord-batch": BATCH_MEMORY, "koord-mid": MID_MEMORY}
"""Under which name the pods of a class request their memory; the others request the node's own."""


class EvictablePod(Question):
    """A pod with its classes, and what it uses and requests; a use of null is not known."""

    name: str
    koord_qos: KoordQos | None = None
    priority: Int64 | None = None
    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"] = "Running"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    memory_used_bytes: Int64 | None = None
    requests: dict[str, Int64] = {}

    @property
    def active(self) -> bool:
        """Whether it still holds something."""
        return self.phase in ("Pending", "Running")

    @property
    def priority_class(self) -> PriorityClass:
        """By label or value; without either a best-effort pod is batch, and every other one prod."""
        default: PriorityClass = "koord-batch" if self.koord_qos == "BE" else "koord-prod"
        return priority_class(self.labels, self.priority) or default

    @property
    def priority_value(self) -> int:
        """Its priority, else that of its class."""
        return PRIORITY_VALUES[self.priority_class] if self.priority is None else self.priority

    @property
    def colocated_request(self) -> tuple[str, int] | None:
        """The batch or mid memory that it requests; None of a pod that requests neither."""
        resource = MEMORY_OF_CLASS.get(self.priority_class)
        amount = 0 if resource is None else self.requests.get(resource, 0)
        return None if resource is None or amount <= 0 else (resource, amount)


def best_effort_order(pods: Iterable[EvictablePod]) -> list[EvictablePod]:
    """Pods that are BE by label: low priority first, then large use; those without a use last, names descending."""
    mine = [pod for pod in pods if pod.koord_qos == "BE" and pod.active]
    using = sorted((pod for pod in mine if pod.memory_used_bytes), key=lambda pod: (-_used(pod), pod.name))
    others = sorted((pod for pod in mine if not pod.memory_used_bytes), key=lambda pod: pod.name, reverse=True)
    return sorted([*using, *others], key=lambda pod: pod.priority_value)


def priority_order(
    pods: Iterable[EvictablePod], priority_threshold: int, largest: Callable[[EvictablePod], int]
) -> list[EvictablePod]:
    """Pods of any class up to a priority that agree to be evicted, by three priorities, then the largest first."""
    willing = [
        pod
        for pod in pods
        if pod.active and pod.priority_value <= priority_threshold and pod.labels.get(EVICTION_ENABLED_LABEL) == "true"
    ]
    return sorted(
        willing,
        key=lambda pod: (
            _number(pod.annotations.get(EVICTION_PRIORITY), 0),
            pod.priority_value,
            _number(pod.labels.get(SUB_PRIORITY_LABEL), pod.priority_value),
            -largest(pod),
            pod.name,
        ),
    )


def by_use(pod: EvictablePod) -> int:
    """Its use; one that is not known counts as the smallest."""
    return -1 if pod.memory_used_bytes is None else pod.memory_used_bytes


def by_request(pod: EvictablePod) -> int:
    """What it requests of its class."""
    return pod.colocated_request[1] if pod.colocated_request is not None else 0


def _used(pod: EvictablePod) -> int:
    return pod.memory_used_bytes or 0


def _number(text: str | None, otherwise: int) -> int:
    try:
        number = priority_number(text)
    except Refused:
        return otherwise
    return otherwise if number is None else number


class VictimOrderQuestion(Question):
    """The highest priority that may be evicted, and the pods."""

    priority_threshold: Int64
    pods: list[EvictablePod]


class VictimOrderAnswer(Answer):
    """Names, first to go first."""

    victims: list[str]


@decision("koord_victim_order", area="koord_memory_evict", asks=VictimOrderQuestion, answers=VictimOrderAnswer)
def koord_victim_order(question: VictimOrderQuestion) -> VictimOrderAnswer:
    """Pods that Koordinator may evict for the node's use of memory, in order."""
    order = priority_order(question.pods, question.priority_threshold, by_use)
    return VictimOrderAnswer(victims=[pod.name for pod in order])


def allows_policy(policy: str, annotations: Mapping[str, str]) -> bool:
    """Whether a pod says nothing, or names the policy exactly in a JSON list of names; other text allows none."""
    said = annotations.get(EVICTION_POLICY)
    if said is None:
        return True
    try:
        return policy in json_names(said)
    except Refused:
        return False


class EvictionPolicyQuestion(Question):
    """A policy by its name, and a pod's annotations."""

    policy: str
    annotations: dict[str, str] = {}


class EvictionPolicyAnswer(Answer):
    """Whether the policy may evict the pod."""

    allowed: bool


@decision(
    "eviction_policy_allowed", area="koord_memory_evict", asks=EvictionPolicyQuestion, answers=EvictionPolicyAnswer
)
def eviction_policy_allowed(question: EvictionPolicyQuestion) -> EvictionPolicyAnswer:
    """Does the pod allow this eviction policy?"""
    return EvictionPolicyAnswer(allowed=allows_policy(question.policy, question.annotations))
