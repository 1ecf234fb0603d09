"""What the collector keeps of one target from pass to pass, to leave dear files alone while they would say the same."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from services.metrics.core.figures.results import Part, Reading
from services.metrics.core.figures.values import Raw
from services.metrics.core.reads.gates import Gate, Last, due


@dataclass(slots=True)
class Kept:
    """One target. `identity` is that of its cgroup, `turn` its share of every longest age."""

    identity: int
    turn: float
    _behind: dict[str, tuple[Part, Last]] = field(default_factory=dict)
    _reading: Reading | None = None
    _quiet_until_s: float = -math.inf
    """Until then nothing behind a gate is due, unless something moves."""

    def still_true(self, name: str, gate: Gate, watched: Raw, now_s: float) -> tuple[Part | None, bool]:
        """The last part of a source where it need not be read, and whether something has moved since."""
        known = self._behind.get(name)
        if known is None:
            return None, True
        wanted, moving = due(gate, known[1], watched, now_s, self.turn)
        return None if wanted else known[0], moving

    def take(self, name: str, part: Part, watched: Raw, *, moving: bool) -> None:
        """Keep a part that has just been read."""
        self._behind[name] = (part, Last(part.at_s, watched, moving))

    def drop(self, name: str) -> None:
        """Forget the part of a source that has failed."""
        self._behind.pop(name, None)

    def rest(self, reading: Reading, gates: Iterable[tuple[str, Gate]]) -> None:
        """Keep a whole reading until a source behind a gate is due: at once, where one is moving or has failed."""
        self._reading, ends = reading, [math.inf]
        for name, gate in gates:
            known = self._behind.get(name)
            ends.append(-math.inf if known is None or known[1].moving else known[1].at_s + gate.every_s * self.turn)
        self._quiet_until_s = min(ends)

    def same(self, parts: Mapping[str, Part], now_s: float) -> Reading | None:
        """The kept reading, where all that is read in every pass is as it was and nothing else is due."""
        last = self._reading
        if last is None or now_s >= self._quiet_until_s:
            return None
        for name, part in parts.items():
            before = last.parts.get(name)
            if before is None or before.raw != part.raw:
                return None
        return last
