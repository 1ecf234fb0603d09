"""Charts as data for the chart library in the browser."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Shape = Literal["line", "stairs", "dots", "triangles"]
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One series: a value for each place on the x axis; None interrupts it."""

    name: str
    role: str
    """Whose colour it has: a key of `colours.SERIES`."""
    values: Values
    shape: Shape = "line"
    filled: bool = False
    from_top: bool = False
    """Drawn from the top down: what is left between it and a line from below is nobody's."""


@dataclass(frozen=True, slots=True)
class ChartBand:
    """A marked span of the x axis; a `lack` is drawn in that colour, however short it is."""

    first: float
    last: float
    name: str = ""
    lack: bool = False


@dataclass(frozen=True, slots=True)
class ChartAxes:
    """Both axes. All charts of a group have the same x axis, one cursor and one zoom."""

    first_x: float
    last_x: float
    low: float
    top: float
    unit: str
    logarithmic: bool = False
    clock: bool = False
    """Seconds on the x axis are written as hours and minutes."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over time."""

    title: str
    axes: ChartAxes
    x: Sequence[float]
    lines: Sequence[ChartLine]
    bands: Sequence[ChartBand] = ()
    note: str = ""
    group: str = "time"

    def data(self) -> dict[str, Any]:
        """What the browser gets, as JSON values."""
        axes = self.axes
        return {
            "kind": "lines",
            "title": self.title,
            "group": self.group,
            "span": [axes.first_x, axes.last_x],
            "range": [axes.low, axes.top],
            "unit": axes.unit,
            "log": axes.logarithmic,
            "clock": axes.clock,
            "x": _rounded(self.x),
            "lines": [
                {
                    "name": line.name,
                    "role": line.role,
                    "shape": line.shape,
                    "filled": line.filled,
                    "fromTop": line.from_top,
                    "y": _rounded(line.values),
                }
                for line in self.lines
            ],
            "bands": [{"from": b.first, "to": b.last, "name": b.name, "lack": b.lack} for b in self.bands],
        }


@dataclass(frozen=True, slots=True)
class ScatterDot:
    """A dot with a name; a `best` one stands out."""

    name: str
    x: float
    y: float
    best: bool = False
    curve: str = ""
    """Dots of one curve are joined by a line, from left to right; empty: it stands alone."""
    label: str | None = None
    """What stands beside it; None: its name."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """Named dots; the x axis is linear near zero and logarithmic further out, the y axis goes to 100 %."""

    title: str
    x_label: str
    y_label: str
    dots: Sequence[ScatterDot]
    note: str = ""

    def data(self) -> dict[str, Any]:
        """What the browser gets, as JSON values."""
        dots = sorted(self.dots, key=lambda dot: (dot.x, dot.y, dot.name))
        return {
            "kind": "scatter",
            "title": self.title,
            "xLabel": self.x_label,
            "yLabel": self.y_label,
            "dots": [
                {
                    "name": d.name,
                    "x": d.x,
                    "y": d.y,
                    "best": d.best,
                    "curve": d.curve,
                    "label": d.name if d.label is None else d.label,
                }
                for d in dots
            ],
        }


def _rounded(values: Values) -> list[float | None]:
    """Four digits are more than a screen shows; the file is a third of the size."""
    return [None if value is None else float(f"{value:.6g}") for value in values]
