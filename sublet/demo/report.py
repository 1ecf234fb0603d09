"""The demo's report: one self-contained page with plots, and the same figures as JSON."""

import json
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from sublet.demo.case import DemoCase
from sublet.demo.svg import Axes, Band, PlotSeries, plot

BLUE, ORANGE, GREEN, GREY = "#2563eb", "#ea580c", "#16a34a", "#6b7280"
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#1f2937;margin:2rem auto;max-width:1480px;padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}p{max-width:60rem}
.ok{color:#15803d}.bad{color:#b91c1c}
table{border-collapse:collapse;margin:.5rem 0}
th,td{padding:.25rem .8rem;border-bottom:1px solid #e5e7eb;text-align:right}
th:first-child,td:first-child,table.l th,table.l td{text-align:left}
td.m{font-family:ui-monospace,monospace;font-size:13px}
.row{display:flex;flex-wrap:wrap;gap:12px}.row svg{flex:1 1 400px;max-width:480px}
svg text{font:11px system-ui,sans-serif;fill:#374151}svg .t{font-size:12px;font-weight:600}svg .e{text-anchor:end}
svg .g{stroke:#e5e7eb}svg .band{fill:#fde68a;fill-opacity:.35}svg .b{fill:#92400e;font-size:10px}
"""


def figures(facts: dict[str, Any], cases: Iterable[DemoCase]) -> dict[str, Any]:
    """Everything measured, for machines."""
    return facts | {"cases": {case.name: case.summary() for case in cases}}


def write(folder: Path, document: dict[str, Any], plots: str) -> None:
    """Write `report.json` and `report.html`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(document, indent=1) + "\n")
    (folder / "report.html").write_text(page(document, plots))


def page(document: dict[str, Any], plots: str) -> str:
    """The page as text."""
    faults = document["faults"]
    verdict = (
        '<p class="ok"><b>The story happened as it should.</b></p>'
        if not faults
        else '<p class="bad"><b>Something did not happen:</b></p><ul class="bad">'
        + "".join(f"<li>{escape(fault)}</li>" for fault in faults)
        + "</ul>"
    )
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>Sublet: the demo's report</title><style>{_STYLE}</style>",
        "<h1>Batch work on what the service leaves idle</h1>",
        f"<p>{escape('{machine}, {date}. Substrate: {substrate}.'.format_map(document))}</p>",
        verdict,
        "<h2>Figures</h2>",
        _table(document),
        "<h2>Over time</h2>",
        plots,
        "<h2>An eviction, message by message</h2>",
        _chain(document["chain"]),
        "</html>",
    ]
    return "\n".join(parts)


ROWS = (
    ("cpu_utilization_percent", "CPU utilization, %"),
    ("steady_p50_ms", "steady load: p50, ms"),
    ("steady_p99_ms", "steady load: p99, ms"),
    ("spike_p50_ms", "spike: p50, ms"),
    ("spike_p99_ms", "spike: p99, ms"),
    ("unanswered", "requests without an answer"),
    ("batch_units_per_s", "batch work, units/s"),
    ("tenant_satisfied_percent", "CPU the service asked for and got, %"),
)


def _table(document: dict[str, Any]) -> str:
    cases = document["cases"].values()
    head = "".join(f"<th>{escape(case['title'])}</th>" for case in cases)
    rows = [f"<tr><th></th>{head}</tr>"]
    for key, words in ROWS:
        if any(case.get(key) is not None for case in cases):
            cells = "".join(f"<td>{'-' if case.get(key) is None else case[key]}</td>" for case in cases)
            rows.append(f"<tr><td>{escape(words)}</td>{cells}</tr>")
    times = (
        ("spike_to_cpuset_s", "first request of the spike to a smaller CPU list read back from the kernel"),
        ("breach_to_call_s", "memory below the threshold to the eviction call"),
    )
    list_ = "".join(
        f"<li>{escape(words)}: <b>{document[key] * 1000:.0f} ms</b></li>"
        for key, words in times
        if document.get(key) is not None
    )
    return f"<table>{''.join(rows)}</table><ul>{list_}</ul>"


def _chain(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "<p>No eviction was seen.</p>"
    cells = []
    for row in rows:
        data = row["data"]
        keep = ("seq", "trigger", "plugin", "scope", "observed", "threshold", "message", "detail", "memory_free_bytes")
        text = ", ".join(f"{key}={data[key]}" for key in keep if data.get(key) not in (None, ""))
        cells.append(
            f"<tr><td>{row['at_s']:+.3f} s</td><td>{escape(row['message'])}</td><td class=m>{escape(text)}</td></tr>"
        )
    return f"<table class=l><tr><th>after the intent</th><th>message</th><th>content</th></tr>{''.join(cells)}</table>"


def host_plots(cases: list[DemoCase], cpus: int) -> str:
    """Three plots a case: latency, CPU use, pool sizes."""
    highest = max((ms for case in cases for ms in case.latencies_ms(0, float("inf"))), default=1.0)
    rows = []
    for case in cases:
        zero, span = case.started_s, case.ended_s - case.started_s
        bands = [Band(case.spike_s - zero, case.spike_end_s - zero, "spike")]
        answers = [(a.due_s - zero, None if a.latency_s is None else a.latency_s * 1000) for a in case.answers]
        latency = [PlotSeries("request", BLUE, answers, dots=True)]
        use = [
            PlotSeries("busy CPUs", GREY, [(m.at_s - zero, m.busy_cores) for m in case.moments]),
        ]
        pools = [
            PlotSeries(
                "reclaimed", ORANGE, [(m.at_s - zero, m.reclaim_cpus) for m in case.moments], step=True, filled=True
            ),
            PlotSeries("shared", BLUE, [(m.at_s - zero, m.share_cpus) for m in case.moments], step=True),
        ]
        rows.append(f"<h3>{escape(case.title)}</h3><div class=row>")
        rows.append(plot("Latency of the service", Axes("ms", span, _nice(min(highest, 1000.0))), latency, bands=bands))
        rows.append(plot("CPU use of the machine", Axes("CPUs", span, float(cpus)), use, bands=bands))
        if any(m.reclaim_cpus is not None for m in case.moments):
            rows.append(plot("Pools, as the kernel has them", Axes("CPUs", span, float(cpus)), pools, bands=bands))
        rows.append("</div>")
    return "".join(rows)


def _nice(value: float) -> float:
    return next(step for step in (10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 5000.0) if step >= value)
