"""Compares a simulation with its expectations, as a table and as JSON. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from shared.contracts.eviction import EvictionEvent
from shared.contracts.kube.quantities import format_units
from sublet.output import LineTable
from sublet.sim.scenario import Expect, ExpectedEvent

HEAD = ("time", "what happened", "share cpuset", "reclaim cpuset", "reclaimed_millicpu")


class SimView(BaseModel):
    """What can be seen from outside at one moment; None where nothing has been reported yet."""

    model_config = ConfigDict(frozen=True)

    share: str = ""
    reclaim: str = ""
    reclaimed_millicpu: int | None = None
    reclaimed_memory: int | None = None
    pods: tuple[str, ...] = ()


class ReportRow(BaseModel):
    """One line of the story: the time, in words, and the view just after it."""

    model_config = ConfigDict(frozen=True)

    t_s: float
    what: str
    view: SimView
    event: bool = False
    """An eviction event: its text stands alone, the view beside it is the one of the row above."""


class Report(BaseModel):
    """A whole run. `problems` is empty when every expectation came true and no rule was broken."""

    scenario: str
    about: str = ""
    rows: list[ReportRow] = []
    checks: int = 0
    """Expectations that were judged."""
    problems: list[str] = []

    @property
    def ok(self) -> bool:
        """Whether the story happened as written."""
        return not self.problems


def differences(expect: Expect, view: SimView, events: Sequence[EvictionEvent]) -> Iterator[str]:
    """What is not as expected, in words; nothing where all is."""
    for name in ("reclaimed_millicpu", "reclaimed_memory", "share", "reclaim"):
        wanted, there = getattr(expect, name), getattr(view, name)
        if wanted is not None and wanted != there:
            yield f"{name} is {'not reported' if there is None else there}, expected {wanted}"
    if expect.pods is not None and tuple(sorted(expect.pods)) != view.pods:
        yield f"running pods are {', '.join(view.pods) or 'none'}, expected {', '.join(sorted(expect.pods)) or 'none'}"
    begun = sum(event.phase == "created" for event in events)
    if expect.evictions is not None and begun != expect.evictions:
        yield f"{begun} evictions begun, expected {expect.evictions}"
    for wanted_event in expect.events:
        if not any(_matches(wanted_event, event) for event in events):
            yield f"no event {wanted_event.phase} of {wanted_event.pod}" + (
                f" with the text {wanted_event.message!r}" if wanted_event.message else ""
            )


def _matches(wanted: ExpectedEvent, event: EvictionEvent) -> bool:
    same = event.phase == wanted.phase and f"{event.namespace}/{event.pod}" == wanted.pod
    return same and wanted.message in ("", event.message)


def as_document(report: Report) -> dict[str, Any]:
    """The report for programs."""
    return {"ok": report.ok, **report.model_dump(mode="json")}


def as_table(report: Report) -> str:
    """The report for people: a line for each change, eviction events in full below the time they happened."""
    lines = [[f"{row.t_s:.0f} s", row.what, *_cells(row)] for row in report.rows]
    plain = [line for line, row in zip(lines, report.rows, strict=True) if not row.event]
    widths = [max(len(line[column]) for line in [HEAD, *plain]) for column in range(len(HEAD))]
    table = LineTable(HEAD, widths, right={0})
    text = [f"{report.scenario}: {report.about}".rstrip(": "), "", table.head(), *map(table.line, lines)]
    text += ["", *(f"NOT AS EXPECTED: {problem}" for problem in report.problems)]
    if report.ok:
        text.append(f"everything happened as the scenario says: {report.checks} expectations came true")
    return "\n".join(text) + "\n"


def _cells(row: ReportRow) -> list[str]:
    if row.event:
        return ["", "", ""]
    millis = row.view.reclaimed_millicpu
    return [row.view.share, row.view.reclaim, "" if millis is None else format_units(millis)]
