"""The demo's report: one page with the three runs side by side, and the same figures as JSON."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from shared.errors import Refused
from shared.text_file import os_reason
from sublet.demo.load import TIMEOUT_S
from sublet.demo.machine.fit import DemoLoads, MachineReading
from sublet.demo.story import SHORT_TITLES
from sublet.demo.verdict import DemoClaim
from sublet.demo.watch import TimelineRow
from sublet.pages.chart import Chart, ChartAxes, ChartBand, ChartLine
from sublet.pages.page import (
    Block,
    Page,
    PageCell,
    PageCharts,
    PageFigures,
    PageProse,
    PageSection,
    PageTable,
    Tone,
    render,
)
from sublet.views.figures import memory

ROWS = (
    ("cpu_utilization_percent", "CPU utilization, %"),
    ("steady_p50_ms", "steady load: p50, ms"),
    ("steady_p99_ms", "steady load: p99, ms"),
    ("spike_p50_ms", "spike: p50, ms"),
    ("spike_p99_ms", "spike: p99, ms"),
    ("unanswered", "requests without an answer"),
    ("batch_units_per_s", "batch work, units/s"),
    ("others_cores", "CPUs that other work used"),
    ("tenant_satisfied_percent", "CPU the service asked for and got, %"),
)
STRONG = "spike_p99_ms"
"""The row of the headline."""
MARKS: Mapping[str, tuple[str, Tone]] = {
    "shown": ("\u2713 shown", "good"),
    "not shown": ("\u2013 not shown", ""),
    "failed": ("\u2717 failed", "bad"),
}
_TIMES = (
    ("spike_to_cpuset_s", "from the spike's begin to a smaller CPU list, read back from the cgroup"),
    ("breach_to_call_s", "from memory below the threshold to the eviction call"),
)
_KEPT = ("seq", "trigger", "plugin", "scope", "observed", "threshold", "message", "detail", "memory_free_bytes")
Value = Callable[[TimelineRow], float | None]


@dataclass(frozen=True, slots=True)
class RunCurves:
    """One case over time; all its times are on one clock."""

    title: str
    moments: Sequence[TimelineRow]
    spike_s: float
    spike_end_s: float
    answers: Sequence[tuple[float, float | None]] = ()
    """When each request was due, and its latency in ms; None where no answer came."""


@dataclass(frozen=True, slots=True)
class DemoRun:
    """All that the report shows."""

    claims: Sequence[DemoClaim]
    disturbed: Sequence[str]
    readings: Mapping[str, MachineReading]
    figures: Mapping[str, Mapping[str, Any]]
    curves: Sequence[RunCurves]
    cpus: int
    before_s: float
    """What the charts show before the spike."""
    after_s: float
    """What they show from its begin on."""
    spike_to_cpuset_s: float | None
    breach_to_call_s: float | None
    chain: Sequence[Mapping[str, Any]]
    loads: DemoLoads | None = None
    machine: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Everything measured, for machines."""
        return {
            **self.machine,
            "headline": headline(self),
            "claims": [asdict(claim) for claim in self.claims],
            "faults": [f"{claim.text}: {claim.why}" for claim in self.claims if claim.outcome == "failed"],
            "disturbed": list(self.disturbed),
            "readings": {when: asdict(reading) for when, reading in self.readings.items()},
            "loads": None if self.loads is None else asdict(self.loads),
            "spike_to_cpuset_s": self.spike_to_cpuset_s,
            "breach_to_call_s": self.breach_to_call_s,
            "cases": dict(self.figures),
            "chain": list(self.chain),
        }


def headline(run: DemoRun) -> str:
    """What came out, in one line."""
    failed = [claim for claim in run.claims if claim.outcome == "failed"]
    if failed:
        return f"Sublet failed: \u201c{failed[0].text}\u201d did not happen"
    pair = _compared(run)
    if run.claims and run.claims[0].outcome == "shown" and pair:
        return pair
    shown = sum(claim.outcome == "shown" for claim in run.claims)
    cause = "The machine was busy" if run.disturbed else "Not all could be shown"
    return f"{cause}: {shown} of {len(run.claims)} claims are shown" + (f"; {pair}" if pair else "")


