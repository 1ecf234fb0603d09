"""What the metrics API keeps of pods and nodes: where they are, and the labels that lists are selected by."""

from collections.abc import Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any

from services.central.core.custom_metrics.series import MeteredObject
from shared.core.text.document import mapping, text, texts

_ENDED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class MeteredSeen:
    """An object that may have figures, its labels, and the node whose agent tells them."""

    about: MeteredObject
    node: str
    labels: Mapping[str, str]


def metered_pod_of(document: Mapping[str, Any]) -> MeteredSeen | None:
    """What is kept of a Pod; None of one that has no node, or has ended.

    Raises:
        Refused: it is of another shape.
    """
    meta = mapping(document.get("metadata"), "metadata")
    node = mapping(document.get("spec"), "spec").get("nodeName")
    if not node or mapping(document.get("status"), "status").get("phase") in _ENDED:
        return None
    namespace = intern(text(meta.get("namespace"), "metadata.namespace"))
    about = MeteredObject("pods", namespace, intern(text(meta.get("name"), "metadata.name")))
    return MeteredSeen(about, intern(text(node, "spec.nodeName")), _labels(meta))


def metered_node_of(document: Mapping[str, Any]) -> MeteredSeen:
    """What is kept of a Node.

    Raises:
        Refused: it is of another shape.
    """
    meta = mapping(document.get("metadata"), "metadata")
    name = intern(text(meta.get("name"), "metadata.name"))
    return MeteredSeen(MeteredObject("nodes", None, name), name, _labels(meta))


def _labels(meta: Mapping[str, Any]) -> Mapping[str, str]:
    """One copy of each text: ten thousand pods of a workload have the same ones."""
    return {intern(key): intern(value) for key, value in texts(meta.get("labels"), "metadata.labels").items()}
