"""Decide whether a dear file must be read in this pass, or whether its figures of a while ago still hold. Pure.

Most containers do nothing most of the time. What costs little is read in every pass (CPU time, memory in use). What
costs more is read again when one of these has moved, and otherwise so seldom that its figures never get older than
the source declares.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from services.metrics.core.figures.target import Kind, Target
from services.metrics.core.figures.values import Raw

_EARLIEST = 0.5
"""Not all targets at once: each has its own share of the longest age, this one or more."""


class Moved(NamedTuple):
    """A raw value that is read in every pass, and the change of it that makes a dearer file worth reading."""

    name: str
    by: float


@dataclass(frozen=True, slots=True)
class Gate:
    """No figure gets older than `every_s`; any of `moved` makes the source be read at once, and once more after it."""

    every_s: float
    moved: tuple[Moved, ...] = ()


WORKED = Moved("cpu_usage_ns", 2e6)
"""2 ms of CPU time: a tenth of a percent of a core over the default period."""
GREW = Moved("memory_usage_bytes", 1 << 20)
"""A change of 1 MiB: all other figures of the target's memory may be off by so much."""

Gates = Mapping[Kind, Gate]


@dataclass(frozen=True, slots=True)
class LastRead:
    """The last reading behind a gate: when, what the watched values were, and whether they were moving."""

    at_s: float
    watched: Raw
    moving: bool


def due(gate: Gate, last: LastRead, watched: Raw, now_s: float, turn: float) -> tuple[bool, bool]:
    """Whether to read now, and whether a watched value has moved since the last reading.

    A value that cannot be compared counts as moved: a dear reading is better than a figure that is wrong. `turn` is
    the target's share of the longest age (`turn_of`).
    """
    moving = _moving(gate, last.watched, watched)
    # `last.moving`: once more after it stood still, so that the last figure is of rest and not of the way there. `0
    # <=`: a clock that went back makes it due.
    return moving or last.moving or not 0 <= now_s - last.at_s < gate.every_s * turn, moving


def turn_of(target: Target) -> float:
    """A share between a half and one that is always the same for a target, so that few are due in one pass.

    The same for all sources: what is due together is read in one go, and between two such passes the target can be
    taken over from the cache.
    """
    thing = f"{target.name} {target.group}" if target.kind == "pool" else target.name
    # Not `hash`, which is salted in each process: a restart would move every target to another turn.
    digest = blake2b(f"{target.kind} {thing}".encode(), digest_size=4).digest()
    return _EARLIEST + (1 - _EARLIEST) * int.from_bytes(digest) / 2**32


def _moving(gate: Gate, before: Raw, now: Raw) -> bool:
    for name, by in gate.moved:
        old, new = before.get(name), now.get(name)
        if not isinstance(old, int | float) or not isinstance(new, int | float) or not -by < new - old < by:
            return True
    return False
