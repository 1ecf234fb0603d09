"""Hold what a pass reads of each target, and what it leaves for the next pass. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from services.metrics.core.figures.target import Target
from services.metrics.core.figures.values import Point, Points, Raw, Value
from shared.contracts.envelope import MessagePart
from shared.contracts.sample import PodReading


class SourceReading(NamedTuple):
    """What one source read of one target, and when."""

    at_s: float
    raw: Raw


class TargetReading(NamedTuple):
    """What was read of one target, by source. `identity` differs if its cgroup was removed and recreated.

    If a source's reading is the same object as in the last pass, it was not read again. If the whole reading is the
    same object, the sources of every pass were read and have not changed. A source without a reading has failed.
    """

    at_s: float
    sources: Mapping[str, SourceReading]
    identity: int = 0

    @property
    def raw(self) -> dict[str, Any]:
        """The raw values of all sources."""
        return {name: value for reading in self.sources.values() for name, value in reading.raw.items()}


class SourceResult(NamedTuple):
    """The result of one source's reading: its figures, the points for the next ones, and why figures are missing."""

    reading: SourceReading
    values: Mapping[str, Value]
    points: Points
    rejected: Mapping[str, str] = {}


class TargetResult(NamedTuple):
    """The figures of one target, when they were computed, and the part of the message that they make."""

    reading: TargetReading
    at_s: float
    sources: Mapping[str, SourceResult]
    values: Mapping[str, Value]
    model: MessagePart | None = None
    steady: bool = False
    """Whether the same reading once more would give the same figures (`cache.is_steady`)."""


@dataclass(frozen=True, slots=True)
class LastPass:
    """What one pass leaves for the next. A target that a pass did not see is forgotten: its rates begin again."""

    at_s: float | None = None
    results: Mapping[Target, TargetResult] = field(default_factory=dict)
    pods: Mapping[str, PodReading] = field(default_factory=dict)
    rejected: Mapping[str, str] = field(default_factory=dict)
    """Figures that are missing in this pass though their files were read, by "<target>: <figure>", and why."""

    def based_on(self, target: Target, counter: str, point: Point) -> "LastPass":
        """Return the same with a later point for one counter, so that its next rate covers a shorter time.

        The pass is unchanged if the target is unknown, or the point is not later or went back.
        """
        known = self.results.get(target)
        if known is None:
            return self
        for source, result in known.sources.items():
            before = result.points.get(counter)
            # The probe may be the older of the two, and no rate may cover a negative time.
            if isinstance(before, Point) and point.at_s > before.at_s and point.value >= before.value:
                moved = result._replace(points={**result.points, counter: point})
                known = known._replace(sources={**known.sources, source: moved})
                return replace(self, results={**self.results, target: known})
        return self
