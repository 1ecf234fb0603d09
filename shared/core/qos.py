"""The QoS class of a pod, from its annotations (notes/katalyst-eviction-central.md section 8).

A class is named by the annotation `katalyst.kubewharf.io/qos_level`; without it a pod is shared_cores. A cluster may
add selectors of its own: other annotations that mean the same. Every class is looked at every time, so annotations that
contradict each other are an error whichever is read first.
"""

from collections.abc import Mapping

from shared.contracts.pod import QosClass
from shared.core.layout import QOS_CLASSES
from shared.errors import Refused

DOMAIN = "katalyst.kubewharf.io/"
QOS_LEVEL = f"{DOMAIN}qos_level"
DEFAULT_CLASS: QosClass = "shared_cores"

UNKNOWN_LEVEL = "unknown_level"
CONFLICT = "conflict"

Selectors = Mapping[QosClass, Mapping[str, str]]
"""For each class further annotations, key to value, that name it."""


def qos_class(annotations: Mapping[str, str], selectors: Selectors | None = None) -> QosClass:
    """The QoS class that a pod's annotations name.

    Raises:
        Refused: `unknown_level`, the annotations name no class; `conflict`, they contradict each other.
    """
    named: dict[QosClass, str] = {}
    denied: dict[QosClass, str] = {}
    for qos in QOS_CLASSES:
        selector = {QOS_LEVEL: qos} | dict((selectors or {}).get(qos, {}))
        for key, value in selector.items():
            if key in annotations:
                (named if annotations[key] == value else denied).setdefault(qos, key)
    torn = [qos for qos in named if qos in denied]
    if torn or len(named) > 1:
        keys = sorted({*named.values(), *(denied[qos] for qos in torn)})
        said = ", ".join(f"{key}: {annotations[key]!r}" for key in keys)
        raise Refused(f"the annotations contradict each other: {said}; keep one of them", reason=CONFLICT)
    if not named and DEFAULT_CLASS in denied:
        key = denied[DEFAULT_CLASS]
        raise Refused(f"{key}: {annotations[key]!r} names no QoS class: want {', '.join(QOS_CLASSES)}, or leave it out",
                      reason=UNKNOWN_LEVEL)  # fmt: skip
    return next(iter(named), DEFAULT_CLASS)
