"""The comparison as one page: figures, offer against violations, and curves. No script, and nothing from elsewhere."""

from html import escape
from typing import Any

from sublet.replay.report.curves import draw
from sublet.replay.report.table import COLUMNS, cell, headlines
from sublet.replay.run import ReplayOutcome

_STYLE = """
:root{color-scheme:light dark;--back:#fff;--ink:#1f2937;--soft:#6b7280;--line:#e5e7eb;--want:#3b82f6;--offer:#f59e0b;
--room:#1e3a8a;--bad:#dc2626}
@media (prefers-color-scheme:dark){:root{--back:#111827;--ink:#e5e7eb;--soft:#9ca3af;--line:#374151;--want:#60a5fa;
--offer:#d97706;--room:#dbeafe;--bad:#f87171}}
body{font:15px/1.5 system-ui,sans-serif;background:var(--back);color:var(--ink);margin:2rem auto;max-width:1080px;
padding:0 1rem}
h1{font-size:1.4rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 .4rem}h3{font-size:.95rem;margin:1.1rem 0 .1rem}
h3 span,p{color:var(--soft);font-weight:400}p{margin:.3rem 0;max-width:62rem}
.wide{overflow-x:auto}table{border-collapse:collapse;margin:.6rem 0;font-variant-numeric:tabular-nums;font-size:14px}
th,td{padding:.25rem .6rem;border-bottom:1px solid var(--line);text-align:right;vertical-align:bottom}
th{font-weight:600;line-height:1.25}th:first-child,td:first-child{text-align:left;white-space:nowrap}
td.hit{color:var(--bad);font-weight:600}
svg{display:block;width:100%;height:auto}svg text{font:11px system-ui,sans-serif;fill:var(--soft)}
svg .end{text-anchor:end}svg .mid{text-anchor:middle}svg .name{fill:var(--ink);font-size:12px}
svg .grid{stroke:var(--line);fill:none}svg .want{fill:var(--want);fill-opacity:.45}
svg .offer{fill:var(--offer);fill-opacity:.35}svg .room{fill:none;stroke:var(--room);stroke-width:1.5}
svg .bad{fill:var(--bad);fill-opacity:.14}svg .miss{fill:var(--bad)}
svg .dot{fill:var(--room)}svg .lead{stroke:var(--soft);stroke-opacity:.6}
.key{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;font-size:13px;color:var(--soft)}
.key i{display:inline-block;width:1em;height:.8em;margin-right:.4em;vertical-align:-.05em}
.k1{background:var(--want);opacity:.6}.k2{border-top:2px solid var(--room);height:.3em!important}
.k3{background:var(--offer);opacity:.5}.k4{background:var(--bad)}
"""
_KEY = (
    '<div class="key"><span><i class="k1"></i>tenants want</span><span><i class="k2"></i>tenants have</span>'
    '<span><i class="k3"></i>offered to batch work</span><span><i class="k4"></i>tenants want more than they have'
    "</span></div>"
)
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 1040, 260, 44, 230, 14, 34
_LABEL_PX, _NAME_PX = 14, 160
_SPREAD_ROUNDS = 60


def page(outcome: ReplayOutcome, found: dict[str, Any]) -> str:
    """The page as text. `found` is the document of `table.document`."""
    parts = [
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>Sublet replay: {escape(', '.join(found['files']))}</title><style>{_STYLE}</style>",
        "<h1>What each policy would have offered</h1>",
        *(f"<p>{escape(line)}</p>" for line in headlines(found)),
        _table(found),
        "<h2>Offer against violations</h2>",
        "<p>Higher is more offered; further left is less that tenants wanted and did not have.</p>",
        _scatter(found),
        f"<h2>Over time: {escape(outcome.plotted or '')}</h2>",
        _KEY,
    ]
    for row, figures in zip(outcome.rows, found["rows"], strict=True):
        if row.curve is not None:
            parts.append(f"<h3>{escape(row.name)} <span>{_summary(figures)}</span></h3>")
            parts.append(draw(escape(row.name, quote=True), row.curve, outcome.cpus))
    return "\n".join([*parts, "</html>\n"])


def _summary(figures: dict[str, Any]) -> str:
    return f"{cell(figures['offered_percent'], 1)} % offered on all nodes, {figures['evictions']} evictions"


def _table(found: dict[str, Any]) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title, _, _ in COLUMNS)
    rows = [f"<tr><th>policy</th>{head}</tr>"]
    for row in found["rows"]:
        cells = "".join(
            f"<td{_marked(key, row[key])}>{cell(row[key], digits) or '-'}</td>" for _, key, digits in COLUMNS
        )
        rows.append(f"<tr><td>{escape(row['name'])}</td>{cells}</tr>")
    return f'<div class="wide"><table>{"".join(rows)}</table></div>'


def _marked(key: str, value: float | None) -> str:
    """Violations are red."""
    return " class=hit" if key.startswith("violation") and value else ""


def _scatter(found: dict[str, Any]) -> str:
    """One dot a row; names stand right of them, moved apart where they would cover each other."""
    rows = [row for row in found["rows"] if row["offered_percent"] is not None]
    most = max((row["violation_ppm"] or 0.0 for row in rows), default=0.0)
    if most == 0.0:
        return "<p>Nobody withheld anything from the tenants: the table says all.</p>"

    def x(ppm: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * ppm / most

    def y(percent: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * min(percent / 100, 1.0)

    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="offer against violations">']
    for percent in (0, 25, 50, 75, 100):
        parts.append(f'<path class="grid" d="M{_LEFT} {y(percent):.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text class="end" x="{_LEFT - 6}" y="{y(percent) + 4:.1f}">{percent} %</text>')
    for part, place in ((0.0, "mid"), (0.5, "mid"), (1.0, "end")):
        text = f"{most * part:.0f}" + (" ppm of what tenants wanted" if part == 1 else "")
        parts.append(f'<text class="{place}" x="{x(most * part):.1f}" y="{_HEIGHT - 12}">{text}</text>')
    rows.sort(key=lambda row: (-row["offered_percent"], row["violation_ppm"] or 0.0, row["name"]))
    spots = [(x(row["violation_ppm"] or 0.0), y(row["offered_percent"])) for row in rows]
    for row, (at_x, at_y), name_y in zip(rows, spots, _apart(spots), strict=True):
        parts.append(f'<path class="lead" d="M{at_x:.1f} {at_y:.1f}L{at_x + 11:.1f} {name_y:.1f}"/>')
        parts.append(f'<circle class="dot" cx="{at_x:.1f}" cy="{at_y:.1f}" r="4"/>')
        parts.append(f'<text class="name" x="{at_x + 13:.1f}" y="{name_y + 4:.1f}">{escape(row["name"])}</text>')
    return "".join([*parts, "</svg>"])


def _apart(spots: list[tuple[float, float]]) -> list[float]:
    """Heights for names beside these spots, given from the top down, so that no name covers another."""
    heights = [y for _, y in spots]
    for _ in range(_SPREAD_ROUNDS):
        for lower in range(1, len(spots)):
            for upper in range(lower):
                short = _LABEL_PX - (heights[lower] - heights[upper])
                if short > 0 and abs(spots[lower][0] - spots[upper][0]) < _NAME_PX:
                    heights[upper] -= short / 2
                    heights[lower] += short / 2
    return heights
