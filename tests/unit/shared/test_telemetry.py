"""Logs, counters and spans."""

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog
from fixture_types import Until
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from present import present

from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.contracts.readiness import Readiness
from shared.errors import Unfit
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Received
from shared.wire import Wire


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry.use_tracer(provider.get_tracer("test"))
    yield exporter
    telemetry.use_tracer(None)


def python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_nothing_of_opentelemetry_is_imported_while_tracing_is_off() -> None:
    program = """
import sys
import shared.adapters.process
from shared import telemetry
telemetry.setup_tracing("qrm", "n1", None)
with telemetry.span("step", {"a": 1}):
    assert telemetry.trace_headers() == {}
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    done = python(program)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_the_http_server_is_not_imported_for_a_process_without_a_port() -> None:
    done = python("import sys, shared.adapters.process; print('aiohttp.web' in sys.modules)")
    assert done.stdout.strip() == "False"


def test_tracing_without_its_packages_is_said_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(Unfit, match=r"pip install 'sublet\[trace\]'"):
        telemetry.setup_tracing("qrm", "n1", "http://127.0.0.1:4318/v1/traces")


def test_spans_nest_and_carry_their_attributes(spans: InMemorySpanExporter) -> None:
    with telemetry.span("decide", {"pool": "share", "cpus": 8}), telemetry.span("write"):
        pass
    write, decide = spans.get_finished_spans()
    assert (write.name, decide.name) == ("write", "decide")
    assert dict(decide.attributes or {}) == {"pool": "share", "cpus": 8}
    assert present(write.parent).span_id == present(decide.context).span_id


def test_trace_headers_name_the_current_span(spans: InMemorySpanExporter) -> None:
    with telemetry.span("decide"):
        header = telemetry.trace_headers()["traceparent"]
    (decide,) = spans.get_finished_spans()
    assert header.split("-")[1:3] == [f"{decide.context.trace_id:032x}", f"{decide.context.span_id:016x}"]


PARENT = f"00-{'a' * 32}-{'b' * 16}-01"


def test_a_message_continues_the_trace_of_its_sender(spans: InMemorySpanExporter) -> None:
    with telemetry.span("decide", parent=PARENT):
        pass
    (decide,) = spans.get_finished_spans()
    assert (f"{decide.context.trace_id:032x}", f"{present(decide.parent).span_id:016x}") == ("a" * 32, "b" * 16)


def test_an_open_span_of_this_process_counts_for_more_than_a_message(spans: InMemorySpanExporter) -> None:
    with telemetry.span("decide"), telemetry.span("write", parent=PARENT):
        pass
    write, decide = spans.get_finished_spans()
    assert present(write.parent).span_id == present(decide.context).span_id


@pytest.mark.parametrize("parent", ["x", "00-" + "0" * 32 + "-" + "b" * 16 + "-01", "00-" + "a" * 5000, "\x00"])
def test_a_header_that_is_no_traceparent_begins_a_trace_of_its_own(spans: InMemorySpanExporter, parent: str) -> None:
    with telemetry.span("decide", parent=parent):
        pass
    (decide,) = spans.get_finished_spans()
    assert decide.parent is None


def test_what_came_of_a_step_is_in_its_span(spans: InMemorySpanExporter) -> None:
    with telemetry.span("evict"):
        telemetry.note({"attempt": 1}, event="requested")
        telemetry.note({"outcome": "gone"})
    (evict,) = spans.get_finished_spans()
    assert dict(evict.attributes or {}) == {"outcome": "gone"}
    assert [(event.name, dict(event.attributes or {})) for event in evict.events] == [("requested", {"attempt": 1})]


async def test_a_message_has_headers_only_within_a_span(spans: InMemorySpanExporter, until: Until) -> None:
    bus, clock = MemoryBus(name="telemetry-test"), SystemClock()
    wire = Wire(bus, clock, node="n1", service="metrics")
    slot = await wire.newest(Readiness)
    await wire.publish(wire.stamp(Readiness, ready=True))
    assert (await slot.next(), slot.traceparent) == (slot.value, "")
    with telemetry.span("decide"):
        await wire.publish(wire.stamp(Readiness, ready=True))
        inside = telemetry.trace_headers()["traceparent"]
    await slot.next()
    assert slot.traceparent == inside
    await wire.publish(wire.stamp(Readiness, ready=True))
    await slot.next()
    assert slot.traceparent == ""


async def test_while_tracing_is_off_a_message_is_sent_as_it_would_be_without_tracing() -> None:
    sent: list[tuple[object, ...]] = []

    class Seen(MemoryBus):
        async def publish(self, *message: object) -> bool:
            sent.append(message)
            return True

    wire = Wire(Seen(name="telemetry-test"), SystemClock(), node="n1", service="metrics")
    assert telemetry.span("decide", {"a": 1}) is telemetry.span("write")  # nothing is made for a step
    with telemetry.span("decide", {"a": 1}):
        await wire.publish(wire.stamp(Readiness, ready=True), payload=b"{}")
    assert [message[1:] for message in sent] == [(b"{}", None)]


def test_a_failure_inside_a_span_passes_through_and_is_recorded(spans: InMemorySpanExporter) -> None:
    with pytest.raises(RuntimeError), telemetry.span("decide"):
        raise RuntimeError("no")
    (decide,) = spans.get_finished_spans()
    assert decide.status.status_code.name == "ERROR"


def test_a_log_line_is_one_json_object_with_service_and_node() -> None:
    program = """