def _compared(run: DemoRun) -> str:
    ours, without = (run.figures.get(name, {}) for name in ("sublet", "unmanaged"))
    for key, words, unit in (
        ("spike_p99_ms", "p99 at the spike", "ms"),
        ("tenant_satisfied_percent", "CPU the service got of what it asked for", "%"),
    ):
        if ours.get(key) is not None and without.get(key) is not None:
            return f"{words}: {ours[key]:.0f} {unit} with Sublet, {without[key]:.0f} {unit} without"
    return ""


def prepare(folder: Path) -> None:
    """Make the folder of a report, before the minutes that the report takes.

    Raises:
        Refused: it cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.json").open("a").close()
    except OSError as error:
        raise Refused(f"--report {folder}: {os_reason(error)}", reason="unwritable") from error


def write(folder: Path, run: DemoRun) -> None:
    """Write `report.json` and `report.html` into a folder that `prepare` made."""
    (folder / "report.json").write_text(json.dumps(run.document(), indent=1) + "\n")
    (folder / "report.html").write_text(page(run))


def page(run: DemoRun) -> str:
    """The page as text."""
    times = [(f"{value * 1000:.0f} ms", words) for key, words in _TIMES if (value := getattr(run, key)) is not None]
    machine = run.machine
    return render(
        Page(
            title="Sublet demo: batch work on what a service leaves idle",
            headline=headline(run),
            about=[
                f"{machine.get('machine', '')}, {machine.get('date', '')}. Substrate: {machine.get('substrate', '')}."
            ],
            sections=[
                PageSection("", [_claims(run.claims), *_disturbed(run.disturbed)]),
                PageSection("The three runs, side by side", [*_charts(run), *_pools(run)]),
                PageSection("Figures", [*([PageFigures(times)] if times else []), _table(run.figures)]),
                PageSection("An eviction, message by message", [_chain(run.chain)]),
            ],
        )
    )


def _claims(claims: Sequence[DemoClaim]) -> Block:
    rows = []
    for claim in claims:
        mark, tone = MARKS[claim.outcome]
        rows.append([PageCell(mark, tone=tone), PageCell(claim.text), PageCell(claim.why)])
    return PageTable(["", "what the demo sets out to show", "figures, or the cause"], rows, cards=True, left=True)


def _disturbed(lines: Sequence[str]) -> list[Block]:
    if not lines:
        return []
    return [
        PageProse(["Other work disturbed the measurements; an idle machine shows more:"]),
        PageProse(lines, listed=True),
    ]


def _charts(run: DemoRun) -> list[Block]:
    """A row of charts for each figure, a chart for each run, all on the same axes."""
    blocks: list[Block] = []
    if any(curves.answers for curves in run.curves):
        low, top = _decades([ms for curves in run.curves for _, ms in curves.answers])
        blocks.append(_row(run, [_latency(run, curves, low, top) for curves in run.curves]))
    blocks.append(_row(run, [_use(run, curves) for curves in run.curves]))
    rates = [row.batch_units_per_s for curves in run.curves for row in curves.moments]
    if any(rates):
        top = _rounded_up(max(rates))
        blocks.append(_row(run, [_batch(run, curves, top) for curves in run.curves]))
    return blocks


def _row(run: DemoRun, charts: Sequence[Chart]) -> PageCharts:
    return PageCharts(charts, across=len(run.curves))


def _axes(run: DemoRun, low: float, top: float, unit: str) -> ChartAxes:
    return ChartAxes(-run.before_s, run.after_s, low, top, unit)


def _spike(curves: RunCurves) -> list[ChartBand]:
    return [ChartBand(0.0, curves.spike_end_s - curves.spike_s, "spike")]


def _latency(run: DemoRun, curves: RunCurves, low: float, top: float) -> Chart:
    axes = ChartAxes(-run.before_s, run.after_s, low, top, "ms", logarithmic=True)
    at_s = [due_s - curves.spike_s for due_s, _ in curves.answers]
    lines = [ChartLine("latency", "shared", [ms for _, ms in curves.answers], "dots")]
    missing = [TIMEOUT_S * 1000 if ms is None else None for _, ms in curves.answers]
    lost = sum(ms is not None for ms in missing)
    note = f"\u25b2 {lost} of {len(missing)} requests had no answer within {TIMEOUT_S:g} s." if lost else ""
    if lost:
        lines.append(ChartLine("no answer", "lack", missing, "triangles"))
    # The requests of the two loads overlap at their border by the time the last was late.
    order = sorted(range(len(at_s)), key=at_s.__getitem__)
    lines = [ChartLine(line.name, line.role, [line.values[n] for n in order], line.shape) for line in lines]
    return Chart(f"Latency: {curves.title}", axes, [at_s[n] for n in order], lines, _spike(curves), note, "demo")


def _use(run: DemoRun, curves: RunCurves) -> Chart:
    lines = [ChartLine("busy CPUs", "machine", _values(curves, lambda row: row.busy_cores), filled=True)]
    if any(row.service_cores is not None for row in curves.moments):
        lines.append(ChartLine("the service", "shared", _values(curves, lambda row: row.service_cores)))
    axes = _axes(run, 0.0, float(run.cpus), "CPUs")
    return Chart(f"CPU use: {curves.title}", axes, _times(curves), lines, _spike(curves), group="demo")


def _batch(run: DemoRun, curves: RunCurves, top: float) -> Chart:
    lines = [ChartLine("batch work", "reclaimed", _values(curves, lambda row: row.batch_units_per_s), filled=True)]
    axes = _axes(run, 0.0, top, "/s")
    return Chart(f"Batch work done: {curves.title}", axes, _times(curves), lines, _spike(curves), group="demo")


def _pools(run: DemoRun) -> list[Block]:
    """The pools of the last run: the others have none."""
    curves = run.curves[-1] if run.curves else None
    if curves is None or all(row.reclaim_cpus is None for row in curves.moments):
        return []
    lines = [
        ChartLine("reclaimed pool", "reclaimed", _values(curves, lambda row: row.reclaim_cpus), "stairs", filled=True),
        ChartLine("shared pool", "shared", _values(curves, lambda row: row.share_cpus), "stairs"),
    ]
    axes = _axes(run, 0.0, run.cpus * 1.05, "CPUs")
    title = f"Pools, as their cgroups have them: {curves.title}"
    return [PageCharts([Chart(title, axes, _times(curves), lines, _spike(curves), group="demo")])]


def _times(curves: RunCurves) -> list[float]:
    return [row.at_s - curves.spike_s for row in curves.moments]


def _values(curves: RunCurves, value: Value) -> list[float | None]:
    return [value(row) for row in curves.moments]


def _decades(values: Sequence[float | None]) -> tuple[float, float]:
    """The powers of ten around all latencies; a request without an answer stands at the time-out."""
    known = [max(TIMEOUT_S * 1000 if value is None else value, 0.1) for value in values]
    low, top = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    return float(10**low), float(10 ** max(top, low + 1))


def _rounded_up(value: float) -> float:
    """The next 1, 2 or 5 with zeros."""
    whole = 10.0 ** math.floor(math.log10(value))
    return next(whole * step for step in (1, 2, 5, 10) if whole * step >= value)


def _table(cases: Mapping[str, Mapping[str, Any]]) -> PageTable:
    rows = []
    for key, words in ROWS:
        values = [case.get(key) for case in cases.values()]
        if any(value is not None for value in values):
            tone: Tone = "strong" if key == STRONG else ""
            rows.append(
                [
                    PageCell(words, tone=tone),
                    *(PageCell("-" if value is None else str(value), tone=tone) for value in values),
                ]
            )
    return PageTable(["", *(SHORT_TITLES[name] for name in cases)], rows)


def _chain(rows: Sequence[Mapping[str, Any]]) -> Block:
    if not rows:
        return PageProse(["No eviction was seen."])
    lines = []
    for row in rows:
        data = row["data"]
        text = ", ".join(f"{key}={_shown(key, data)}" for key in _KEPT if data.get(key) not in (None, ""))
        lines.append([PageCell(f"{row['at_s']:+.3f} s"), PageCell(row["message"]), PageCell(text)])
    return PageTable(["after the intent", "message", "content"], lines, cards=True, left=True)


def _shown(key: str, data: Mapping[str, Any]) -> str:
    """A value as people read it: bytes in binary units."""
    of_memory = data.get("scope") == "memory" and key in ("observed", "threshold")
    return memory(int(data[key])) if of_memory or key.endswith("_bytes") else str(data[key])
