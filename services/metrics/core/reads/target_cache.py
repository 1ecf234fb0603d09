"""Keep the readings of one target from pass to pass, and skip expensive files while their values would be the same."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.metrics.core.figures.results import SourceReading, TargetReading
from services.metrics.core.figures.values import Raw
from services.metrics.core.reads.gates import Gate, LastRead, due, pause_ends_s

GatedSources = Sequence[tuple[str, object, Gate]]
"""Name of a source, the source, and its gate."""


@dataclass(slots=True)
class TargetCache:
    """One target. `identity` is that of its cgroup, `turn` its share of every longest age."""

    identity: int
    turn: float
    _gated: dict[str, tuple[SourceReading, LastRead, float]] = field(default_factory=dict)
    """By source: its last reading, what `due` needs to know of it, and the end of a pause that no jump can end."""
    _reading: TargetReading | None = None
    _valid: tuple[GatedSources, float] | None = None
    """For these sources, the time until which nothing is due unless something moves; None: not computed yet."""

    def still_valid(self, name: str, gate: Gate, watched: Raw, now_s: float) -> tuple[SourceReading | None, bool]:
        """The last reading of a source where it need not be read, and whether something has moved since."""
        known = self._gated.get(name)
        # Never read, or failed the last time: counts as moving.
        if known is None:
            return None, True
        reading, last, pause_ends_at_s = known
        # `due` would say the same, but hundreds of containers pause in every pass.
        if gate.pause_s and last.at_s <= now_s < pause_ends_at_s:
            return reading, True
        wanted, moving = due(gate, last, watched, now_s, self.turn)
        return None if wanted else reading, moving

    def store(self, name: str, gate: Gate, reading: SourceReading, last: tuple[Raw, bool]) -> None:
        """Store what a source has just read, with what was watched then and whether that moved."""
        watched, moving = last
        read = LastRead(reading.at_s, watched, moving, first=name not in self._gated)
        pauses = gate.pause_s and moving and not read.first and not gate.watches_jumps
        self._gated[name] = (reading, read, self._holds_until_s(gate, read) if pauses else -math.inf)

    def forget(self, name: str) -> None:
        """Forget what a source had read that has failed now."""
        self._gated.pop(name, None)

    def store_whole(self, reading: TargetReading) -> None:
        """Store a whole reading."""
        self._reading, self._valid = reading, None

    def unchanged(
        self, always: Mapping[str, SourceReading], gated: GatedSources, now_s: float
    ) -> TargetReading | None:  # fmt: skip
        """Return the stored reading if everything that is read in every pass is unchanged and nothing else is due."""
        last = self._reading
        if last is None:
            return None
        for name, reading in always.items():
            before = last.sources.get(name)
            if before is None or before.raw != reading.raw:
                return None
        # Reckoned here and not when it is stored: what moves never comes so far. The very same list in each pass, but
        # another in a whole one.
        if self._valid is None or self._valid[0] is not gated:
            self._valid = (gated, min((self._ends_s(gate, name) for name, _, gate in gated), default=math.inf))
        return last if now_s < self._valid[1] else None

    def _ends_s(self, gate: Gate, name: str) -> float:
        """Return until when a source's reading holds if nothing moves any more; not at all if it was read for the
        first time or has failed."""
        known = self._gated.get(name)
        if known is None or known[1].first:
            return -math.inf
        return self._holds_until_s(gate, known[1])

    def _holds_until_s(self, gate: Gate, last: LastRead) -> float:
        end_s = last.at_s + gate.every_s * self.turn
        return min(end_s, pause_ends_s(gate, last.at_s, self.turn)) if last.moving else end_s
