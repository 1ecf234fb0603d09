"""Keep the readings of one target from pass to pass, and skip expensive files while their values would be the same."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.metrics.core.figures.results import SourceReading, TargetReading
from services.metrics.core.figures.values import Raw
from services.metrics.core.reads.gates import STILL_TIMES, Gate, LastRead, due, pause_ends_s, stands_still

GatedSources = Sequence[tuple[str, object, Gate]]
"""Name of a source, the source, and its gate."""


@dataclass(slots=True)
class TargetCache:
    """One target. `identity` is that of its cgroup, `turn` its share of every longest age."""

    identity: int
    turn: float
    _gated: dict[str, tuple[SourceReading, LastRead, float]] = field(default_factory=dict)
    """By source: its last reading, what `due` needs to know of it, and until when it holds whatever moves."""
    _reading: TargetReading | None = None
    _valid: tuple[GatedSources, float] | None = None
    """For these sources, the time until which nothing is due unless something moves; None: not computed yet."""

    def still_valid(self, name: str, gate: Gate, watched: Raw, now_s: float) -> tuple[SourceReading | None, bool]:
        """The last reading of a source where it need not be read, and whether something has moved since."""
        known = self._gated.get(name)
        # Never read, or failed the last time: counts as moving.
        if known is None:
            return None, True
        reading, last, holds_until_s = known
        # `due` would say the same, but it is hundreds of containers that pause, or are asked for what nothing moves.
        if last.at_s <= now_s < holds_until_s and (gate.pause_s or not gate.moved):
            return reading, bool(gate.moved)
        wanted, moving = due(gate, last, watched, now_s, self.turn)
        return None if wanted else reading, moving

    def store(self, name: str, gate: Gate, reading: SourceReading, last: tuple[Raw, bool]) -> None:
        """Store what a source has just read, with what was watched then and whether that moved."""
        watched, moving = last
        read = LastRead(reading.at_s, watched, moving, first=name not in self._gated)
        holds = not gate.moved or (gate.pause_s and moving and not gate.watches_jumps)
        until_s = self._holds_until_s(gate, read) if holds and not read.first else -math.inf
        self._gated[name] = (reading, read, until_s)

    def forget(self, name: str) -> None:
        """Forget what a source had read that has failed now."""
        self._gated.pop(name, None)

    def store_whole(self, reading: TargetReading) -> None:
        """Store a whole reading."""
        self._reading, self._valid = reading, None

    def held(self, always: Sequence[tuple[str, object]], gated: GatedSources, now_s: float) -> TargetReading | None:
        """Return the stored reading of a target that stands still, if it has all that is read in every pass and nothing
        else is due."""
        last = self._reading
        if last is None:
            return None
        known = {name: last.sources[name] for name, _ in always if name in last.sources}
        return self.unchanged(known, gated, now_s) if len(known) == len(always) else None

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
            watched = {name: value for reading in always.values() for name, value in reading.raw.items()}
            ends_s = (self._ends_s(gate, name, watched) for name, _, gate in gated)
            self._valid = (gated, min(ends_s, default=math.inf))
        return last if now_s < self._valid[1] else None

    def _ends_s(self, gate: Gate, name: str, watched: Raw) -> float:
        """Return until when a source's reading holds if nothing moves any more; not at all if it was read for the
        first time or has failed."""
        known = self._gated.get(name)
        if known is None or known[1].first:
            return -math.inf
        last = known[1]
        if stands_still(gate, last, watched):
            return last.at_s + STILL_TIMES * gate.every_s * self.turn
        return self._holds_until_s(gate, last)

    def _holds_until_s(self, gate: Gate, last: LastRead) -> float:
        end_s = last.at_s + gate.every_s * self.turn
        return min(end_s, pause_ends_s(gate, last.at_s, self.turn)) if last.moving else end_s