import structlog, sys
from shared import telemetry
telemetry.setup_logging("qrm", "node-a", as_json=True, level="info")
log = structlog.get_logger()
log.debug("too.quiet")
log.info("allocation.applied", cpus=8)
try:
    1 / 0
except ZeroDivisionError:
    log.exception("step.failed")
"""
    lines = [json.loads(line) for line in python(program).stderr.splitlines()]
    assert [line["event"] for line in lines] == ["allocation.applied", "step.failed"]
    assert {k: lines[0][k] for k in ("service", "node", "cpus", "level")} == {
        "service": "qrm", "node": "node-a", "cpus": 8, "level": "info",
    }  # fmt: skip
    assert "ZeroDivisionError" in lines[1]["exception"]


def test_a_log_line_for_a_person_is_plain_text() -> None:
    program = (
        "import structlog; from shared import telemetry; telemetry.setup_logging('qrm', 'a', as_json=False);"
        "structlog.get_logger().info('allocation.applied', cpus=8)"
    )
    line = python(program).stderr
    assert "allocation.applied" in line
    assert "cpus=8" in line
    assert "\x1b" not in line  # no colours where nobody sees them


async def test_a_handler_that_fails_is_logged_and_counted(until: Until) -> None:
    def fails(message: Received) -> None:
        raise ZeroDivisionError

    bus = MemoryBus(name="telemetry-test")
    before = telemetry.DROPPED.labels("telemetry-test", "handler_failed")._value.get()
    with structlog.testing.capture_logs() as logs:
        await bus.subscribe("x", fails)
        await bus.publish("x", b"")
        await until(lambda: logs)
    assert logs[0]["event"] == "bus.handler_failed"
    assert telemetry.DROPPED.labels("telemetry-test", "handler_failed")._value.get() == before + 1


def test_a_service_loads_nothing_that_is_for_terminals_alone() -> None:
    """In a process of its own: the tests load rich themselves."""
    loaded = "import sys, sublet.node, services.central.main; print({m for m in sys.modules if m.startswith('rich')})"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_watchdog_of_the_lease_loads_the_standard_library_alone() -> None:
    """In a process of its own: it waits on every node for as long as Sublet is there."""
    script = (
        "import sys; before = set(sys.modules); import services.qrm.keeper; "
        "print({m for m in sys.modules.keys() - before if m.partition('.')[0] not in sys.stdlib_module_names}"
        " - {m for m in sys.modules if m.partition('.')[0] in ('services', 'shared')})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
