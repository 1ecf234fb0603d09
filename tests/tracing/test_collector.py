"""A node of separate processes on a real bus sends its spans to a real OpenTelemetry Collector."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from collector_rig import Collector, Span, running
from rig_parts import until
from slow_machines import patience_s

ROOT = Path(__file__).parents[2]
PATIENCE_S = 300.0
pytestmark = [pytest.mark.tracing, pytest.mark.timeout(900)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Traced:
    """`sublet up` on a simulated machine, until a pod was evicted there and its spans have arrived."""

    def __init__(self, folder: Path, collector: Collector) -> None:
        self.state, self.collector = folder / "state", collector
        self._said = folder / "up.log"
        self._env = os.environ | {
            "SUBLET_STATE_DIR": str(self.state),
            "SUBLET_OTLP_ENDPOINT": collector.endpoint,
            "OTEL_BSP_SCHEDULE_DELAY": "500",
        }
        words = ["up", "--substrate", "sim", "--scenario", "tide", "--nats-port", "0"]
        with self._said.open("wb") as log:
            self._up = subprocess.Popen([*self._sublet, *words], cwd=ROOT, env=self._env, stdout=log, stderr=log)

    _sublet = (sys.executable, "-m", "sublet")

    def eviction(self) -> Span | None:
        """The span of the one eviction that has ended."""
        assert self._up.poll() is None, self._said.read_text()
        return next((span for span in self.collector.spans() if span.attributes.get("outcome") == "succeeded"), None)

    def events(self) -> Sequence[dict[str, Any]]:
        """The events of evictions, as a subscriber sees them."""
        words = [*self._sublet, "events", "-o", "json"]
        done = subprocess.run(words, cwd=ROOT, env=self._env, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def log(self) -> Sequence[dict[str, Any]]:
        """Every line of every process of Sublet: the NATS server writes its own way."""
        files = [file for file in sorted((self.state / "logs").glob("*.log")) if file.stem != "nats"]
        assert {"metrics", "advisor", "qrm", "evictor", "reporter", "central"} <= {file.stem for file in files}
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def end(self) -> None:
        self._up.terminate()
        self._up.wait(patience_s(60))


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    folder = tmp_path_factory.mktemp("traced")
    with running(folder, free_port()) as collector:
        node = Traced(folder, collector)
        try:
            until(node.eviction, PATIENCE_S, "the end of an eviction")
            yield node
        finally:
            node.end()


def of_eviction(node: Traced) -> tuple[Span, dict[str, Span]]:
    """The eviction's span, and all spans of its trace by id; they come from five processes, one after the other."""
    eviction = node.eviction()
    assert eviction is not None

    def trace() -> dict[str, Span]:
        return {span.id: span for span in node.collector.spans() if span.trace_id == eviction.trace_id}

    whole = {"metrics.pass", "advisor.decide", "qrm.pass", "reporter.report", "bus.publish_durable"}
    until(
        lambda: whole <= {span.name for span in trace().values()}, PATIENCE_S, f"{whole} in trace {eviction.trace_id}"
    )
    return eviction, trace()


def test_one_trace_leads_from_the_sample_through_five_processes_to_the_pods_end(traced: Traced) -> None:
    eviction, trace = of_eviction(traced)
    paths = {}
    for span in trace.values():
        path, one = [f"{span.service}/{span.name}"], span
        while one.parent_id:
            one = trace[one.parent_id]
            path.append(f"{one.service}/{one.name}")
        paths[span.name] = path
    sample, judged = "sublet-metrics/metrics.pass", "sublet-evictor/evictor.judge"
    assert paths["evictor.carry_out"] == ["sublet-evictor/evictor.carry_out", judged, sample]
    assert paths["reporter.report"] == [
        "sublet-reporter/reporter.report", "sublet-qrm/qrm.pass", "sublet-advisor/advisor.decide", sample,
    ]  # fmt: skip
    calls = [one for one in trace.values() if one.name == "actuator.evict" and one.parent_id == eviction.id]
    assert [(one.attributes["dry_run"], one.attributes["outcome"]) for one in calls] == [
        ("true", "accepted"), ("false", "accepted"),
    ]  # fmt: skip


def test_every_fact_of_the_eviction_is_stored_within_its_trace(traced: Traced) -> None:
    """Also those that the outbox sends later, from a task that knows nothing of the eviction."""
    eviction, _ = of_eviction(traced)

    def of_it() -> list[Span]:
        return [one for one in _stored(traced) if one.trace_id == eviction.trace_id]

    until(lambda: len(of_it()) >= 4, PATIENCE_S, "an intent and three events in the eviction's trace")
    # Also those of other evictions, if more pods had to go: no fact begins a trace of its own.
    assert [one for one in _stored(traced) if not one.parent_id] == []


def _stored(node: Traced) -> list[Span]:
    facts = ("event.eviction.", "intent.")
    return [
        span
        for span in node.collector.spans()
        if span.name == "bus.publish_durable"
        and span.service == "sublet-evictor"
        and any(fact in span.attributes["messaging.destination.name"] for fact in facts)
    ]


def test_every_line_of_every_process_is_as_the_schema_says_and_joins_with_trace_and_events(traced: Traced) -> None:
    eviction, _ = of_eviction(traced)
    validator = jsonschema.Draft202012Validator(json.loads((ROOT / "docs/schemas/LogLine.json").read_text()))
    lines = traced.log()
    wrong = [(line, error.message) for line in lines for error in validator.iter_errors(line)]
    assert wrong == []
    its_own = eviction.attributes["intent_id"]
    steps = [line for line in lines if line["event"].startswith("eviction.") and line.get("intent_id") == its_own]
    assert [line["event"].removeprefix("eviction.") for line in steps] == [
        "intended", "requested", "accepted", "succeeded",
    ]  # fmt: skip
    assert {line["trace_id"] for line in steps} == {eviction.trace_id}
    events = [event for event in traced.events() if event["intent_id"] == its_own]
    assert {(line["intent_id"], line["pod_uid"], line["node"]) for line in steps} == {
        (event["intent_id"], event["pod_uid"], event["node"]) for event in events
    }
