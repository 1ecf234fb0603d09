"""From raw readings to a NodeSample: counters become rates, figures find their fields. Pure.

Known figure names fill the typed fields of `shared.contracts.sample`; every other number lands in `extra`, so that a
new source needs no edit here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from services.metrics.core.figures import NODE, Figure, Kind, Point, Raw, Target, Value
from shared.contracts.pod import Pod
from shared.contracts.sample import ContainerReading, NodeReading, NumaReading, PodReading, PoolReading
from shared.errors import Unavailable

Offered = Mapping[Kind, Sequence[Figure]]
"""Which figures the sources offer for each kind of target."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The raw values of one target. `identity` differs when its cgroup was removed and made anew."""

    at_s: float
    raw: Raw
    identity: int = 0


@dataclass(frozen=True, slots=True)
class Past:
    """What is remembered of one target."""

    identity: int
    points: Mapping[str, Point]


@dataclass(frozen=True, slots=True)
class Memory:
    """What one pass leaves for the next. A target that a pass did not see is forgotten: its rates begin anew."""

    at_s: float | None = None
    past: Mapping[Target, Past] = field(default_factory=dict)

    def based_on(self, target: Target, counter: str, point: Point) -> "Memory":
        """The same with a later point for one counter, so that its next rate covers a shorter time.

        Left as it is where the target is not known, or the point is not later or went back.
        """
        known = self.past.get(target)
        before = known.points.get(counter) if known else None
        if known is None or before is None or point.at_s <= before.at_s or point.value < before.value:
            return self
        past = Past(known.identity, {**known.points, counter: point})
        return replace(self, past={**self.past, target: past})


def summarise(
    memory: Memory, readings: Mapping[Target, Reading], offered: Offered, pods: Sequence[Pod], now_s: float
) -> tuple[dict[str, Any], Memory]:
    """The fields of a NodeSample, and the memory for the next pass.

    A pool without any figure has no cgroup now and is left out; a container without one is listed, its figures absent.

    Raises:
        Unavailable: no reading says which CPUs are online, without which a sample means nothing.
    """
    figures: dict[Target, dict[str, Value]] = {}
    past: dict[Target, Past] = {}
    for target, reading in readings.items():
        known = memory.past.get(target)
        points = known.points if known and known.identity == reading.identity else {}
        figures[target], kept = _compute(offered.get(target.kind, ()), reading, points)
        past[target] = Past(reading.identity, kept)
    fields: dict[str, Any] = {
        "window_s": None if memory.at_s is None else max(0.0, now_s - memory.at_s),
        "node_reading": _node(figures.get(NODE, {})),
        "numas": tuple(
            NumaReading(numa=int(target.name), **_fields(NumaReading, found))
            for target, found in sorted(_of_kind(figures, "numa"), key=lambda item: int(item[0].name))
        ),
        "pools": tuple(
            PoolReading(pool=target.name, **_fields(PoolReading, found))
            for target, found in sorted(_of_kind(figures, "pool"), key=lambda item: item[0].name)
            if found
        ),
        "pods": _pods(pods, {target.name: found for target, found in _of_kind(figures, "container")}),
    }
    return fields, Memory(now_s, past)


def _compute(
    offered: Sequence[Figure], reading: Reading, points: Mapping[str, Point]
) -> tuple[dict[str, Value], dict[str, Point]]:
    found: dict[str, Value] = {}
    kept: dict[str, Point] = {}
    for figure in offered:
        value, leaves = figure.compute(reading.raw, reading.at_s, points)
        kept.update(leaves)
        if value is not None and _usable(value):
            found[figure.name] = value
    return found, kept


def _usable(value: Value) -> bool:
    return not isinstance(value, int | float) or (math.isfinite(value) and value >= 0)


def _of_kind(figures: Mapping[Target, dict[str, Value]], kind: Kind) -> list[tuple[Target, dict[str, Value]]]:
    return [(target, found) for target, found in figures.items() if target.kind == kind]


def _node(found: Mapping[str, Value]) -> NodeReading:
    if not found.get("online_cpus"):
        raise Unavailable("node: no reading says which CPUs are online (sys/devices/system/cpu/online)")
    return NodeReading(**_fields(NodeReading, found))


def _pods(pods: Sequence[Pod], found: Mapping[str, Mapping[str, Value]]) -> tuple[PodReading, ...]:
    return tuple(
        PodReading(
            pod=pod,
            containers=tuple(
                ContainerReading(
                    name=container.name,
                    **_fields(ContainerReading, found.get(container_name(pod, container.name), {})),
                )
                for container in pod.containers
            ),
        )
        for pod in sorted(pods, key=lambda pod: (pod.key, pod.uid))
    )


def container_name(pod: Pod, container: str) -> str:
    """The name of a container's target."""
    return f"{pod.uid}/{container}"


def _fields(model: type[BaseModel], found: Mapping[str, Value]) -> dict[str, Any]:
    known = model.model_fields
    fields: dict[str, Any] = {name: value for name, value in found.items() if name in known}
    extra = {name: value for name, value in found.items() if name not in known and isinstance(value, int | float)}
    return {**fields, "extra": extra} if extra else fields
