"""Derive figures from raw values: unchanged, as rates of counters, as ratios, or damped like the kernel's load.

Pure. A figure is absent (None) if it cannot be known: no raw value, no second point yet, or a counter that went back or
stands still because something is wrong. It is never negative and never a spike.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from services.metrics.core.figures.target import Kind
from services.metrics.core.figures.values import (
    MOST,
    CpuTicks,
    FigureOutcome,
    Point,
    Points,
    Raw,
    TicksPoint,
    before_of,
    point_of,
    unreadable,
    went_back,
)
from shared.contracts.sample import CpuUsage
from shared.core.cpus.cpuset import CpuSet

STILL_S = 0.5
"""A counter of the machine's own time that did not grow for this long is broken: at 100 Hz it grows 50 times."""


class Figure(Protocol):
    """One figure of a source."""

    decays: ClassVar[bool]
    """Whether it changes with time alone, while its raw value stays."""

    @property
    def name(self) -> str:
        """Its name: a field of `shared.contracts.sample`, or a key of `extra` there."""
        ...

    def compute(self, raw: Raw, now_s: float, past: Points) -> FigureOutcome:
        """The figure from raw values read now and the points remembered from the pass before."""
        ...


class OfferedFigures(NamedTuple):
    """What one source offers for one kind of target. A gated source is not read in every pass."""

    figures: tuple[Figure, ...]
    gated: bool = False
    decaying: tuple[Figure, ...] = ()
    """Those of its figures that change with time alone."""

    @classmethod
    def of(cls, figures: Sequence[Figure], *, gated: bool = False) -> "OfferedFigures":
        """An offer of these figures."""
        return cls(tuple(figures), gated, tuple(figure for figure in figures if figure.decays))


OffersByKind = Mapping[Kind, Mapping[str, OfferedFigures]]
"""What each source offers for each kind of target."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """The raw value of the same name, unchanged."""

    name: str
    decays: ClassVar[bool] = False

    def compute(self, raw: Raw, now_s: float, past: Points) -> FigureOutcome:  # noqa: ARG002
        """See `Figure`."""
        value = raw.get(self.name)
        return FigureOutcome(None if isinstance(value, CpuTicks) else value)


@dataclass(frozen=True, slots=True)
class Rate:
    """Growth of the counter `of` per second, times `scale`. Absent while the counter `alive` stands still."""

    name: str
    of: str
    scale: float = 1.0
    alive: str = ""
    decays: ClassVar[bool] = False

    def compute(self, raw: Raw, now_s: float, past: Points) -> FigureOutcome:
        """See `Figure`."""
        value, known = raw.get(self.of), past.get(self.of)
        # The usual counter: a whole number that did not go back, over a time that passed.
        if type(value) is int and type(known) is Point and not self.alive and known.value <= value < MOST:
            span_s = now_s - known.at_s
            if span_s > 0:
                return FigureOutcome((value - known.value) / span_s * self.scale, {self.of: Point(value, now_s)})
        return self._judged(raw, now_s, past)

    def _judged(self, raw: Raw, now_s: float, past: Points) -> FigureOutcome:
        """The figure of a counter that is looked at from all sides."""
        now = point_of(raw, self.of, now_s)
        if now is None:
            return FigureOutcome(None, rejected=unreadable(raw, self.of))
        life = point_of(raw, self.alive, now_s) if self.alive else None
        points = {self.of: now} if life is None else {self.of: now, self.alive: life}
        before, span_s = before_of(past, self.of), 0.0
        if before is not None:
            span_s = now_s - before.at_s
        # No second point yet: absent, and not 0.
        if before is None or span_s == 0:
            return FigureOutcome(None, points)
        if rejected := self._why_not(now, before, span_s, life, before_of(past, self.alive)):
            return FigureOutcome(None, points, rejected)
        return FigureOutcome((now.value - before.value) / span_s * self.scale, points)

    def _why_not(self, now: Point, before: Point, span_s: float, life: Point | None, life_before: Point | None) -> str:
        if span_s < 0:
            return f"the clock went back by {-span_s:.1f} s"
        if now.value < before.value:
            return went_back(self.of, before, now)
        if life is not None and life_before is not None and life.value <= life_before.value and span_s >= STILL_S:
            return f"{self.alive} stands still at {life.value:.0f}"
        return ""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Growth of the counter `of` divided by that of the counter `over`; 0 where neither grew."""

    name: str
    of: str
    over: str
    decays: ClassVar[bool] = False

    def compute(self, raw: Raw, now_s: float, past: Points) -> FigureOutcome:
        """See `Figure`."""
        now, whole = point_of(raw, self.of, now_s), point_of(raw, self.over, now_s)
        if now is None or whole is None:
            return FigureOutcome(None, rejected=unreadable(raw, self.of, self.over))
        points = {self.of: now, self.over: whole}
        before, whole_before = before_of(past, self.of), before_of(past, self.over)
        if before is None or whole_before is None:
            return FigureOutcome(None, points)
        part, total = now.value - before.value, whole.value - whole_before.value
        if part < 0 or total < 0:
            back = (self.of, before, now) if part < 0 else (self.over, whole_before, whole)
            return FigureOutcome(None, points, went_back(*back))
        # A share of nothing: one of the two counters is wrong, and it is unknown which.
        if part > 0 and total == 0:
            return FigureOutcome(None, points, f"{self.of} grew by {part:.0f} while {self.over} stood still")
        return FigureOutcome(part / total if total else 0.0, points)


