"""Reads a node's capacity and reservations from its API object or, on one host, from its kernel.

The object is read whatever it contains: an annotation that cannot be understood counts as missing, as upstream, and is
named in `unread`.

Facts: docs/facts/koordinator-batch.md#annotations-of-a-node.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.contracts.kube.overcommit import RESOURCES, figure_key
from shared.contracts.kube.quantities import parse_millis, parse_units
from shared.contracts.sample import NodeReading
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.normalization import NORMALIZATION_RATIO, normalization_ratio
from shared.core.text.json_text import read_json_object
from shared.errors import Refused

RESERVATION = "node.koordinator.sh/reservation"
RAW_ALLOCATABLE = "node.koordinator.sh/raw-allocatable"
MAX_ANNOTATION_BYTES = 4096
MAX_CPU_MILLIS, MAX_MEMORY_BYTES = 1 << 40, 1 << 60


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """A node's CPU and memory, what kubelet or an annotation keeps back of them, and how fast its CPU is."""

    cpu_millis: int
    memory_bytes: int
    reserved_cpu_millis: int = 0
    reserved_memory_bytes: int = 0
    cpu_normalization_ratio: float = 1.0
    unread: tuple[str, ...] = ()
    """Annotations that could not be read, and why."""


def machine_capacity(reading: NodeReading) -> NodeCapacity | None:
    """Of a host without an API server; None where its memory could not be read."""
    if reading.memory_total_bytes is None:
        return None
    return NodeCapacity(len(CpuSet.parse(reading.online_cpus)) * 1000, reading.memory_total_bytes)


def node_capacity(node: Mapping[str, Any]) -> NodeCapacity | None:
    """Return the capacity of a Node; None if it does not say."""
    status, annotations = _map(node.get("status")), _map(_map(node.get("metadata")).get("annotations"))
    # An over-committed node shows more than it has: kubelet's own figures are in annotations.
    own_capacity, own_allocatable = (_original(annotations, field) for field in ("capacity", "allocatable"))
    capacity, unread = own_capacity or _amounts(_map(status.get("capacity"))), []
    if capacity is None:
        return None

    def read(key: str, parse: Callable[[str], Any]) -> Any:
        text = annotations.get(key)
        try:
            return parse(text) if isinstance(text, str) else None
        except (Refused, ValueError) as error:
            unread.append(f"{key}: {str(error)[:200]}")
            return None

    # The larger allocatable of an amplified node is made of this one, and kubelet keeps back as much as before.
    allocatable = (
        read(RAW_ALLOCATABLE, _raw_allocatable)
        or own_allocatable
        or _amounts(_map(status.get("allocatable")))
        or capacity
    )
    kept = read(RESERVATION, _reservation) or (0, 0)
    return NodeCapacity(
        *capacity,
        reserved_cpu_millis=max(0, capacity[0] - allocatable[0], kept[0]),
        reserved_memory_bytes=max(0, capacity[1] - allocatable[1], kept[1]),
        cpu_normalization_ratio=read(NORMALIZATION_RATIO, normalization_ratio) or 1.0,
        unread=tuple(unread),
    )


def _amounts(amounts: Mapping[str, Any]) -> tuple[int, int] | None:
    """Milli-cores and bytes; None where one of them is missing or none."""
    try:
        return _bounded(parse_millis(amounts["cpu"]), parse_units(amounts["memory"]))
    except (KeyError, TypeError, ValueError):
        return None


def _original(annotations: Mapping[str, Any], field: str) -> tuple[int, int] | None:
    """Facts: docs/facts/katalyst-overcommit.md#annotations."""
    found = {name: annotations.get(figure_key("original", field, name)) for name in RESOURCES}
    return _amounts({str(name): text for name, text in found.items() if isinstance(text, str)})


def _bounded(cpu_millis: int, memory_bytes: int) -> tuple[int, int]:
    if not (0 <= cpu_millis <= MAX_CPU_MILLIS and 0 <= memory_bytes <= MAX_MEMORY_BYTES):
        raise ValueError(f"{cpu_millis} milli-cores and {memory_bytes} bytes are beyond any node")
    return cpu_millis, memory_bytes


def _raw_allocatable(text: str) -> tuple[int, int]:
    amounts = _amounts(read_json_object(text, what="raw allocatable", max_bytes=MAX_ANNOTATION_BYTES))
    if amounts is None:
        raise ValueError("want cpu and memory, each a quantity")
    return amounts


def _reservation(text: str) -> tuple[int, int]:
    """A list of CPUs goes before an amount of CPU."""
    said = read_json_object(text, what="reservation", max_bytes=MAX_ANNOTATION_BYTES)
    amounts = _map(said.get("resources"))
    try:
        cpus = len(CpuSet.parse(str(said.get("reservedCPUs") or "")))
        cpu_millis = cpus * 1000 or parse_millis(amounts.get("cpu", 0))
        return _bounded(cpu_millis, parse_units(amounts.get("memory", 0)))
    except TypeError as error:
        raise ValueError("resources: want cpu and memory, each a quantity") from error


def _map(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}
