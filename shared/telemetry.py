"""Counters for Prometheus, structured logs, and spans on the decision path (off unless asked for).

Names follow Prometheus' rules: base units, `_total` for counters, no pod or tenant strings as labels
(docs/facts/safety-rules.md#names-of-metrics). Nothing of OpenTelemetry is imported while tracing is off.
"""

import contextlib
import logging
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import structlog
from prometheus_client import Counter, Gauge, Histogram

from shared.build import BUILD
from shared.errors import Unfit

REFUSED = Counter(
    "sublet_messages_refused_total", "Messages refused and not applied.", ["service", "message", "reason"]
)
TAKEN = Counter("sublet_messages_taken_total", "Messages taken as the newest.", ["service", "message"])
DROPPED = Counter("sublet_messages_dropped_total", "Messages lost before a handler saw them.", ["service", "reason"])
INPUT_AGE = Gauge("sublet_input_age_seconds", "Age of the newest usable input.", ["service", "message"])
STEP_SECONDS = Histogram(
    "sublet_step_duration_seconds",
    "Time from an input to its published outcome.",
    ["service"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5),
)
LOOP_LAG = Gauge("sublet_event_loop_lag_seconds", "How late the event loop ran its last timer.")
SCHEDULING = Gauge(
    "sublet_event_loop_scheduling", "1 for how the kernel runs the event loop: realtime, nice, none.", ["given"]
)
RECONNECTS = Counter("sublet_bus_reconnects_total", "Reconnections to the bus.")
DISCONNECTS = Counter("sublet_bus_disconnects_total", "Connections to the bus that were lost or closed.")
BUS_ERRORS = Counter("sublet_bus_errors_total", "Errors the bus client reported by itself.", ["kind"])
STORE_RETRIES = Counter("sublet_durable_publish_retries_total", "Durable publishes tried again with the same id.")
STREAM_MESSAGES = Gauge("sublet_stream_messages", "Messages in a stream; in SUBLET_DEAD_LETTERS: given up.", ["stream"])
STREAM_BYTES = Gauge("sublet_stream_bytes", "Bytes in a stream.", ["stream"])
STREAM_CUTS = Counter(
    "sublet_stream_cuts_total",
    "Times that a stream was nearly full: a node held too much, or the oldest went.",
    ["stream", "kind"],
)
CONNECTED = Gauge("sublet_bus_connected", "1 while the bus is connected.")
BUILD_INFO = Gauge("sublet_build_info", "1; the labels say what runs.", ["version", "revision", "python"])
BUILD_INFO.labels(BUILD.version, BUILD.revision, BUILD.python).set(1)
CONFIG_REVISION = Gauge("sublet_config_revision", "Newest revision that a service works with; 0: none.", ["service"])
CONFIG_REFUSED_REVISION = Gauge(
    "sublet_config_refused_revision",
    "Revision that a service refuses; 0: none.",
    ["service"],
)
HEARTBEATS_BEHIND = Gauge(
    "sublet_central_heartbeats_behind_seconds", "How late central reads what nodes send, by its own probe behind them."
)
UNHEARD_SHARDS = Gauge("sublet_central_unheard_shards", "Shards of the heartbeats that no central hears.")
CONFIG_NODES = Gauge("sublet_central_config_nodes", "Nodes by what became of the newest configuration.", ["state"])
CONFIG_REFUSED = Counter("sublet_config_refused_total", "Dynamic configurations refused.", ["service"])

