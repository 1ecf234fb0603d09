"""Turn figures into the parts of a NodeSample: a figure fills the field of its name. Pure.

Every other number goes to `extra`, so that a new source needs no edit here. A figure with several named parts appears
there once per part: "nic_up.eth0".
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from services.metrics.core.figures.target import Target
from services.metrics.core.figures.values import Value
from shared.contracts.envelope import MessagePart
from shared.contracts.sample import ApplicationReading, ContainerReading, NodeReading, NumaReading, PoolReading


def model_of(target: Target, values: Mapping[str, Value]) -> MessagePart:
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
        case "application":
            return ApplicationReading(name=target.name, **_fields(ApplicationReading, values))


def container_reading(name: str, values: Mapping[str, Value] | None = None) -> ContainerReading:
    """Return one container; without figures if it has no cgroup."""
    return ContainerReading(name=name, **_fields(ContainerReading, values or {}))


@lru_cache(maxsize=8)
def _names(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(model.model_fields)


def _fields(model: type[BaseModel], values: Mapping[str, Value]) -> dict[str, Any]:
    known = _names(model)
    # The usual case, without building two more dictionaries for each of hundreds of containers. An empty `extra`: the
    # default of a model is a deep copy each time, which costs as much as all its other fields.
    if known.issuperset(values):
        return {**values, "extra": {}}
    fields: dict[str, Any] = {name: value for name, value in values.items() if name in known}
    extra = {name: number for key, value in values.items() if key not in known for name, number in _numbers(key, value)}
    return {**fields, "extra": extra} if extra else fields


def _numbers(name: str, value: Value) -> Iterator[tuple[str, float]]:
    if isinstance(value, int | float):
        yield name, value
    elif isinstance(value, Mapping):
        yield from ((f"{name}.{of}", number) for of, number in value.items())
