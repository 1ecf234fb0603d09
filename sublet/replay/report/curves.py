"""Curves of one node as inline SVG: what tenants wanted, what they had, what was offered, where it was too little.

From below the tenants' demand, from above the offer: what is left between them is idle. Colours are classes, so that
the page's style may change them in the dark.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sublet.replay.run import Curve

WIDTH, HEIGHT = 1040, 190
LEFT, RIGHT, TOP, BOTTOM = 34, 8, 6, 20
MAX_BINS = 480
MIN_MARK_PX = 1.5
"""A violation is never drawn narrower: one frame of a day would not be seen."""
FLAG_PX = 6
_TICKS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)
_MAX_TICKS = 10
_MINUTE_S, _HOUR_S = 60, 3600

Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Bin:
    """Some frames in one column: the largest demand, the smallest room, the mean offer, whether any was violated."""

    from_s: float
    to_s: float
    wanted_cores: float
    room_cores: float
    offered_cores: float
    missing_cores: float
    violated: bool


def bins(curve: Curve, most: int = MAX_BINS) -> list[Bin]:
    """The curve in at most so many columns; each value holds for the time that ends with it."""
    size = max(1, math.ceil(len(curve.at_s) / most))
    found = []
    for first in range(0, len(curve.at_s), size):
        part = slice(first, first + size)
        wanted, room = curve.wanted_cores[part], curve.room_cores[part]
        start_s = curve.at_s[first - 1] if first else curve.start_s
        found.append(
            Bin(
                from_s=start_s,
                to_s=curve.at_s[part][-1],
                wanted_cores=max(wanted),
                room_cores=min(room),
                offered_cores=math.fsum(curve.offered_cores[part]) / len(wanted),
                missing_cores=max(w - r for w, r in zip(wanted, room, strict=True)),
                violated=any(curve.violated[part]),
            )
        )
    return found


def draw(name: str, curve: Curve, cpus: int) -> str:
    """One contender's plot; an empty one where nothing was decided."""
    columns = bins(curve)
    if not columns:
        return ""
    start_s, end_s = columns[0].from_s, columns[-1].to_s

    def x(at_s: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at_s - start_s) / max(end_s - start_s, 1e-9)

    def y(cores: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(max(cores / cpus, 0.0), 1.0)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}: CPUs over time">',
        *_grid(x, y, cpus, start_s, end_s),
        f'<path class="offer" d="{_area(columns, [cpus - c.offered_cores for c in columns], cpus, x, y)}"/>',
        f'<path class="want" d="{_area(columns, [c.wanted_cores for c in columns], 0, x, y)}"/>',
        *_violations(columns, x, y),
        f'<path class="room" d="{_stairs(columns, [c.room_cores for c in columns], x, y)}"/>',
        "</svg>",
    ]
    return "".join(parts)


def _stairs(columns: Sequence[Bin], values: Sequence[float], x: Scale, y: Scale) -> str:
    """A line that holds each value for its column; what stays the same is drawn once."""
    commands = [f"M{x(columns[0].from_s):.1f} {y(values[0]):.1f}"]
    last = values[0]
    for column, value in zip(columns, values, strict=True):
        if value != last:
            commands.append(f"H{x(column.from_s):.1f}V{y(value):.1f}")
        last = value
    return "".join([*commands, f"H{x(columns[-1].to_s):.1f}"])


def _area(columns: Sequence[Bin], values: Sequence[float], base: float, x: Scale, y: Scale) -> str:
    return f"{_stairs(columns, values, x, y)}V{y(base):.1f}H{x(columns[0].from_s):.1f}Z"


def _violations(columns: Sequence[Bin], x: Scale, y: Scale) -> list[str]:
    """A band over the whole height with a flag on top, and what was missing."""
    parts = []
    for column in columns:
        if column.violated:
            left = x(column.from_s)
            width = max(x(column.to_s) - left, MIN_MARK_PX)
            top, bottom = y(column.room_cores + max(column.missing_cores, 0.0)), y(column.room_cores)
            for style, from_y, to_y in (("bad", TOP, y(0)), ("miss", top, bottom), ("miss", TOP, TOP + FLAG_PX)):
                box = f'x="{left:.1f}" y="{from_y:.1f}" width="{width:.1f}" height="{to_y - from_y:.1f}"'
                parts.append(f'<rect class="{style}" {box}/>')
    return parts


def _grid(x: Scale, y: Scale, cpus: int, start_s: float, end_s: float) -> list[str]:
    parts = []
    for value in (0.0, cpus / 2, float(cpus)):
        parts.append(f'<path class="grid" d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}"/>')
        parts.append(f'<text class="end" x="{LEFT - 5}" y="{y(value) + 4:.1f}">{value:g}</text>')
    step_s = next((step for step in _TICKS_S if (end_s - start_s) / step <= _MAX_TICKS), _TICKS_S[-1])
    at_s = math.ceil(start_s / step_s) * step_s
    while at_s <= end_s:
        place = "end" if x(at_s) > WIDTH - RIGHT - 20 else "mid" if x(at_s) > LEFT + 10 else ""
        parts.append(f'<text class="{place}" x="{x(at_s):.1f}" y="{HEIGHT - 5}">{moment(at_s, step_s)}</text>')
        at_s += step_s
    return parts


def moment(at_s: float, step_s: float) -> str:
    """A time on the axis: hours and minutes, or minutes and seconds where the ticks are close."""
    whole = round(at_s)
    if step_s >= 15 * _MINUTE_S:
        return f"{whole // _HOUR_S}:{whole // _MINUTE_S % _MINUTE_S:02d} h"
    return f"{whole // _MINUTE_S}:{whole % _MINUTE_S:02d}"
