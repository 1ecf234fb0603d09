"""The comparison as one page: figures, offer against violations, and curves of one node."""

from pathlib import Path
from typing import Any

from shared.errors import Refused
from shared.text_file import os_reason
from sublet.pages.chart import Chart, ChartAxes, ChartBand, ChartLine, Scatter, ScatterDot
from sublet.pages.page import Block, Page, PageCell, PageCharts, PageProse, PageSection, PageTable, render
from sublet.replay.judging.total import Curve, ReplayOutcome
from sublet.replay.report.columns import bins
from sublet.replay.report.table import COLUMNS, cell, headlines

_BEST_NOTE = (
    "★ No other row offers more with as few violations. A bar below a violation is its part of the table's worst."
)
_KEY = (
    "From below what tenants want, from above what is offered to batch work: what is left between them is idle. "
    "The line is what tenants have; a flag at the top marks a time in which they wanted more than that."
)


def write_page(path: Path, text: str) -> None:
    """Write a page.

    Raises:
        Refused: the file cannot be written.
    """
    try:
        path.write_text(text)
    except OSError as error:
        raise Refused(f"--plot {path}: {os_reason(error)}", reason="unwritable") from error


def node_page(outcome: ReplayOutcome, found: dict[str, Any], wanted_node: str) -> str:
    """The page with the curves of the node that was asked for.

    Raises:
        Refused: there is no such node.
    """
    if outcome.plotted is None:
        raise Refused(f"--plot-node {wanted_node}: no such node; there is {', '.join(outcome.nodes[:5])} …")
    return page(outcome, found)


def page(outcome: ReplayOutcome, found: dict[str, Any]) -> str:
    """The page as text. `found` is the document of `table.document`."""
    best = best_rows(found["rows"])
    charts = [
        _curve(f"{row.name}: {_summary(figures)}", row.curve, outcome.cpus)
        for row, figures in zip(outcome.rows, found["rows"], strict=True)
        if row.curve is not None and row.curve.at_s
    ]
    return render(
        Page(
            title=f"Sublet replay: {', '.join(found['files'])}",
            headline=headline(found["rows"], best),
            about=headlines(found),
            sections=[
                PageSection("", [_table(found["rows"], best)]),
                PageSection("Offer against violations", _scatter(found["rows"], best)),
                PageSection(f"Over time: {outcome.plotted or ''}", [PageProse([_KEY]), PageCharts(charts)]),
            ],
        )
    )


def best_rows(rows: list[dict[str, Any]]) -> set[str]:
    """Names of the rows that offer more than every row with as few violations; of equals all are best."""
    known = [row for row in rows if row["offered_percent"] is not None]
    return {row["name"] for row in known if not any(_beats(other, row) for other in known)}


def _beats(other: dict[str, Any], row: dict[str, Any]) -> bool:
    offers = other["offered_percent"], row["offered_percent"]
    lacks = other["violation_ppm"] or 0.0, row["violation_ppm"] or 0.0
    return offers[0] >= offers[1] and lacks[0] <= lacks[1] and (offers[0] > offers[1] or lacks[0] < lacks[1])


def headline(rows: list[dict[str, Any]], best: set[str]) -> str:
    """The most that was offered without a violation, or with the fewest."""
    chosen = [row for row in rows if row["name"] in best]
    if not chosen:
        return "Nothing was decided"
    row = min(chosen, key=lambda row: (row["violation_ppm"] or 0.0, -row["offered_percent"]))
    lack = row["violation_ppm"] or 0.0
    words = "with no moment of too little for tenants" if lack == 0 else f"at {lack:.0f} ppm of violations, the fewest"
    return f"{row['name']} offers {row['offered_percent']:.1f} % of the machine to batch work {words}"


def _summary(figures: dict[str, Any]) -> str:
    return f"{cell(figures['offered_percent'], 1)} % offered on all nodes, {figures['evictions']} evictions"


def _table(rows: list[dict[str, Any]], best: set[str]) -> PageTable:
    worst = {key: max((row[key] or 0 for row in rows), default=0) for _, key, _ in COLUMNS}
    lines = []
    for row in rows:
        name = PageCell(row["name"], row["name"], "best" if row["name"] in best else "")
        lines.append([name, *(_cell(key, row[key], digits, worst[key]) for _, key, digits in COLUMNS)])
    header = ["policy", *(title.replace("-", "\N{NON-BREAKING HYPHEN}") for title, _, _ in COLUMNS)]
    return PageTable(header, lines, cards=True, note=_BEST_NOTE)


def _cell(key: str, value: float | None, digits: int, worst: float) -> PageCell:
    """A violation says how it compares; none at all is good."""
    if not key.startswith("violation") or value is None:
        return PageCell(cell(value, digits) or "-", value)
    return PageCell(cell(value, digits), value, "good" if value == 0 else "", value / worst if worst else 0.0)


def _scatter(rows: list[dict[str, Any]], best: set[str]) -> list[Block]:
    dots = [
        ScatterDot(row["name"], row["violation_ppm"] or 0.0, row["offered_percent"], row["name"] in best)
        for row in rows
        if row["offered_percent"] is not None
    ]
    if not any(dot.x for dot in dots):
        return [PageProse(["Nobody withheld anything from the tenants: the table says all."])]
    words = "Higher is more offered; further left is less that tenants wanted and did not have."
    title = "Offered to batch work, % of the machine"
    return [PageProse([words]), PageCharts([Scatter(title, "violations, ppm of what tenants wanted", "offered", dots)])]


def _curve(title: str, curve: Curve, cpus: int) -> Chart:
    columns = bins(curve)
    first_s, last_s = columns[0].from_s, columns[-1].to_s
    # A value holds for the time that ends with it: the first one stands at both ends of its column.
    at_s = [first_s, *(column.to_s for column in columns)]
    lines = [
        ("tenants want", "shared", [c.wanted_cores for c in columns], True, False),
        ("offered to batch work", "reclaimed", [c.offered_cores for c in columns], True, True),
        ("tenants have", "limit", [c.room_cores for c in columns], False, False),
    ]
    return Chart(
        title=title,
        axes=ChartAxes(first_s, last_s, 0.0, float(cpus), "CPUs", clock=True),
        x=at_s,
        lines=[
            ChartLine(name, role, [values[0], *values], "stairs", filled=filled, from_top=from_top)
            for name, role, values, filled, from_top in lines
        ],
        bands=[ChartBand(c.from_s, c.to_s, lack=True) for c in columns if c.violated],
        group="replay",
    )
