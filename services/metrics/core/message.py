"""Figures to the parts of a NodeSample: a name that a part has as a field fills it, other numbers go to `extra`. Pure.

A new source needs no edit here.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from services.metrics.core.figures import Target
from services.metrics.core.values import Value
from shared.contracts.envelope import Part
from shared.contracts.sample import ContainerReading, NodeReading, NumaReading, PoolReading


def model_of(target: Target, values: Mapping[str, Value]) -> Part:
    """The part of the message for one target."""
    match target.kind:
        case "node":
            return NodeReading(**_fields(NodeReading, values))
        case "numa":
            return NumaReading(numa=int(target.name), **_fields(NumaReading, values))
        case "pool":
            return PoolReading(pool=target.name, **_fields(PoolReading, values))
        case "container":
            return container_reading(target.name.rpartition("/")[2], values)


def container_reading(name: str, values: Mapping[str, Value] | None = None) -> ContainerReading:
    """One container; without figures where it has no cgroup."""
    return ContainerReading(name=name, **_fields(ContainerReading, values or {}))


@lru_cache(maxsize=8)
def _names(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(model.model_fields)


def _fields(model: type[BaseModel], values: Mapping[str, Value]) -> dict[str, Any]:
    known = _names(model)
    if known.issuperset(values):
        return dict(values)
    fields: dict[str, Any] = {name: value for name, value in values.items() if name in known}
    extra = {name: value for name, value in values.items() if name not in known and isinstance(value, int | float)}
    return {**fields, "extra": extra} if extra else fields
