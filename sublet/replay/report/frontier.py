"""The frontier as a table and as a page with curves."""

from collections.abc import Mapping, Sequence
from typing import Any

from sublet.output import columns
from sublet.pages.chart import Scatter, ScatterDot
from sublet.pages.page import Page, PageCell, PageCharts, PageProse, PageSection, PageTable, render
from sublet.replay.frontier.best import BUDGETS_PPM, frontier_rows
from sublet.replay.report.table import COLUMNS, cell, headlines

_SHOWN = ("batch_core_hours", "oracle_percent", "goodput_core_hours", "violation_ppm", "episodes", "evictions")
_RUNS = "Batch work that can run, in percent of what an oracle runs, at the best setting within a budget of violations"
_KEY = (
    "A line joins the settings of one policy or peer than which it has no better ones; those that nobody at all "
    "beats stand out. Higher is more batch work; further left is less that tenants wanted and did not have."
)


def frontier_table(found: Mapping[str, Any]) -> str:
    """The best of each family at each budget, and then the rows that nobody beats."""
    header = ["family", "rows", *(f"at {budget} ppm: oracle %" for budget in BUDGETS_PPM), "set to"]
    lines = []
    settings = {row["name"]: row["settings"] for row in found["rows"]}
    for family in found["families"]:
        chosen = [best["row"] and (settings[best["row"]] or "its own") for best in family["best"]]
        figures = [cell(best["oracle_percent"], 1) or "-" for best in family["best"]]
        lines.append([family["name"], str(family["rows"]), *figures, "; ".join(name or "-" for name in chosen)])
    shown = [column for column in COLUMNS if column[1] in _SHOWN]
    best_rows = [
        [row["name"], *(cell(row[key], digits) for _, key, digits in shown)]
        for row in found["rows"]
        if row["on_frontier"]
    ]
    best_header = ["no other runs more at as few violations", *(title for title, _, _ in shown)]
    return "\n".join(
        [
            *headlines(dict(found)),
            "",
            columns(header, lines, right=range(1, 2 + len(BUDGETS_PPM))),
            "",
            columns(best_header, best_rows, right=range(1, len(best_header))),
        ]
    )


def frontier_page(found: Mapping[str, Any]) -> str:
    """The frontier as one page."""
    return render(
        Page(
            title=f"Sublet replay: {', '.join(found['files'])}",
            headline=_headline(found),
            about=headlines(dict(found)),
            sections=[
                PageSection(
                    "What can run against violations", [PageProse([_KEY]), PageCharts([_scatter(found["rows"])])]
                ),
                PageSection("At equal violations", [PageProse([_RUNS]), _budgets(found)]),
                PageSection("Every setting", [_rows(found["rows"])]),
            ],
        )
    )


def _headline(found: Mapping[str, Any]) -> str:
    budget = BUDGETS_PPM[-1]
    known = [(family["best"][-1]["oracle_percent"], family["name"]) for family in found["families"]]
    percent, name = max(((p, n) for p, n in known if p is not None), default=(None, ""))
    if percent is None:
        return f"Nobody stays within {budget} ppm of violations"
    return f"{name} runs {percent:.1f} % of what an oracle runs, at {budget} ppm of violations at most"


def _scatter(rows: Sequence[Mapping[str, Any]]) -> Scatter:
    dots = []
    for family in dict.fromkeys(row["family"] for row in rows):
        own = [row for row in rows if row["family"] == family and row["oracle_percent"] is not None]
        chosen = frontier_rows(own)
        joined = sorted((row for row in own if row["name"] in chosen), key=lambda row: row["violation_ppm"] or 0.0)
        dots += [
            ScatterDot(
                row["name"],
                row["violation_ppm"] or 0.0,
                row["oracle_percent"],
                row["on_frontier"],
                curve=family,
                # A name at every setting would cover the curves: the family's stands at its end.
                label=family if row is joined[-1] else "",
            )
            for row in joined
        ]
    return Scatter("What can run, % of the oracle's", "violations, ppm of what tenants wanted", "can run", dots)


def _budgets(found: Mapping[str, Any]) -> PageTable:
    lines = [
        [
            PageCell(family["name"], family["name"]),
            *(PageCell(cell(best["oracle_percent"], 1) or "-", best["oracle_percent"]) for best in family["best"]),
        ]
        for family in found["families"]
    ]
    return PageTable(["family", *(f"at {budget} ppm" for budget in BUDGETS_PPM)], lines)


def _rows(rows: Sequence[Mapping[str, Any]]) -> PageTable:
    lines = [
        [
            PageCell(row["name"], row["name"], "best" if row["on_frontier"] else ""),
            *(PageCell(cell(row[key], digits) or "-", row[key]) for _, key, digits in COLUMNS),
        ]
        for row in rows
    ]
    return PageTable(["row", *(title for title, _, _ in COLUMNS)], lines, cards=True)
