"""Nodes and pods as tide pools see them: of each document as much as the rules ask for."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from services.central.core.tide.change import CHANGE, LAST, LastChange, NodeChange, read_change, read_last
from services.central.core.tide.marks import ONLINE_POD, POD_LABEL, TideTaint
from services.central.core.tide.placement import TidePlacement, placement_of
from shared.contracts.kube.quantities import parse_millis, parse_units
from shared.core.pods.qos import CRITICAL_PRIORITY
from shared.core.text.document import text

FITS_NOWHERE = 1 << 62
"""A request that cannot be read: its pod fits nowhere, so no node is given away because of it."""
_FINISHED = ("Succeeded", "Failed")
_MIRROR = "kubernetes.io/config.mirror"


@dataclass(frozen=True, slots=True)
class TideNodeSeen:
    """A Node."""

    name: str
    uid: str
    labels: Mapping[str, str]
    taints: tuple[TideTaint, ...]
    allocatable: Mapping[str, int]
    unschedulable: bool = False
    """By an administrator."""
    change: NodeChange | None = None
    """Under way."""
    last: LastChange | None = None


@dataclass(frozen=True, slots=True)
class TidePodSeen:
    """A pod that has not ended."""

    key: str
    uid: str
    node: str | None
    online: bool
    requests: Mapping[str, int]
    placement: TidePlacement
    unschedulable: bool = False
    """The scheduler has found no node for it."""
    stays: bool = False
    """Of a DaemonSet, or of the kubelet itself: it belongs to its node."""
    critical: bool = False
    terminating: bool = False


def tide_node_of(document: Mapping[str, Any]) -> TideNodeSeen:
    """Read a Node.

    Raises:
        Refused: it has no name or no UID, which no API server sends.
    """
    meta, spec, status = (_map(document.get(part)) for part in ("metadata", "spec", "status"))
    annotations = _map(meta.get("annotations"))
    return TideNodeSeen(
        name=text(meta.get("name"), "metadata.name"),
        uid=text(meta.get("uid"), "metadata.uid"),
        labels={key: value for key, value in _map(meta.get("labels")).items() if isinstance(value, str)},
        taints=tuple(sorted(taint_of(row) for row in _rows(spec.get("taints")))),
        allocatable=_amounts(_map(status.get("allocatable")), unreadable=0),
        unschedulable=bool(spec.get("unschedulable")),
        change=read_change(annotations.get(CHANGE)),
        last=read_last(annotations.get(LAST)),
    )


def taint_of(row: Mapping[str, Any]) -> TideTaint:
    """Read a taint of a Node."""
    return TideTaint(*(str(row.get(part) or "") for part in ("key", "effect", "value")))


def tide_pod_of(document: Mapping[str, Any]) -> TidePodSeen | None:
    """Read a pod; None once it has ended.

    Raises:
        Refused: it has no name or no UID, which no API server sends.
    """
    meta, spec, status = (_map(document.get(part)) for part in ("metadata", "spec", "status"))
    if status.get("phase") in _FINISHED:
        return None
    node, priority = spec.get("nodeName"), spec.get("priority")
    return TidePodSeen(
        key=f"{text(meta.get('namespace'), 'metadata.namespace')}/{text(meta.get('name'), 'metadata.name')}",
        uid=text(meta.get("uid"), "metadata.uid"),
        node=node if isinstance(node, str) and node else None,
        online=_map(meta.get("labels")).get(POD_LABEL) == ONLINE_POD,
        requests=requests_of_pod(spec),
        placement=placement_of(spec),
        unschedulable=_is_unschedulable(status),
        stays=_belongs_to_its_node(meta),
        critical=isinstance(priority, int) and priority >= CRITICAL_PRIORITY,
        terminating=bool(meta.get("deletionTimestamp")),
    )


def _is_unschedulable(status: Mapping[str, Any]) -> bool:
    return any(
        (row.get("type"), row.get("status"), row.get("reason")) == ("PodScheduled", "False", "Unschedulable")
        for row in _rows(status.get("conditions"))
    )


def _belongs_to_its_node(meta: Mapping[str, Any]) -> bool:
    owners = _rows(meta.get("ownerReferences"))
    return _MIRROR in _map(meta.get("annotations")) or any(
        bool(row.get("controller")) and row.get("kind") in ("DaemonSet", "Node") for row in owners
    )


def requests_of_pod(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return a pod's requests as the scheduler counts them, including one of the node's `pods`."""
    beside, largest = Counter[str](), Counter[str]()
    for container in _rows(spec.get("initContainers")):
        own = _requests(container)
        # A sidecar stays, so it counts next to every later init container.
        stays = container.get("restartPolicy") == "Always"
        largest |= beside + own
        beside += own if stays else Counter[str]()
    together = sum((_requests(container) for container in _rows(spec.get("containers"))), beside)
    overhead = Counter(_amounts(_map(spec.get("overhead")), unreadable=FITS_NOWHERE))
    return {**((together | largest) + overhead), "pods": 1}


def _requests(container: Mapping[str, Any]) -> Counter[str]:
    asked = _map(_map(container.get("resources")).get("requests"))
    return Counter(_amounts(asked, unreadable=FITS_NOWHERE))


def _amounts(given: Mapping[str, Any], *, unreadable: int) -> dict[str, int]:
    return {name: _amount(name, quantity, unreadable) for name, quantity in given.items()}


def _amount(name: str, quantity: object, unreadable: int) -> int:
    if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
        return unreadable
    try:
        amount = parse_millis(quantity) if name == "cpu" else parse_units(quantity)
    except ValueError:
        return unreadable
    return amount if 0 <= amount <= FITS_NOWHERE else unreadable


def _map(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def _rows(given: object) -> Iterator[Mapping[str, Any]]:
    return (row for row in (given if isinstance(given, list) else ()) if isinstance(row, Mapping))
