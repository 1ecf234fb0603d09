"""The QoS class and the priority class that Koordinator's labels and bands give a pod.

Facts: docs/facts/koordinator.md#qos-and-priority-classes.
"""

from collections.abc import Mapping
from typing import get_args

from shared.contracts.pod import KoordQos as KoordQos  # noqa: PLC0414 - named here by whoever asks for a pod's
from shared.contracts.pod import KubeQos, QosClass
from shared.contracts.pod import PriorityClass as PriorityClass  # noqa: PLC0414 - as above

KOORD_DOMAIN = "koordinator.sh/"
QOS_LABEL = f"{KOORD_DOMAIN}qosClass"
PRIORITY_CLASS_LABEL = f"{KOORD_DOMAIN}priority-class"
SUB_PRIORITY_LABEL = f"{KOORD_DOMAIN}priority"
CPU_BURST, MEMORY_QOS = f"{KOORD_DOMAIN}cpuBurst", f"{KOORD_DOMAIN}memoryQOS"
"""Annotations on the isolation of one pod (docs/facts/koordinator-isolation.md#annotations-of-a-pod)."""

QOS_OF_KOORD: dict[KoordQos, QosClass] = {
    "LSE": "dedicated_cores",
    "LSR": "dedicated_cores",
    "LS": "shared_cores",
    "BE": "reclaimed_cores",
    "SYSTEM": "system_cores",
}
"""Where Koordinator's classes run here: bound cores are dedicated, whether or not best-effort work could share them."""

BINDS_CPUS: tuple[KoordQos, ...] = ("LSE", "LSR")
"""Classes whose pods have whole CPUs of their own."""


def koord_qos(labels: Mapping[str, str]) -> KoordQos | None:
    """The class that the label names; None without it, or where it names none."""
    return next((qos for qos in get_args(KoordQos) if qos == labels.get(QOS_LABEL)), None)


_QOS_OF_KUBE: dict[KubeQos, KoordQos] = {"Guaranteed": "LSR", "Burstable": "LS", "BestEffort": "BE"}
_BANDS: dict[PriorityClass, range] = {
    "koord-prod": range(9000, 10_000),
    "koord-mid": range(7000, 8000),
    "koord-batch": range(5000, 6000),
    "koord-free": range(3000, 4000),
}


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


_KOORD_OF_QOS: dict[QosClass, KoordQos] = {
    "dedicated_cores": "LSR",
    "shared_cores": "LS",
    "reclaimed_cores": "BE",
    "system_cores": "SYSTEM",
}


def koord_qos_here(labels: Mapping[str, str], qos: QosClass) -> KoordQos:
    """By the label; without it, the class whose pods run as this one does here."""
    return koord_qos(labels) or _KOORD_OF_QOS[qos]
