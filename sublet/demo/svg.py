"""Line plots over time as SVG text: no library, no script, readable in every browser and on paper."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

Scale = Callable[[float], float]
WIDTH, HEIGHT = 460, 170
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 22, 26


@dataclass(frozen=True, slots=True)
class PlotSeries:
    """One line: points of (seconds, value); a value of None interrupts it. `step` draws it as stairs."""

    name: str
    colour: str
    points: Sequence[tuple[float, float | None]]
    step: bool = False
    dots: bool = False
    filled: bool = False


@dataclass(frozen=True, slots=True)
class Band:
    """A marked span of time."""

    first_s: float
    last_s: float
    name: str


@dataclass(frozen=True, slots=True)
class Axes:
    """The axes of a plot: seconds from 0 to `span_s`, and values from 0 to `top`; higher ones lie at the top edge."""

    unit: str
    span_s: float
    top: float


def plot(title: str, axes: Axes, series: Sequence[PlotSeries], *, bands: Sequence[Band] = ()) -> str:
    """One plot."""
    span_s, top = axes.span_s, axes.top

    def x(at_s: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * min(max(at_s / span_s, 0.0), 1.0)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(max(value / top, 0.0), 1.0)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}" xmlns="http://www.w3.org/2000/svg">',
        f'<text x="{LEFT}" y="14" class="t">{escape(title)}</text>',
    ]
    for band in bands:
        parts.append(  # noqa: PERF401 - one shape after another reads better
            f'<rect x="{x(band.first_s):.1f}" y="{TOP}" width="{x(band.last_s) - x(band.first_s):.1f}" '
            f'height="{HEIGHT - TOP - BOTTOM}" class="band"/>'
            f'<text x="{x(band.first_s) + 3:.1f}" y="{TOP + 10}" class="b">{escape(band.name)}</text>'
        )
    for fraction in (0.0, 0.5, 1.0):
        value = top * fraction
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" class="g"/>')
        parts.append(f'<text x="{LEFT - 4}" y="{y(value) + 4:.1f}" class="a e">{value:g}</text>')
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 8}" class="a">0 s</text>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" class="a e">{span_s:.0f} s</text>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="14" class="a e">{escape(axes.unit)}</text>')
    for number, line in enumerate(series):
        parts.append(_dots(line, x, y) if line.dots else _path(line, x, y))
        parts.append(
            f'<text x="{LEFT + 60 + 110 * number}" y="{HEIGHT - 8}" class="a">'
            f'<tspan style="fill:{line.colour}">&#9632;</tspan> {escape(line.name)}</text>'
        )
    return "".join([*parts, "</svg>"])


def _path(line: PlotSeries, x: Scale, y: Scale) -> str:
    commands: list[str] = []
    last_y: float | None = None
    for at_s, value in line.points:
        if value is None:
            last_y = None
            continue
        here = y(value)
        if last_y is None:
            commands.append(f"M{x(at_s):.1f} {here:.1f}")
        elif line.step:
            commands.append(f"H{x(at_s):.1f}V{here:.1f}")
        else:
            commands.append(f"L{x(at_s):.1f} {here:.1f}")
        last_y = here
    area = ""
    if line.filled and commands:
        down = "".join(commands) + f"V{y(0):.1f}H{x(line.points[0][0]):.1f}Z"
        area = f'<path d="{down}" fill="{line.colour}" fill-opacity="0.2"/>'
    return f'{area}<path d="{"".join(commands)}" fill="none" stroke="{line.colour}" stroke-width="1.6"/>'


def _dots(line: PlotSeries, x: Scale, y: Scale) -> str:
    return "".join(
        f'<circle cx="{x(at_s):.1f}" cy="{y(value):.1f}" r="1.3" fill="{line.colour}" fill-opacity="0.55"/>'
        for at_s, value in line.points
        if value is not None
    )
