"""A page as data, and its text.

Jinja2 escapes everything from outside; if a text became an element anyway, the page's policy would keep its script from
running.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Literal

from sublet.pages.chart import Chart, Scatter
from sublet.pages.colours import variables

HERE = Path(__file__).parent
Tone = Literal["", "good", "bad", "best", "strong"]


@dataclass(frozen=True, slots=True)
class PageCell:
    """A cell of a table: its text, the number it is sorted by, and what it says beyond the text."""

    text: str
    sort_by: float | str | None = None
    tone: Tone = ""
    part: float = 0.0
    """A bar below the text, as a part of the cell's width."""


@dataclass(frozen=True, slots=True)
class PageTable:
    """Rows under a header; the reader sorts them. On a phone a row of a wide table becomes a card."""

    kind: ClassVar[str] = "table"
    header: Sequence[str]
    rows: Sequence[Sequence[PageCell]]
    cards: bool = False
    left: bool = False
    """Cells hold text, which begins at the left."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class PageCharts:
    """Charts side by side, on a phone below each other."""

    kind: ClassVar[str] = "charts"
    charts: Sequence[Chart | Scatter]
    across: int = 1


@dataclass(frozen=True, slots=True)
class PageProse:
    """Paragraphs or a list of sentences."""

    kind: ClassVar[str] = "prose"
    lines: Sequence[str]
    listed: bool = False
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class PageFigures:
    """A few figures that stand out, each with what it is."""

    kind: ClassVar[str] = "figures"
    figures: Sequence[tuple[str, str]]


Block = PageTable | PageCharts | PageProse | PageFigures


@dataclass(frozen=True, slots=True)
class PageSection:
    """A heading and what stands below it."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True, slots=True)
class Page:
    """The headline says what came out; the rest is why it can be believed."""

    title: str
    headline: str
    about: Sequence[str]
    sections: Sequence[PageSection]


def render(page: Page) -> str:
    """The page as one file of HTML."""
    scripts = [_asset("vendor/uplot/uPlot.iife.min.js"), _asset("page.js")]
    style = (
        f":root{{{variables(False)}}}\n@media(prefers-color-scheme:dark){{:root{{{variables(True)}}}}}\n"
        + _asset("vendor/uplot/uPlot.min.css")
        + _asset("page.css")
    )
    charts: list[dict[str, Any]] = []

    def place(chart: Chart | Scatter) -> int:
        charts.append(chart.data())
        return len(charts) - 1

    text: str = _template().render(
        page=page,
        policy=_policy(scripts),
        style=_safe(style),
        scripts=[_safe(script) for script in scripts],
        place=place,
        charts_json=lambda: _safe(_inert(json.dumps(charts, separators=(",", ":")))),
        licence=_safe(_asset("vendor/uplot/LICENSE").replace("--", "")),
    )
    return text


@cache
def _template() -> Any:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html")


@cache
def _asset(name: str) -> str:
    """A file of this package."""
    return (HERE / name).read_text(encoding="utf-8")


def _safe(text: str) -> Any:
    """A text of this package's own, or one made inert: it is not escaped again."""
    import markupsafe

    return markupsafe.Markup(text)  # noqa: S704 - never a text from outside as it came


def _inert(text: str) -> str:
    """JSON that ends no script element, whatever its texts say."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _policy(scripts: Sequence[str]) -> str:
    """Only the page's own scripts run, and nothing is loaded: a script that came in by a text would stay dead."""
    hashes = " ".join(f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" for script in scripts)
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {hashes}"
