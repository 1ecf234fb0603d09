"""Decide whether an expensive file must be read in this pass, or whether its earlier figures still hold. Pure.

Most containers do nothing most of the time. Cheap files are read in every pass (CPU time, memory in use). An expensive
file is read again when one of these figures has moved, and otherwise just often enough that its figures never get older
than the source declares.

A container that keeps moving is not read in every pass either. It is read when it begins to move, then once per pause
of the gate, and at once after a jump. A pass over hundreds of busy containers therefore reads the expensive files of a
few of them, others each time. A whole pass ignores pauses.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from services.metrics.core.figures.target import Kind, Target
from services.metrics.core.figures.values import NUMBER, Raw

STILL_TIMES = 2.0
"""Factor to the longest age for a target that has not moved at all: nothing has run in it that could have changed a
figure, but who wants a CPU and gets none looks the same."""
_EARLIEST = 0.5
"""Spreads the targets over time: each has its own share of the longest age, at least this one."""


class Moved(NamedTuple):
    """A raw value that is read in every pass, and the change of it that makes a dearer file worth reading.

    From `jump` on it does so in spite of a pause.
    """

    name: str
    by: float
    jump: float = math.inf


@dataclass(frozen=True, slots=True)
class Gate:
    """No figure gets older than `every_s`, or twice that while all of `moved` stand still to the last digit; a change
    of any of them triggers a reading at once, and once more after it.

    While the target keeps moving it is read once per `pause_s`.
    """

    every_s: float
    moved: tuple[Moved, ...] = ()
    pause_s: float = 0.0
    stands_in_for: str = ""
    """A raw value of another gated source. Where that has none, this one takes its place and knows no pause."""
    batch_pause_s: float = 0.0
    """The pause for containers of batch work, if it is longer: nobody sizes a pool by what they wait for."""

    watches_jumps: bool = field(init=False, repr=False, compare=False)
    """Whether any watched value may end a pause."""

    def __post_init__(self) -> None:
        """Look at the watched values once: it is asked for each container in each pass."""
        object.__setattr__(self, "watches_jumps", any(moved.jump < math.inf for moved in self.moved))

    def of_batch(self) -> "Gate":
        """Return the gate for a container of batch work."""
        return replace(self, pause_s=max(self.pause_s, self.batch_pause_s), stands_in_for="")

    def among(self, told: Iterable[Raw]) -> "Gate":
        """Return the gate restricted to the values that other sources provide for the target."""
        if not self.stands_in_for or any(self.stands_in_for in raw for raw in told):
            return self
        return without_pause(self)


@lru_cache(maxsize=64)
def without_pause(gate: Gate) -> Gate:
    """Return the gate of a target that is read however often it moves."""
    return replace(gate, pause_s=0.0)


WORKED = Moved("cpu_usage_ns", 2e6)
"""2 ms of CPU time: a tenth of a percent of a core over the default period."""
GREW = Moved("memory_usage_bytes", 1 << 20, jump=64 << 20)
"""A change of 1 MiB: all other figures of the target's memory may be off by so much; within a pause by the jump."""
PAUSE_S = 8.0
"""The pause of a container's expensive figures: four default periods, and less than the 10 s over which the kernel
averages pressure and the evictor's plugins evaluate system time and load (docs/facts/katalyst-eviction.md)."""

Gates = Mapping[Kind, Gate]


@dataclass(frozen=True, slots=True)
class LastRead:
    """The last reading behind a gate: its time, the watched values, and whether they were moving.

    `first`: there was none before it, so its counters have no rate yet.
    """

    at_s: float
    watched: Raw
    moving: bool
    first: bool = False


def due(gate: Gate, last: LastRead, watched: Raw, now_s: float, turn: float) -> tuple[bool, bool]:
    """Return whether to read now, and whether a watched value has moved since the last reading.

    A value that cannot be compared counts as moved, because an expensive reading is better than a wrong figure. `turn`
    is the target's share of the longest age (`turn_of`).
    """
    moving, jumped = _moved(gate, last.watched, watched)
    # `0 <=`: a clock that went back makes it due.
    age_s, longest_s = now_s - last.at_s, gate.every_s * turn
    if last.first or jumped or not 0 <= age_s < STILL_TIMES * longest_s:
        return True, moving
    if age_s >= longest_s and not stands_still(gate, last, watched):
        return True, moving
    # Once more after it stood still, so that the last figure is of rest and not of the way there.
    if last.moving:
        return now_s >= pause_ends_s(gate, last.at_s, turn), moving
    return moving, moving


def stands_still(gate: Gate, last: LastRead, watched: Raw) -> bool:
    """Whether no watched value has changed at all since a reading, and none was changing then; False where nothing is
    watched."""
    names = [moved.name for moved in gate.moved]
    known = all(name in watched and last.watched.get(name) == watched[name] for name in names)
    return bool(names) and known and not last.moving


def pause_ends_s(gate: Gate, at_s: float, turn: float) -> float:
    """Return when a target that was read while moving may be read again.

    Time is divided into stretches as long as the pause, with a different offset for each target, so every pass reads
    about as many targets even if all began to move at once.
    """
    if not gate.pause_s:
        return at_s
    shift = 2 * turn
    return (math.floor(at_s / gate.pause_s + shift) + 1 - shift) * gate.pause_s


def turn_of(target: Target) -> float:
    """Return a share between a half and one that is fixed for a target, so that few targets are due in one pass.

    It is the same for all sources, so what is due together is read together, and between two such passes the target can
    come from the cache.
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
        step = abs(new - old) if isinstance(old, NUMBER) and isinstance(new, NUMBER) else math.nan
        if step >= jump:
            return True, True
        moving = moving or not step < by
    return moving, False