@dataclass(frozen=True, slots=True)
class Quotient:
    """The number `of` divided by the number `over`, both from the same reading; absent if `over` is 0."""

    name: str
    of: str
    over: str
    decays: ClassVar[bool] = False

    def compute(self, raw: Raw, now_s: float, past: Points) -> FigureOutcome:  # noqa: ARG002
        """See `Figure`."""
        part, whole = point_of(raw, self.of, now_s), point_of(raw, self.over, now_s)
        if part is None or whole is None:
            return FigureOutcome(None, rejected=unreadable(raw, self.of, self.over))
        return FigureOutcome(part.value / whole.value if whole.value else None)


@dataclass(frozen=True, slots=True)
class Damped:
    """The number `of`, damped exponentially over `period_s` like the kernel's load average, and like it from 0 on.

    A pass without a count leaves the average where it is; the next one makes up for the time.
    """

    name: str
    of: str
    period_s: float
    decays: ClassVar[bool] = True

    def compute(self, raw: Raw, now_s: float, past: Points) -> FigureOutcome:
        """See `Figure`."""
        count, before = point_of(raw, self.of, now_s), before_of(past, self.name)
        if count is None:
            return FigureOutcome(None, {self.name: before} if before else {}, unreadable(raw, self.of))
        if before is None:
            return FigureOutcome(None, {self.name: Point(0.0, now_s)})
        # Never back in time: a reading may be older than the moment up to which the average was carried on.
        average, at_s = before.value, max(now_s, before.at_s)
        if average != count.value:
            average += (count.value - average) * (1.0 - math.exp((before.at_s - at_s) / self.period_s))
        return FigureOutcome(average, {self.name: Point(average, at_s)})


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of the figure of the same name over a pool's containers; `summary` knows them."""

    name: str
    decays: ClassVar[bool] = False

    def compute(self, raw: Raw, now_s: float, past: Points) -> FigureOutcome:  # noqa: ARG002
        """Return nothing: `services.metrics.core.sample.summary` computes totals."""
        return FigureOutcome(None)


@dataclass(frozen=True, slots=True)
class BusyCpus:
    """How busy each CPU was, in whole percent; a CPU whose time went back or stood still is left out."""

    name: str
    of: str
    decays: ClassVar[bool] = False

    def compute(self, raw: Raw, now_s: float, past: Points) -> FigureOutcome:
        """See `Figure`."""
        now, known = raw.get(self.of), past.get(self.of)
        if not isinstance(now, CpuTicks):
            return FigureOutcome(None)
        points = {self.of: TicksPoint(now, now_s)}
        if not isinstance(known, TicksPoint):
            return FigureOutcome(None, points)
        before = known.value
        if before.cpus == now.cpus:
            pairs = zip(now.cpus, now.busy, now.total, before.busy, before.total, strict=True)
        else:
            places = {cpu: place for place, cpu in enumerate(before.cpus)}
            # CPUs come and go with hotplug: compared are those that were there both times.
            both = [(place, places[cpu]) for place, cpu in enumerate(now.cpus) if cpu in places]
            pairs = zip(
                [now.cpus[a] for a, _ in both], [now.busy[a] for a, _ in both], [now.total[a] for a, _ in both],
                [before.busy[b] for _, b in both], [before.total[b] for _, b in both], strict=True,
            )  # fmt: skip
        shares = [
            (cpu, 100 * (busy - busy_before) / (total - total_before))
            for cpu, busy, total, busy_before, total_before in pairs
            if total > total_before and busy >= busy_before
        ]
        if not shares:
            rejected = f"{self.of}: the time of no CPU has grown" if now_s - known.at_s >= STILL_S else ""
            return FigureOutcome(None, points, rejected)
        percents = tuple(min(100, round(share)) for _, share in shares)
        return FigureOutcome(CpuUsage(cpus=str(CpuSet.of(cpu for cpu, _ in shares)), busy_percent=percents), points)
