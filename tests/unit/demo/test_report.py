"""The demo's page: the headline first, three runs on the same axes, and no request hidden."""

import json
import re
from pathlib import Path
from typing import Any

from demo_world import BUSY, FakeStage

from sublet.demo import report
from sublet.demo.report import DemoRun, RunCurves, headline
from sublet.demo.story import play
from sublet.demo.verdict import judge


async def run_of(stage: FakeStage) -> DemoRun:
    story = await play(stage, lambda line: None)
    return DemoRun(
        claims=judge(story), disturbed=story.disturbed, readings=story.readings,
        figures={case.name: case.summary() for case in story.cases},
        curves=[
            RunCurves(case.title, case.moments, case.spike_s, case.spike_end_s,
                      [(a.due_s, None if a.latency_s is None else a.latency_s * 1000) for a in case.answers])
            for case in story.cases
        ],
        cpus=2, before_s=7.0, after_s=9.0, spike_to_cpuset_s=0.2, breach_to_call_s=0.02,
        chain=[{"at_s": 0.0, "message": "intent", "data": {"scope": "memory", "observed": 1 << 30, "message": "<b>"}}],
        loads=story.loads, machine={"machine": "2 CPUs", "date": "today", "substrate": "host"},
    )  # fmt: skip


def charts(text: str) -> list[dict[str, Any]]:
    found = re.search(r'id="charts">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    parsed: list[dict[str, Any]] = json.loads(found[1])
    return parsed


async def test_the_headline_compares() -> None:
    assert headline(await run_of(FakeStage())) == "p99 at the spike: 18 ms with Sublet, 350 ms without"


async def test_the_headline_says_when_the_machine_was_busy() -> None:
    stage = FakeStage(readings=[BUSY], p99_ms={"alone": 200.0, "unmanaged": 258.0, "sublet": 246.0})
    assert headline(await run_of(stage)).startswith("The machine was busy: 4 of 5 claims are shown; p99")


async def test_the_headline_says_what_failed() -> None:
    assert headline(await run_of(FakeStage(left=["process 1"]))).startswith("Sublet failed: “The machine is left as")


async def test_the_three_runs_have_the_same_axes() -> None:
    drawn = charts(report.page(await run_of(FakeStage())))
    for name in ("Latency", "CPU use", "Batch work done"):
        group = [chart for chart in drawn if chart["title"].startswith(name)]
        assert len(group) == 3
        assert len({json.dumps([c["span"], c["range"], c["unit"], c["log"]]) for c in group}) == 1
    assert {json.dumps(chart["span"]) for chart in drawn} == {"[-7.0, 9.0]"}
    assert all(chart["bands"] == [{"from": 0.0, "to": 6.0, "name": "spike", "lack": False}] for chart in drawn)


async def test_a_request_without_an_answer_is_marked_on_the_chart_and_counted_below_it() -> None:
    text = report.page(await run_of(FakeStage(p99_ms={"alone": 12.0, "unmanaged": None, "sublet": 18.0})))
    chart = next(chart for chart in charts(text) if chart["title"] == "Latency: with unmanaged batch work")
    assert [line["shape"] for line in chart["lines"]] == ["dots", "triangles"]
    assert sum(value is not None for value in chart["lines"][1]["y"]) == 60
    assert "60 of 130 requests had no answer within 5 s" in text
    assert chart["range"][1] >= 5000


async def test_texts_of_messages_stay_texts_and_bytes_are_readable() -> None:
    text = report.page(await run_of(FakeStage()))
    assert "&lt;b&gt;" in text
    assert "observed=1.0 GiB" in text


async def test_the_document_says_the_same_for_machines(tmp_path: Path) -> None:
    report.write(tmp_path, await run_of(FakeStage(readings=[BUSY])))
    document = json.loads((tmp_path / "report.json").read_text())
    assert document["faults"] == []
    assert [claim["outcome"] for claim in document["claims"]] == ["shown"] * 5
    assert document["disturbed"][0].startswith("before: other work used 2.0 of 2 CPUs")
    assert document["cases"]["sublet"]["spike_p99_ms"] == 18.0
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")


async def test_a_run_with_nothing_in_it_is_a_page_too() -> None:
    stage = FakeStage(breaks={name: TimeoutError() for name in ("alone", "unmanaged", "start")}, readings=[BUSY])
    text = report.page(await run_of(stage))
    assert "the time was over" in text
