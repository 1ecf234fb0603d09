"""The QoS class that Koordinator's label gives a pod (docs/facts/koordinator.md#qos-and-priority-classes)."""

from collections.abc import Mapping
from typing import Literal, get_args

from shared.contracts.pod import QosClass

KoordQos = Literal["LSE", "LSR", "LS", "BE", "SYSTEM"]

KOORD_DOMAIN = "koordinator.sh/"
QOS_LABEL = f"{KOORD_DOMAIN}qosClass"

QOS_OF_KOORD: dict[KoordQos, QosClass] = {
    "LSE": "dedicated_cores",
    "LSR": "dedicated_cores",
    "LS": "shared_cores",
    "BE": "reclaimed_cores",
    "SYSTEM": "system_cores",
}
"""Where Koordinator's classes run here: bound cores are dedicated, whether or not best-effort work could share them."""


def koord_qos(labels: Mapping[str, str]) -> KoordQos | None:
    """The class that the label names; None without it, or where it names none."""
    return next((qos for qos in get_args(KoordQos) if qos == labels.get(QOS_LABEL)), None)
