"""Reads from a Pod's document what admission judges."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from services.central.core.profiles.colocated_resources import quantity_millis
from services.central.core.profiles.pod_admission import PodClaims, requests_together
from shared.core.text.document import items, mapping, texts

Document = Mapping[str, Any]


def claims_of(pod: Document) -> PodClaims:
    """Labels, priority and requests of a pod.

    Raises:
        Refused: it is of another shape than a Pod, or an amount is no quantity.
    """
    spec = mapping(pod.get("spec"), "spec")
    labels = texts(mapping(pod.get("metadata"), "metadata").get("labels"), "labels")
    priority = spec.get("priority")
    return PodClaims(labels, priority if isinstance(priority, int) else None, _requests(spec))


def _requests(spec: Document) -> dict[str, int]:
    """Sum up requests. Sidecars run next to the containers, and next to the init containers that follow them."""
    running = [_amounts(row) for row in _rows(spec, "containers")]
    beside, starting = Counter[str](), []
    for row in _rows(spec, "initContainers"):
        own = _amounts(row)
        if row.get("restartPolicy") == "Always":
            running.append(own)
            beside.update(own)
            starting.append(dict(beside))
        else:
            starting.append(dict(Counter(own) + beside))
    return requests_together(starting, running, _millis(spec.get("overhead")))


def _rows(spec: Document, name: str) -> list[Document]:
    return [mapping(row, name) for row in items(spec.get(name), name)]


def _amounts(row: Document) -> dict[str, int]:
    return _millis(mapping(row.get("resources"), "resources").get("requests"))


def _millis(given: object) -> dict[str, int]:
    return {name: quantity_millis(amount, name) for name, amount in mapping(given, "resources").items()}
