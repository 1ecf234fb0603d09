"""Type the raw values that sources read, and the points that are remembered from pass to pass. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from shared.contracts.sample import CpuUsage, GroupNuma, Pressure


class CpuTicks(NamedTuple):
    """Time of each CPU so far, busy and altogether, in any unit; `cpus` names them in the same order."""

    cpus: tuple[int, ...]
    busy: tuple[int, ...]
    total: tuple[int, ...]


Value = int | float | str | Pressure | CpuUsage | tuple[GroupNuma, ...] | Mapping[str, int]
"""A mapping has one number for each named part of the target, such as a network card."""
Raw = Mapping[str, Value | CpuTicks]

NUMBER = (int, float)
"""For `isinstance`: the union `int | float` would be built anew for each figure of each pass."""

WANTED = "a number of at least 0 within 64 bits"
MOST = 2**64


class Point(NamedTuple):
    """A number and when it was read, in seconds of the monotonic clock."""

    value: float
    at_s: float


class TicksPoint(NamedTuple):
    """The times of all CPUs and when they were read."""

    value: CpuTicks
    at_s: float


Points = Mapping[str, Point | TicksPoint]


class FigureOutcome(NamedTuple):
    """A figure, what must be remembered to compute it next time, and why it is absent though there was a reading."""

    value: Value | None
    points: Points = {}
    rejected: str = ""


def plausible(value: float) -> bool:
    """Whether a number can come from the kernel: at least 0, no infinity, within 64 bits."""
    return 0 <= value < MOST


def point_of(raw: Raw, name: str, now_s: float) -> Point | None:
    """Return a raw value as a point; None if it is missing or not a plausible number."""
    value = raw.get(name)
    return Point(value, now_s) if isinstance(value, NUMBER) and 0 <= value < MOST else None


def unreadable(raw: Raw, *names: str) -> str:
    """Return why an existing raw value is not a point."""
    if not any(name in raw for name in names):
        return ""
    there = [name for name in names if name in raw and point_of(raw, name, 0.0) is None]
    return ", ".join(f"{name} is {str(raw[name])[:20]}, want {WANTED}" for name in there)


def before_of(past: Points, name: str) -> Point | None:
    """The number that is remembered by that name."""
    point = past.get(name)
    return point if isinstance(point, Point) else None


def went_back(name: str, before: Point, now: Point) -> str:
    """The reason for rejecting a counter that has decreased."""
    return f"{name} went back from {before.value:.0f} to {now.value:.0f}"