_BUCKETS_OF_LIFE = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
EVICTION_SECONDS = Histogram(
    "sublet_eviction_latency_seconds", "From the sample that showed the pressure.", ["stage"], buckets=_BUCKETS_OF_LIFE
)
DECISIONS = Counter(
    "sublet_decisions_total", "Decisions of central by area, and whether they were said.", ["area", "outcome"]
)
EVICTIONS = Counter("sublet_evictions_total", "Evictions by plugin and outcome.", ["plugin", "phase"])
IDS_TAKEN = Counter("sublet_message_ids_taken_total", "Facts whose message id somebody else had used.")
OUTBOX = Gauge("sublet_outbox_messages", "Eviction events not yet acknowledged by the stream.")
BRIDGED = Counter(
    "sublet_bridge_events_total", "Messages of the stream of events that a bridge is done with.", ["outcome"]
)
CGROUP_WRITES = Counter("sublet_qrm_cgroup_writes_total", "Cgroup writes by file and result.", ["file", "result"])
OFFLOADED_BYTES = Counter("sublet_qrm_offloaded_bytes_total", "Idle memory given back, by outcome.", ["status"])
POOL_CPUS = Gauge("sublet_pool_cpus", "CPUs of a pool as read back from the kernel.", ["pool"])
SHARED_CPUS = Gauge("sublet_advisor_shared_cpus", "1 while tenants may use the CPUs of reclaimed pods; 0: pools apart.")
RECLAIMED_CPU = Gauge("sublet_node_cpu_reclaimable_cores", "Cores offered to reclaimed pods.")
RECLAIMED_MEMORY = Gauge("sublet_node_memory_reclaimable_bytes", "Bytes offered to reclaimed pods.")
SAMPLE_PODS_SHORTENED = Gauge("sublet_sample_pods_shortened", "Pods with less detail in the newest sample, for room.")
POD_REVIEWS = Counter(
    "sublet_central_pod_reviews_total", "Pods that the API server asked about, by what came of it.", ["kind", "outcome"]
)
POD_REVIEW_SECONDS = Histogram(
    "sublet_central_pod_review_seconds",
    "Time from the body of a question about a pod to its answer.",
    ["kind"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5),
)
EXTENDER_CALLS = Counter(
    "sublet_extender_calls_total", "Calls of schedulers, by what came of them.", ["verb", "outcome"]
)
EXTENDER_SECONDS = Histogram(
    "sublet_extender_call_seconds",
    "Time from the body of a scheduler's call to its answer.",
    ["verb"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0),
)
EXTENDER_REFUSALS = Counter(
    "sublet_extender_refusals_total", "Nodes that a pod was kept away from, by the rule that did.", ["rule"]
)
EXTENDER_HELD = Gauge("sublet_extender_held_pods", "Pods that were let onto nodes and are not seen on one yet.")
EXTENDER_SILENT = Gauge(
    "sublet_extender_silent_nodes", "Nodes whose last message is too old, so that their objects speak for them."
)
EXTENDER_DATA_AGE = Gauge(
    "sublet_extender_data_age_seconds", "Age of the oldest message that counts; 0 while no node's does."
)
GATED_PODS = Gauge("sublet_gate_waiting_pods", "Pods that wait behind the gate for reclaimed capacity.")
GATE_RELEASES = Counter("sublet_gate_releases_total", "Pods that were let go from behind the gate.")
PROFILES_FAILED = Counter(
    "sublet_central_profiles_failed_total", "Times that a colocation profile could not be applied to a pod it matches."
)
METRICS_REQUESTS = Counter(
    "sublet_metrics_api_requests_total", "Requests to the metrics API, by group and outcome.", ["group", "outcome"]
)
METRICS_REQUEST_SECONDS = Histogram(
    "sublet_metrics_api_request_seconds",
    "Time from a request of the front proxy to its answer.",
    ["group"],
    buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5),
)
METRICS_DROPPED = Counter("sublet_metrics_api_samples_dropped_total", "Samples not taken, by reason.", ["reason"])
METRICS_PAGES_LEFT_OUT = Gauge("sublet_metrics_api_pages_left_out", "Pods' own pages beyond those that are read.")
METRICS_SERIES = Gauge("sublet_metrics_api_series", "Series that the metrics API holds.")
METRICS_SAMPLES = Gauge("sublet_metrics_api_samples", "Samples that the metrics API holds.")
NODES_READY = Gauge("sublet_central_nodes", "Nodes in central's readiness ledger.", ["state"])


