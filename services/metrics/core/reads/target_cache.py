"""Keep the readings of one target from pass to pass, to leave dear files alone while they would say the same."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from services.metrics.core.figures.results import SourceReading, TargetReading
from services.metrics.core.figures.values import Raw
from services.metrics.core.reads.gates import Gate, LastRead, due, pause_ends_s


@dataclass(slots=True)
class TargetCache:
    """One target. `identity` is that of its cgroup, `turn` its share of every longest age."""

    identity: int
    turn: float
    _gated: dict[str, tuple[SourceReading, LastRead]] = field(default_factory=dict)
    _reading: TargetReading | None = None
    _valid_until_s: float = -math.inf
    """Until then nothing behind a gate is due, unless something moves."""

    def still_valid(self, name: str, gate: Gate, watched: Raw, now_s: float) -> tuple[SourceReading | None, bool]:
        """The last reading of a source where it need not be read, and whether something has moved since."""
        known = self._gated.get(name)
        # Never read, or failed the last time: counts as moving.
        if known is None:
            return None, True
        wanted, moving = due(gate, known[1], watched, now_s, self.turn)
        return None if wanted else known[0], moving

    def store(self, name: str, reading: SourceReading, watched: Raw, *, moving: bool) -> None:
        """Store what a source has just read."""
        self._gated[name] = (reading, LastRead(reading.at_s, watched, moving, first=name not in self._gated))

    def forget(self, name: str) -> None:
        """Forget what a source had read that has failed now."""
        self._gated.pop(name, None)

    def store_whole(self, reading: TargetReading, gates: Iterable[tuple[str, Gate]]) -> None:
        """Store a whole reading; it is valid until a source behind a gate is due.

        Not at all where one has been read for the first time or has failed: it must be read in the next pass.
        """
        self._reading, ends = reading, [math.inf]
        for name, gate in gates:
            known = self._gated.get(name)
            ends.append(-math.inf if known is None else self._ends_s(gate, known[1]))
        self._valid_until_s = min(ends)

    def _ends_s(self, gate: Gate, last: LastRead) -> float:
        """Until when a reading holds if nothing moves any more."""
        if last.first:
            return -math.inf
        end_s = last.at_s + gate.every_s * self.turn
        return min(end_s, pause_ends_s(gate, last.at_s, self.turn)) if last.moving else end_s

    def unchanged(self, always: Mapping[str, SourceReading], now_s: float) -> TargetReading | None:
        """The stored reading, where all that is read in every pass is as it was and nothing else is due."""
        last = self._reading
        if last is None or now_s >= self._valid_until_s:
            return None
        for name, reading in always.items():
            before = last.sources.get(name)
            if before is None or before.raw != reading.raw:
                return None
        return last
