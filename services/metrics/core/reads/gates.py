"""Decide whether a dear file must be read in this pass, or whether its figures of a while ago still hold. Pure.

Most containers do nothing most of the time. What costs little is read in every pass (CPU time, memory in use). What
costs more is read again when one of these has moved, and otherwise so seldom that its figures never get older than
the source declares.

What goes on moving is not read in every pass either. It is read when it begins to move, then once in each stretch of
the gate's pause, and at once after a jump: so a pass over hundreds of busy containers reads the dear files of a few of
them, others each time. A whole pass knows no pauses.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import NamedTuple

from services.metrics.core.figures.target import Kind, Target
from services.metrics.core.figures.values import Raw

_EARLIEST = 0.5
"""Not all targets at once: each has its own share of the longest age, this one or more."""


class Moved(NamedTuple):
    """A raw value that is read in every pass, and the change of it that makes a dearer file worth reading.

    From `jump` on it does so in spite of a pause.
    """

    name: str
    by: float
    jump: float = math.inf


@dataclass(frozen=True, slots=True)
class Gate:
    """No figure gets older than `every_s`; any of `moved` makes the source be read at once, and once more after it.

    While it goes on moving it is read once in every `pause_s`.
    """

    every_s: float
    moved: tuple[Moved, ...] = ()
    pause_s: float = 0.0
    stands_in_for: str = ""
    """A raw value of another gated source. Where that has none, this one takes its place and knows no pause."""

    def among(self, told: Iterable[Raw]) -> "Gate":
        """The gate beside what other sources tell of the target."""
        if not self.stands_in_for or any(self.stands_in_for in raw for raw in told):
            return self
        return replace(self, pause_s=0.0)


WORKED = Moved("cpu_usage_ns", 2e6)
"""2 ms of CPU time: a tenth of a percent of a core over the default period."""
GREW = Moved("memory_usage_bytes", 1 << 20, jump=64 << 20)
"""A change of 1 MiB: all other figures of the target's memory may be off by so much; within a pause by the jump."""
PAUSE_S = 8.0
"""The pause of a container's dear figures: four default periods, and less than the 10 s over which the kernel averages
pressure and the evictor's plugins look at system time and load (docs/facts/katalyst-eviction.md)."""

Gates = Mapping[Kind, Gate]


@dataclass(frozen=True, slots=True)
class LastRead:
    """The last reading behind a gate: when, what the watched values were, and whether they were moving.

    `first`: there was none before it, so its counters have no rate yet.
    """

    at_s: float
    watched: Raw
    moving: bool
    first: bool = False


def due(gate: Gate, last: LastRead, watched: Raw, now_s: float, turn: float) -> tuple[bool, bool]:
    """Whether to read now, and whether a watched value has moved since the last reading.

    A value that cannot be compared counts as moved: a dear reading is better than a figure that is wrong. `turn` is
    the target's share of the longest age (`turn_of`).
    """
    moving, jumped = _moved(gate, last.watched, watched)
    # `0 <=`: a clock that went back makes it due.
    if last.first or jumped or not 0 <= now_s - last.at_s < gate.every_s * turn:
        return True, moving
    # Once more after it stood still, so that the last figure is of rest and not of the way there.
    if last.moving:
        return now_s >= pause_ends_s(gate, last.at_s, turn), moving
    return moving, moving


def pause_ends_s(gate: Gate, at_s: float, turn: float) -> float:
    """When what was read and was moving may be read again.

    Time is cut into stretches as long as the pause, at another place for each target: so every pass reads about as many
    targets, also where all have begun to move at once.
    """
    if not gate.pause_s:
        return at_s
    shift = 2 * turn
    return (math.floor(at_s / gate.pause_s + shift) + 1 - shift) * gate.pause_s


def turn_of(target: Target) -> float:
    """A share between a half and one that is always the same for a target, so that few are due in one pass.

    The same for all sources: what is due together is read in one go, and between two such passes the target can be
    taken over from the cache.
    """
    thing = f"{target.name} {target.group}" if target.kind == "pool" else target.name
    # Not `hash`, which is salted in each process: a restart would move every target to another turn.
    digest = blake2b(f"{target.kind} {thing}".encode(), digest_size=4).digest()
    return _EARLIEST + (1 - _EARLIEST) * int.from_bytes(digest) / 2**32


def _moved(gate: Gate, before: Raw, now: Raw) -> tuple[bool, bool]:
    """Whether a watched value has moved, and whether one has jumped."""
    moving = False
    for name, by, jump in gate.moved:
        old, new = before.get(name), now.get(name)
        step = abs(new - old) if isinstance(old, int | float) and isinstance(new, int | float) else math.nan
        if step >= jump:
            return True, True
        moving = moving or not step < by
    return moving, False
