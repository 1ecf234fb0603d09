"""The QoS class of a pod, from its annotations and labels (docs/facts/katalyst-cluster.md#qos-annotations).

A class is named in one dialect: by the annotation `katalyst.kubewharf.io/qos_level`, or by Koordinator's label
`koordinator.sh/qosClass` (docs/facts/koordinator.md#qos-and-priority-classes); without both a pod is
shared_cores, and with both it is refused. A cluster may add selectors of its own: other annotations that mean the same.
Every class is looked at every time, so words that contradict each other are an error whichever is read first.

A pod that is to be made is read by `qos_class`, which refuses what is not clear. A pod that is there already is read by
`lowest_class`, which always answers: a pod must not gain by words that contradict each other. The admission policy of
the chart (admission/pod-qos.yaml) says both in the API server's language, and one table of the tests holds all three.
"""

from collections.abc import Mapping
from typing import Literal

from shared.contracts.pod import KubeQos, QosClass
from shared.core.cgroups.layout import QOS_CLASSES
from shared.core.pods.koord_qos import QOS_LABEL, QOS_OF_KOORD, koord_qos
from shared.errors import Refused

DOMAIN = "katalyst.kubewharf.io/"
QOS_LEVEL = f"{DOMAIN}qos_level"
DEFAULT_CLASS: QosClass = "shared_cores"

LOWEST_FIRST: tuple[QosClass, ...] = ("reclaimed_cores", "shared_cores", "dedicated_cores", "system_cores")
"""Classes by what they are given, the least first."""

CRITICAL_PRIORITY = 2_000_000_000
"""system-cluster-critical, where kubelet draws the line, too; an author's own priority class stays below half of it."""

UNKNOWN_LEVEL = "unknown_level"
CONFLICT = "conflict"

Selectors = Mapping[QosClass, Mapping[str, str]]
"""For each class further annotations, key to value, that name it."""

Fallback = Literal["shared_cores", "kubernetes"]
"""What a pod is that names no class: always shared_cores, or by its Kubernetes QoS (`class_of_kube`)."""

_NOTHING: Mapping[str, str] = {}
_SHOWN = 63
"""Characters of a word that are repeated: a label has no more."""


def qos_class(
    annotations: Mapping[str, str],
    selectors: Selectors | None = None,
    labels: Mapping[str, str] = _NOTHING,
    default: QosClass = DEFAULT_CLASS,
) -> QosClass:
    """The QoS class that a pod's annotations and labels name; `default` where they name none.

    Raises:
        Refused: `unknown_level`, they name a class that there is none; `conflict`, they contradict each other.
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
    labelled, both = _labelled(labels), words_of_both(annotations, labels)
    if both is not None:
        raise Refused(f"{both}; remove one of them", reason=CONFLICT)
    unknown = denied.get(DEFAULT_CLASS, QOS_LEVEL)
    if labelled is None and not named and unknown in annotations:
        raise Refused(f"{unknown}: {annotations[unknown]!r} names no QoS class: want {', '.join(QOS_CLASSES)}, or "
                      "leave it out", reason=UNKNOWN_LEVEL)  # fmt: skip
    if labelled is None:
        return next(iter(named), default)
    _check_selectors(annotations, labels, labelled, named, denied)
    return labelled


def words_of_both(annotations: Mapping[str, str], labels: Mapping[str, str]) -> str | None:
    """The words of a pod that names its class in both dialects, in a sentence; None where it does not.

    Also where both mean one class: whoever changes one word later leaves a pod that contradicts itself.
    """
    if QOS_LEVEL not in annotations or QOS_LABEL not in labels:
        return None
    return (
        f"annotation {QOS_LEVEL}: {annotations[QOS_LEVEL][:_SHOWN]!r} and label {QOS_LABEL}: "
        f"{labels[QOS_LABEL][:_SHOWN]!r} name the QoS class in two dialects"
    )


def lowest_class(
    annotations: Mapping[str, str],
    labels: Mapping[str, str],
    *,
    asks_reclaimed: bool = False,
    default: QosClass = DEFAULT_CLASS,
) -> QosClass:
    """The class of a pod that runs already: the lowest that its words name, `default` where they name none.

    A word that names no class counts as shared_cores. Reclaimed resources in the spec are a word for reclaimed_cores
    that nobody can take back: a scheduler has counted the pod there, and not where tenants are counted.
    """
    claims: set[QosClass] = {"reclaimed_cores"} if asks_reclaimed else set()
    if QOS_LEVEL in annotations:
        claims.add(next((qos for qos in LOWEST_FIRST if qos == annotations[QOS_LEVEL]), DEFAULT_CLASS))
    if QOS_LABEL in labels:
        koord = koord_qos(labels)
        claims.add(DEFAULT_CLASS if koord is None else QOS_OF_KOORD[koord])
    return next((qos for qos in LOWEST_FIRST if qos in claims), default)


def _labelled(labels: Mapping[str, str]) -> QosClass | None:
    """The class that Koordinator's label names; None without the label."""
    if QOS_LABEL not in labels:
        return None
    qos = koord_qos(labels)
    if qos is None:
        raise Refused(f"{QOS_LABEL}: {labels[QOS_LABEL]!r} names no QoS class: want {', '.join(QOS_OF_KOORD)}, or "
                      "leave it out", reason=UNKNOWN_LEVEL)  # fmt: skip
    return QOS_OF_KOORD[qos]


def _check_selectors(
    annotations: Mapping[str, str],
    labels: Mapping[str, str],
    labelled: QosClass,
    named: Mapping[QosClass, str],
    denied: Mapping[QosClass, str],
) -> None:
    """Refuse a pod whose label says something else than the cluster's own annotations."""
    key = next((key for qos, key in named.items() if qos != labelled), denied.get(labelled))
    if key is None:
        return
    raise Refused(
        f"the annotation {key}: {annotations[key]!r} and the label {QOS_LABEL}: {labels[QOS_LABEL]!r}, which is "
        f"{labelled} here, contradict each other; remove one of them, or make both name one class",
        reason=CONFLICT,
    )


def class_of_kube(kube: KubeQos, *, of_the_cluster: bool = False) -> QosClass:
    """The class of a pod that names none, where Kubernetes QoS is the fallback.

    What the cluster itself runs on often asks for nothing and does not say what it is: it stays shared, and is spared.
    A Guaranteed pod stays shared: whole cores are given only to a pod that asks for them by name
    (docs/facts/safety-rules.md#rule-8-least-right), whatever Koordinator takes an unlabelled one for.
    """
    return "reclaimed_cores" if kube == "BestEffort" and not of_the_cluster else "shared_cores"
