"""What the metrics API keeps of pods and nodes: where they are, and the labels for selectors."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from sys import intern
from typing import Any

from services.central.core.custom_metrics.series import MeteredObject
from shared.core.text.document import mapping, text, texts

PAGE_ANNOTATION = "metrics.sublet.io/page"
"""Port and path of a pod's metrics, as `8080/metrics`."""
_PAGE = re.compile(r"([0-9]{1,5})(/[A-Za-z0-9._~/-]{0,200})?")
_ADDRESS = re.compile(r"[0-9a-fA-F:.]{2,45}")
_ENDED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class MeteredSeen:
    """An object that may have figures, its labels, and the node whose agent reports them."""

    about: MeteredObject
    node: str
    labels: Mapping[str, str]
    page: str = ""
    """Address of the pod's own metrics page, if it has one."""


def metered_pod_of(document: Mapping[str, Any]) -> MeteredSeen | None:
    """Read a Pod; None if it has no node, or has ended.

    Raises:
        Refused: it has another shape.
    """
    meta = mapping(document.get("metadata"), "metadata")
    node = mapping(document.get("spec"), "spec").get("nodeName")
    if not node or mapping(document.get("status"), "status").get("phase") in _ENDED:
        return None
    namespace = intern(text(meta.get("namespace"), "metadata.namespace"))
    about = MeteredObject("pods", namespace, intern(text(meta.get("name"), "metadata.name")))
    return MeteredSeen(about, intern(text(node, "spec.nodeName")), _labels(meta), _page(document))


def metered_node_of(document: Mapping[str, Any]) -> MeteredSeen:
    """Read a Node.

    Raises:
        Refused: it has another shape.
    """
    meta = mapping(document.get("metadata"), "metadata")
    name = intern(text(meta.get("name"), "metadata.name"))
    return MeteredSeen(MeteredObject("nodes", None, name), name, _labels(meta))


def _page(document: Mapping[str, Any]) -> str:
    """Where the pod shows its metrics; "" where it does not say so, or in a way that cannot be read.

    Not of pods in the network of their node: their address would lead to the node's own services.
    """
    meta, spec, status = (mapping(document.get(name), name) for name in ("metadata", "spec", "status"))
    match = _PAGE.fullmatch(str(mapping(meta.get("annotations"), "metadata.annotations").get(PAGE_ANNOTATION, "")))
    address = str(status.get("podIP") or "")
    if match is None or not 0 < int(match[1]) < 1 << 16 or spec.get("hostNetwork") or not _ADDRESS.fullmatch(address):
        return ""
    host = f"[{address}]" if ":" in address else address
    return f"http://{host}:{match[1]}{match[2] or '/metrics'}"


def _labels(meta: Mapping[str, Any]) -> Mapping[str, str]:
    """One copy of each text: ten thousand pods of a workload have the same ones."""
    return {intern(key): intern(value) for key, value in texts(meta.get("labels"), "metadata.labels").items()}
