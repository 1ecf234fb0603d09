"""What a pass reads, and what it leaves for the next one. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from services.metrics.core.figures.target import Target
from services.metrics.core.figures.values import Point, Points, Raw, Value
from shared.contracts.envelope import Part as MessagePart
from shared.contracts.sample import PodReading


class Part(NamedTuple):
    """What one source read of one target, and when."""

    at_s: float
    raw: Raw


class Reading(NamedTuple):
    """One target by source. `identity` differs when its cgroup was removed and made anew.

    A part that is the very one of the last pass was not read again, because nothing moved; a reading that is the very
    one of the last pass says the same in all that was read again. A source without a part has failed.
    """

    at_s: float
    parts: Mapping[str, Part]
    identity: int = 0

    @property
    def raw(self) -> dict[str, Any]:
        """The raw values of all sources."""
        return {name: value for part in self.parts.values() for name, value in part.raw.items()}


def same_raw(before: Reading, now: Reading) -> bool:
    """Whether two readings of one target say the same, whenever they were made."""
    return (
        before.identity == now.identity
        and before.parts.keys() == now.parts.keys()
        and all(before.parts[name].raw == part.raw for name, part in now.parts.items())
    )


class Done(NamedTuple):
    """What one part has become: its figures, what is remembered for the next ones, and why figures are missing."""

    part: Part
    values: Mapping[str, Value]
    points: Points
    odd: Mapping[str, str] = {}


class Past(NamedTuple):
    """One target in the last pass: by source, all its figures, and the part of the message that they made."""

    reading: Reading
    done: Mapping[str, Done]
    values: dict[str, Value]
    model: MessagePart | None
    rests: bool = False
    """Whether the same reading once more would give the same figures: all rates are 0, all averages settled."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What one pass leaves for the next. A target that a pass did not see is forgotten: its rates begin anew."""

    at_s: float | None = None
    past: Mapping[Target, Past] = field(default_factory=dict)
    pods: Mapping[str, PodReading] = field(default_factory=dict)
    odd: Mapping[str, str] = field(default_factory=dict)
    """Figures that are missing in this pass though their files were read, by "<target>: <figure>", and why."""

    def based_on(self, target: Target, counter: str, point: Point) -> "Memory":
        """The same with a later point for one counter, so that its next rate covers a shorter time.

        Left as it is where the target is not known, or the point is not later or went back.
        """
        known = self.past.get(target)
        if known is None:
            return self
        for source, done in known.done.items():
            before = done.points.get(counter)
            if isinstance(before, Point) and point.at_s > before.at_s and point.value >= before.value:
                moved = done._replace(points={**done.points, counter: point})
                past = known._replace(done={**known.done, source: moved})
                return replace(self, past={**self.past, target: past})
        return self