def setup_logging(service: str, node: str, *, as_json: bool, level: str = "info") -> None:
    """Log to standard error: one event name per line, fixed keys; JSON unless a person reads along."""
    # Not bound to the context alone: a library's thread, and a callback of another context, speak for the process too.
    speaker = {"service": service, "node": node}
    renderer: Any = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(
        colors=sys.stderr.isatty(), pad_event_to=24
    )  # fmt: skip
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            lambda _logger, _method, line: {**speaker, **line},
            _add_trace,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,  # standard error may be replaced, and lines are rare
    )
    logging.basicConfig(handlers=[_LibraryLines()], level=logging.WARNING, force=True)


class _LibraryLines(logging.Handler):
    """Warnings of libraries, in the shape of our own lines: whoever reads the log meets no other."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a library's line."""
        log = structlog.get_logger()
        say = log.error if record.levelno >= logging.ERROR else log.warning
        say("library.said", library=record.name, why=record.getMessage(), exc_info=record.exc_info)


def _add_trace(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Name the trace in which a line is written, if it is written in one."""
    if _tracer is not None:
        from opentelemetry.trace import get_current_span

        context = get_current_span().get_span_context()
        if context.is_valid:
            line.update(trace_id=f"{context.trace_id:032x}", span_id=f"{context.span_id:016x}")
    return line


TRACEPARENT = "traceparent"
"""Header of W3C Trace Context; while tracing is off no message has it."""

Attributes = Mapping[str, str | int | float | bool]

_tracer: Any = None


def setup_tracing(service: str, node: str, endpoint: str | None) -> None:
    """Send spans to an OTLP/HTTP endpoint; with None everything stays off and nothing is imported.

    The SDK's own environment variables bound how much is sent (`OTEL_TRACES_SAMPLER`, `OTEL_BSP_…`).

    Raises:
        Unfit: tracing is asked for, its packages are not installed.
    """
    global _tracer
    if not endpoint:
        _tracer = None
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise Unfit(
            f"otlp_endpoint is {endpoint!r}, but {error.name} is not installed: "
            "pip install 'sublet[trace]' (an image: deploy/trace.Dockerfile), or unset otlp_endpoint",
            reason="no_tracing",
        ) from error
    about = {"service.name": f"sublet-{service}", "service.version": BUILD.version, "host.name": node}
    provider = TracerProvider(resource=Resource.create(about))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    use_tracer(provider.get_tracer("sublet"))


def use_tracer(tracer: Any) -> None:
    """Make this tracer the one that `span` uses; None switches tracing off."""
    global _tracer
    _tracer = tracer


def tracing() -> bool:
    """Whether spans are made in this process."""
    return _tracer is not None


_NO_SPAN = contextlib.nullcontext()


def span(
    name: str, attributes: Attributes | None = None, *, parent: str = ""
) -> contextlib.AbstractContextManager[None]:
    """A span around one step of a decision; while tracing is off always the same object, which does nothing.

    Args:
        name: service and step.
        attributes: what it works on.
        parent: `traceparent` of the message that led to this step; counts where no span of this process is open.
    """
    return _NO_SPAN if _tracer is None else _open_span(name, attributes, parent)


@contextlib.contextmanager
def _open_span(name: str, attributes: Attributes | None, parent: str) -> Iterator[None]:
    from opentelemetry.trace import INVALID_SPAN, get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = None
    if parent and get_current_span() is INVALID_SPAN:
        # Whatever is no traceparent is passed over there, and the span begins a trace of its own.
        context = TraceContextTextMapPropagator().extract({TRACEPARENT: parent})
    with _tracer.start_as_current_span(name, context=context, attributes=dict(attributes or {})):
        yield


def note(attributes: Attributes, *, event: str = "") -> None:
    """Add what has come of a step to the current span, as an event in its course if it has a name."""
    if _tracer is None:
        return
    from opentelemetry.trace import get_current_span

    current = get_current_span()
    if event:
        current.add_event(event, dict(attributes))
    else:
        current.set_attributes(dict(attributes))


def trace_headers() -> dict[str, str]:
    """Return the `traceparent` of the current span, for the headers of a message; empty while tracing is off."""
    if _tracer is None:
        return {}
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    # Not the propagators that the environment may name: baggage is nobody's business on this bus.
    TraceContextTextMapPropagator().inject(carrier)
    return carrier
