"""One trace leads from the sample that mattered through all services of the node to the pod's end."""

from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from present import present

from shared import telemetry
from shared.ports import Received
from sublet.sim.run import SimulationRun, in_virtual_time
from sublet.sim.scenario import load_scenario


class Heard(SimulationRun):
    """A run that keeps what a subscriber receives."""

    def _take_event(self, received: Received) -> None:
        heard.append(received)
        super()._take_event(received)


heard: list[Received] = []


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> tuple[ReadableSpan, ...]:
    """The spans of a run in which one pod is evicted."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry.use_tracer(provider.get_tracer("test"))
    heard.clear()
    try:
        folder: Path = tmp_path_factory.mktemp("traced")
        report = in_virtual_time(Heard(load_scenario("memory"), folder).play())
    finally:
        telemetry.use_tracer(None)
    assert report.problems == []
    return exporter.get_finished_spans()


def trace_of(span: ReadableSpan) -> int:
    return int(present(span.context).trace_id)


def path_to_the_root(span: ReadableSpan, spans: tuple[ReadableSpan, ...]) -> list[str]:
    by_id = {present(one.context).span_id: one for one in spans}
    names = [span.name]
    while span.parent is not None:
        span = by_id[span.parent.span_id]
        names.append(span.name)
    return names


def evicted(spans: tuple[ReadableSpan, ...]) -> ReadableSpan:
    """The one eviction that was carried out to its end."""
    (found,) = [one for one in spans if one.name == "evictor.carry_out"]
    return found


def test_an_eviction_is_in_the_trace_of_the_sample_that_led_to_it(spans: tuple[ReadableSpan, ...]) -> None:
    eviction = evicted(spans)
    assert path_to_the_root(eviction, spans) == ["evictor.carry_out", "evictor.judge", "metrics.pass"]
    assert present(eviction.attributes)["outcome"] == "succeeded"
    assert present(eviction.attributes)["k8s.pod.name"] == "reclaimed-large-pod-2"
    # `intended` is written by the round that decides, the steps behind it by the task that carries it out.
    steps = [event.name for event in eviction.events]
    assert steps == ["eviction.requested", "eviction.accepted", "eviction.succeeded"]


def test_the_calls_of_an_eviction_are_in_its_trace_with_what_they_were_answered(
    spans: tuple[ReadableSpan, ...],
) -> None:
    eviction = evicted(spans)
    calls = [one for one in spans if one.name == "actuator.evict" and trace_of(one) == trace_of(eviction)]
    assert [(present(one.attributes)["dry_run"], present(one.attributes)["outcome"]) for one in calls] == [
        (True, "accepted"), (False, "accepted"),
    ]  # fmt: skip
    looks = [one for one in spans if one.name == "actuator.lookup" and trace_of(one) == trace_of(eviction)]
    assert present(looks[-1].attributes)["standing"] == "gone"


def test_the_same_sample_leads_through_advisor_and_qrm_to_the_reporter(spans: tuple[ReadableSpan, ...]) -> None:
    trace = trace_of(evicted(spans))
    written = [one for one in spans if one.name == "reporter.report" and trace_of(one) == trace]
    assert path_to_the_root(written[0], spans) == ["reporter.report", "qrm.pass", "advisor.decide", "metrics.pass"]
    assert "qrm.apply" in {one.name for one in spans if trace_of(one) == trace}


def test_every_event_names_the_trace_as_a_header_and_as_an_attribute(spans: tuple[ReadableSpan, ...]) -> None:
    trace = f"{trace_of(evicted(spans)):032x}"
    assert len(heard) == 3
    for received in heard:
        assert received.headers["traceparent"].split("-")[1] == trace
        # The attribute stays what it was where the event was made; this bus has no hop that changes the header.
        assert received.headers["ce-traceparent"] == received.headers["traceparent"]
