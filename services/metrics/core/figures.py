"""How raw readings become figures: as they are, as rates of counters, as ratios, or damped like the kernel's load.

Pure. A figure is absent (None) where it cannot be known: no raw value, no second point yet, or a counter that went
back because its cgroup was made anew. It is never negative and never a spike.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from shared.contracts.sample import Pressure
from shared.core.layout import POOL_OF_QOS, SHARE, class_group

Kind = Literal["node", "numa", "pool", "container"]
GROUPS: tuple[Kind, ...] = ("pool", "container")

Value = int | float | str | Pressure
Raw = Mapping[str, Value]


class Target(NamedTuple):
    """What is measured: the node (no name), a NUMA node ("0"), a pool ("share") or a container ("<uid>/<name>")."""

    kind: Kind
    name: str = ""
    group: str = ""
    """Its cgroup; empty for the node and NUMA nodes."""


NODE = Target("node")
TENANTS = Target("pool", SHARE, class_group("shared_cores"))
POOLS = tuple(Target("pool", pool, class_group(qos)) for qos, pool in POOL_OF_QOS.items())
USAGE_COUNTER = "cpu_usage_ns"
"""Raw CPU time of a cgroup: the one counter that the tripwire reads as well."""


class Point(NamedTuple):
    """A number and when it was read, in seconds of the monotonic clock."""

    value: float
    at_s: float


class Outcome(NamedTuple):
    """A figure, and what must be remembered to compute it next time."""

    value: Value | None
    points: Mapping[str, Point] = {}


class Figure(Protocol):
    """One figure of a source."""

    @property
    def name(self) -> str:
        """Its name: a field of `shared.contracts.sample`, or a key of `extra` there."""
        ...

    def compute(self, raw: Raw, now_s: float, past: Mapping[str, Point]) -> Outcome:
        """The figure from raw values read now and the points remembered from the pass before."""
        ...


@dataclass(frozen=True, slots=True)
class Gauge:
    """The raw value of the same name, as it is."""

    name: str

    def compute(self, raw: Raw, now_s: float, past: Mapping[str, Point]) -> Outcome:  # noqa: ARG002
        """See `Figure`."""
        return Outcome(raw.get(self.name))


@dataclass(frozen=True, slots=True)
class Rate:
    """Growth of the counter `of` per second, times `scale`."""

    name: str
    of: str
    scale: float = 1.0

    def compute(self, raw: Raw, now_s: float, past: Mapping[str, Point]) -> Outcome:
        """See `Figure`."""
        now = _point(raw, self.of, now_s)
        if now is None:
            return Outcome(None)
        before = past.get(self.of)
        if before is None or now.value < before.value or now_s <= before.at_s:
            return Outcome(None, {self.of: now})
        return Outcome((now.value - before.value) / (now_s - before.at_s) * self.scale, {self.of: now})


@dataclass(frozen=True, slots=True)
class Ratio:
    """Growth of the counter `of` divided by that of the counter `over`; 0 where neither grew."""

    name: str
    of: str
    over: str

    def compute(self, raw: Raw, now_s: float, past: Mapping[str, Point]) -> Outcome:
        """See `Figure`."""
        now, whole = _point(raw, self.of, now_s), _point(raw, self.over, now_s)
        if now is None or whole is None:
            return Outcome(None)
        points = {self.of: now, self.over: whole}
        before, whole_before = past.get(self.of), past.get(self.over)
        if before is None or whole_before is None:
            return Outcome(None, points)
        part, total = now.value - before.value, whole.value - whole_before.value
        if part < 0 or total < 0 or (total == 0 and part > 0):
            return Outcome(None, points)
        return Outcome(part / total if total else 0.0, points)


@dataclass(frozen=True, slots=True)
class Damped:
    """The number `of`, damped exponentially over `period_s` like the kernel's load average, and like it from 0 on.

    A pass without a count leaves the average where it is; the next one makes up for the time.
    """

    name: str
    of: str
    period_s: float

    def compute(self, raw: Raw, now_s: float, past: Mapping[str, Point]) -> Outcome:
        """See `Figure`."""
        count, before = _point(raw, self.of, now_s), past.get(self.name)
        if count is None:
            return Outcome(None, {self.name: before} if before else {})
        if before is None:
            return Outcome(None, {self.name: Point(0.0, now_s)})
        share = 1.0 - math.exp(-max(0.0, now_s - before.at_s) / self.period_s)
        average = before.value + (count.value - before.value) * share
        return Outcome(average, {self.name: Point(average, now_s)})


def _point(raw: Raw, name: str, now_s: float) -> Point | None:
    value = raw.get(name)
    if not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return Point(value, now_s)
