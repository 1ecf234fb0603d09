"""A Node as over-commitment sees it, read from its document: an unreadable part counts as missing.

Anyone who may write a Node may write its annotations, so amounts are bounded, and no ratio is used before it was
checked (docs/facts/katalyst-overcommit.md#annotations).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from services.central.core.overcommit.admit import ByResource, NodeOvercommit
from services.central.core.overcommit.amounts import Amounts
from shared.contracts.kube.overcommit import (
    MOST_RATIO,
    POOL_LABEL,
    RESOURCES,
    Resource,
    figure_key,
    ratio_of,
    realtime_ratio_key,
    set_ratio_key,
)
from shared.contracts.kube.quantities import format_millis, parse_millis, parse_units

FIELDS: tuple[Literal["allocatable", "capacity"], ...] = ("allocatable", "capacity")
RATIO_KEYS = frozenset(key(name) for name in RESOURCES for key in (set_ratio_key, realtime_ratio_key))
OVERCOMMIT_KEYS = frozenset(figure_key("overcommit", field, name) for name in RESOURCES for field in FIELDS)
ORIGINAL_KEYS = frozenset(figure_key("original", field, name) for name in RESOURCES for field in FIELDS)
KEYS = RATIO_KEYS | OVERCOMMIT_KEYS | ORIGINAL_KEYS
MOST: Mapping[Resource, int] = {"cpu": 1 << 40, "memory": 1 << 60}
"""Milli-cores and bytes of one node; what is more is no amount."""
MOST_TEXT = 64

Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class OvercommitNode:
    """A Node: its pool, its figures at the API server, and what its annotations say."""

    name: str
    pool: str | None
    annotations: Texts
    """Only the annotations of over-commitment."""
    said: NodeOvercommit
    status: ByResource


def overcommit_node(document: Mapping[str, Any]) -> OvercommitNode:
    """Read a Node."""
    meta, status = _map(document.get("metadata")), _map(document.get("status"))
    pool, annotations = _map(meta.get("labels")).get(POOL_LABEL), overcommit_annotations(document)
    return OvercommitNode(
        name=str(meta.get("name") or ""),
        pool=pool if isinstance(pool, str) else None,
        annotations=annotations,
        said=said_by(annotations),
        status=amounts_of(_map(status.get("allocatable")), _map(status.get("capacity"))),
    )


def overcommit_annotations(document: Mapping[str, Any]) -> dict[str, str]:
    """Those of a Node that are about its over-commitment."""
    found = _map(_map(document.get("metadata")).get("annotations"))
    return {key: value for key in KEYS if isinstance(value := found.get(key), str)}


def said_by(annotations: Texts) -> NodeOvercommit:
    """Read the annotations without raising. A set ratio that is not a number, or exceeds what any config may set,
    counts as none."""
    set_ratios, realtime = (
        {name: annotations[key(name)] for name in RESOURCES if key(name) in annotations}
        for key in (set_ratio_key, realtime_ratio_key)
    )
    borne = {name: text for name, text in set_ratios.items() if (ratio_of(text) or MOST_RATIO + 1) <= MOST_RATIO}
    originals, figures = _figures("original", annotations), _figures("overcommit", annotations)
    known = {name: one for name, one in figures.items() if name in originals and _within(one, originals[name])}
    return NodeOvercommit(borne, realtime, known, originals)


def _within(figure: Amounts, original: Amounts) -> bool:
    most = original.times(MOST_RATIO)
    return figure.allocatable <= most.allocatable and figure.capacity <= most.capacity


def amounts_of(allocatable: Mapping[str, Any], capacity: Mapping[str, Any]) -> dict[Resource, Amounts]:
    """Return the amounts by resource, if both exist and are amounts."""
    found: dict[Resource, Amounts] = {}
    for name in RESOURCES:
        both = _amount(name, allocatable.get(name)), _amount(name, capacity.get(name))
        if both[0] is not None and both[1] is not None:
            found[name] = Amounts(both[0], both[1])
    return found


def figure_texts(sort: Literal["original", "overcommit"], figures: ByResource) -> dict[str, str]:
    """Figures as annotations."""
    return {
        figure_key(sort, field, name): quantity_text(name, getattr(amounts, field))
        for name, amounts in figures.items()
        for field in FIELDS
    }


def quantity_text(name: Resource, amount: int) -> str:
    """An amount as Kubernetes writes it."""
    return format_millis(amount) if name == "cpu" else str(amount)


def _figures(sort: Literal["original", "overcommit"], annotations: Texts) -> dict[Resource, Amounts]:
    allocatable, capacity = (
        {str(name): annotations.get(figure_key(sort, field, name)) for name in RESOURCES} for field in FIELDS
    )
    return amounts_of(allocatable, capacity)


def _amount(name: Resource, given: object) -> int | None:
    """Return milli-cores or bytes; None if it is no amount of a node."""
    if not isinstance(given, str) or len(given) > MOST_TEXT:
        return None
    try:
        amount = parse_millis(given) if name == "cpu" else parse_units(given)
    except ValueError:
        return None
    return amount if 0 <= amount <= MOST[name] else None


def _map(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}
