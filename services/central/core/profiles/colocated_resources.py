"""Colocated resources in place of cpu and memory (docs/facts/koordinator-profiles.md#resources)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shared.contracts.kube.quantities import parse_millis
from shared.contracts.pod import KubeQos
from shared.core.cgroups.kube_qos import kube_qos
from shared.core.pods.koord_qos import PriorityClass
from shared.core.text.document import items, mapping
from shared.errors import Refused

BATCH_CPU, BATCH_MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
MID_CPU, MID_MEMORY = "kubernetes.io/mid-cpu", "kubernetes.io/mid-memory"
COLOCATED = (BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY)
ANNOTATION = "node.koordinator.sh/extended-resource-spec"

_NAMES: dict[PriorityClass, dict[str, str]] = {
    "koord-batch": {"cpu": BATCH_CPU, "memory": BATCH_MEMORY},
    "koord-mid": {"cpu": MID_CPU, "memory": MID_MEMORY},
}
_CONTAINERS = ("initContainers", "containers")

Document = dict[str, Any]
Amounts = Mapping[str, Any]


def containers_of(spec: Mapping[str, Any]) -> Iterator[Document]:
    """Init containers and containers of a pod's spec.

    Raises:
        Refused: one of them is no mapping.
    """
    for name in _CONTAINERS:
        for place, container in enumerate(items(spec.get(name), name)):
            yield mapping(container, f"{name}[{place}]")


def with_colocated(spec: Document, priority: PriorityClass) -> Document:
    """The spec with cpu and memory of a batch or mid pod renamed; a request that is missing becomes the limit.

    Raises:
        Refused: an amount of cpu is no quantity, or something is of another kind than in a Pod.
    """
    names = _NAMES.get(priority)
    if names is None:
        return spec
    found = dict(spec)
    for part in _CONTAINERS:
        if spec.get(part):
            found[part] = [_rewritten(mapping(one, part), names) for one in items(spec[part], part)]
    if spec.get("overhead"):
        found["overhead"] = _renamed(spec["overhead"], names)
    return found


def _rewritten(container: Document, names: Mapping[str, str]) -> Document:
    given = mapping(container.get("resources"), "resources")
    parts = {part: _renamed(given[part], names) for part in ("requests", "limits") if given.get(part)}
    limits = parts.get("limits", {})
    missing = {name: limits[name] for name in names.values() if name in limits}
    if missing:
        parts["requests"] = missing | parts.get("requests", {})
    return container | {"resources": given | parts} if parts else container


def _renamed(given: object, names: Mapping[str, str]) -> Document:
    amounts = dict(mapping(given, "resources"))
    for plain, colocated in names.items():
        if plain in amounts:
            amount = amounts.pop(plain)
            amounts[colocated] = _whole_millis(amount) if plain == "cpu" else amount
    return amounts


def _whole_millis(quantity: Any) -> str:
    return str(quantity_millis(quantity, "cpu"))


def quantity_millis(quantity: Any, name: str) -> int:
    """Return thousandths of a quantity, rounded up as Kubernetes does.

    Raises:
        Refused: it is no quantity.
    """
    try:
        return parse_millis(quantity)
    except ValueError as error:
        raise Refused(f"{name}: {error}", reason="malformed") from error


def kube_qos_of_spec(spec: Mapping[str, Any]) -> KubeQos:
    """Return the Kubernetes QoS class of a pod that has not been admitted yet, including init containers.

    Raises:
        Refused: an amount is no quantity, or something has another type than in a Pod.
    """
    resources = [mapping(container.get("resources"), "resources") for container in containers_of(spec)]
    return kube_qos((_plain(given.get("requests")), _plain(given.get("limits"))) for given in resources)


def _plain(given: object) -> dict[str, int]:
    amounts = mapping(given, "resources")
    return {name: quantity_millis(amount, name) for name, amount in amounts.items()}


def extended_resources(containers: Iterable[tuple[str, Amounts, Amounts]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the annotation: name, requests and limits of each container that requests colocated resources.

    The runtime passes no extended resources to a node's agents, so the pod also carries them as text.
    """
    found = {
        name: {"requests": _colocated(requests), "limits": _colocated(limits)} for name, requests, limits in containers
    }
    return {name: amounts for name, amounts in found.items() if any(amounts.values())}


def _colocated(amounts: Amounts) -> dict[str, Any]:
    return {name: amounts[name] for name in COLOCATED if name in amounts}
