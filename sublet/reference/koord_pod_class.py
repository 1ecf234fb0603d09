"""Koordinator's reading of a pod: QoS class, priority class, eviction.

Two views exist there and are kept apart here: by label or value alone ("raw"), and with a default for pods that say
nothing, which follows their Kubernetes QoS. A value that cannot be read gets a code in `errors` and its default.

Facts: docs/facts/koordinator.md#qos-and-priority-classes.
"""

from collections.abc import Mapping
from typing import Literal

from shared.contracts.pod import KubeQos
from shared.core.cgroups.kube_qos import kube_qos
from shared.core.pods.koord_qos import KOORD_DOMAIN, KoordQos, koord_qos
from shared.core.text.annotation_values import INVALID, integer, refuse
from shared.errors import Refused
from shared.whatif.decisions import Answer, Question, decision

PriorityClass = Literal["koord-prod", "koord-mid", "koord-batch", "koord-free"]

PRIORITY_CLASS_LABEL = f"{KOORD_DOMAIN}priority-class"
SUB_PRIORITY_LABEL = f"{KOORD_DOMAIN}priority"
EVICTION_ENABLED_LABEL = f"{KOORD_DOMAIN}eviction-enabled"
EVICTION_PRIORITY = f"{KOORD_DOMAIN}eviction-priority"

_QOS_OF_KUBE: dict[KubeQos, KoordQos] = {"Guaranteed": "LSR", "Burstable": "LS", "BestEffort": "BE"}
_BANDS: dict[PriorityClass, range] = {
    "koord-prod": range(9000, 10_000),
    "koord-mid": range(7000, 8000),
    "koord-batch": range(5000, 6000),
    "koord-free": range(3000, 4000),
}
_DEFAULT_VALUES: dict[PriorityClass, int] = {
    "koord-prod": 9500,
    "koord-mid": 7500,
    "koord-batch": 5500,
    "koord-free": 3500,
}
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
        priority_value=_DEFAULT_VALUES[defaulted] if pod.priority is None else pod.priority,
        eviction_enabled=pod.labels.get(EVICTION_ENABLED_LABEL) == "true",
        eviction_priority=_read(errors, "eviction_priority", pod.annotations.get(EVICTION_PRIORITY), 0),
        sub_priority=_read(
            errors, "sub_priority", pod.labels.get(SUB_PRIORITY_LABEL) or None, question.default_sub_priority
        ),
        errors=errors,
    )


def priority_class(labels: Mapping[str, str], priority: int | None) -> PriorityClass | None:
    """By the label, which beats the value even where it names no known class; else by the band of the value."""
    named = labels.get(PRIORITY_CLASS_LABEL)
    if named is not None:
        return next((name for name in _BANDS if name == named), None)
    return next((name for name, band in _BANDS.items() if priority is not None and priority in band), None)


def priority_class_with_default(labels: Mapping[str, str], priority: int | None, kube: KubeQos) -> PriorityClass:
    """As `priority_class`; a pod without one is batch if it is best-effort by label or Kubernetes QoS, else prod."""
    return priority_class(labels, priority) or (
        "koord-batch" if (koord_qos(labels) or _QOS_OF_KUBE[kube]) == "BE" else "koord-prod"
    )


def _read(errors: dict[str, str], field: str, text: str | None, otherwise: int) -> int:
    """An integer of 32 bits, else `otherwise`; text that is none gets the field a code."""
    try:
        number = integer(text)
        if number is not None and number not in _INT32:
            refuse(text, "an integer of 32 bits")
    except Refused:
        errors[field] = INVALID
        return otherwise
    return otherwise if number is None else number
