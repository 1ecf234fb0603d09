"""Koordinator's reading of a pod: QoS class, priority class, eviction.

Two views exist there and are kept apart here: by label or value alone ("raw"), and with a default for pods that say
nothing, which follows their Kubernetes QoS. A value that cannot be read gets a code in `errors` and its default.

Facts: docs/facts/koordinator.md#qos-and-priority-classes.
"""

from shared.core.cgroups.kube_qos import kube_qos
from shared.core.pods.koord_qos import (
    KOORD_DOMAIN,
    SUB_PRIORITY_LABEL,
    KoordQos,
    PriorityClass,
    koord_qos,
    priority_class,
    priority_class_with_default,
)
from shared.core.text.annotation_values import INVALID, integer, refuse
from shared.errors import Refused
from shared.whatif.decisions import Answer, Question, decision

EVICTION_ENABLED_LABEL = f"{KOORD_DOMAIN}eviction-enabled"
EVICTION_PRIORITY = f"{KOORD_DOMAIN}eviction-priority"

PRIORITY_VALUES: dict[PriorityClass, int] = {
    "koord-prod": 9500,
    "koord-mid": 7500,
    "koord-batch": 5500,
    "koord-free": 3500,
}
"""The priority of a pod that says its class and no value."""
_INT32 = range(-(2**31), 2**31)


class KoordContainer(Question):
    """A container's amounts by resource name."""

    requests: dict[str, int] = {}
    limits: dict[str, int] = {}


class KoordPod(Question):
    """The part of a pod that Koordinator's classes are read from."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    priority: int | None = None
    containers: list[KoordContainer] = []


class KoordPodClassQuestion(Question):
    """A pod, and the sub-priority of one that says none."""

    pod: KoordPod
    default_sub_priority: int = 0


class KoordPodClassAnswer(Answer):
    """The pod's classes and priorities; null where neither a label nor a value tells."""

    koord_qos: KoordQos | None
    priority_class: PriorityClass | None
    priority_class_with_default: PriorityClass
    priority_value: int
    eviction_enabled: bool
    eviction_priority: int
    sub_priority: int
    errors: dict[str, str]


@decision("koord_pod_class", area="koord_qos_labels", asks=KoordPodClassQuestion, answers=KoordPodClassAnswer)
def koord_pod_class(question: KoordPodClassQuestion) -> KoordPodClassAnswer:
    """QoS class, priority class and eviction labels of a pod, as Koordinator reads them."""
    pod = question.pod
    errors: dict[str, str] = {}
    kube = kube_qos((container.requests, container.limits) for container in pod.containers)
    defaulted = priority_class_with_default(pod.labels, pod.priority, kube)
    return KoordPodClassAnswer(
        koord_qos=koord_qos(pod.labels),
        priority_class=priority_class(pod.labels, pod.priority),
        priority_class_with_default=defaulted,
        priority_value=PRIORITY_VALUES[defaulted] if pod.priority is None else pod.priority,
        eviction_enabled=pod.labels.get(EVICTION_ENABLED_LABEL) == "true",
        eviction_priority=_read(errors, "eviction_priority", pod.annotations.get(EVICTION_PRIORITY), 0),
        sub_priority=_read(
            errors, "sub_priority", pod.labels.get(SUB_PRIORITY_LABEL) or None, question.default_sub_priority
        ),
        errors=errors,
    )


def _read(errors: dict[str, str], field: str, text: str | None, otherwise: int) -> int:
    """An integer of 32 bits, else `otherwise`; text that is none gets the field a code."""
    try:
        number = priority_number(text)
    except Refused:
        errors[field] = INVALID
        return otherwise
    return otherwise if number is None else number


def priority_number(text: str | None) -> int | None:
    """An integer of 32 bits; None of no text.

    Raises:
        Refused: `invalid`.
    """
    number = integer(text)
    if number is not None and number not in _INT32:
        refuse(text, "an integer of 32 bits")
    return number
