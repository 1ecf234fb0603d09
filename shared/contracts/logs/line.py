"""The keys of a log line, as a JSON Schema (docs/schemas/LogLine.json)."""

from typing import Any

from shared.contracts.logs.events import LOG_EVENTS

RESERVED = frozenset({"event", "level", "timestamp", "service", "trace_id", "span_id"})
"""Keys that every line may get by itself: no call to the log gives them."""

_TEXTS = {
    "node": "The node that the line is about: the process's own, or for central another one.",
    "pod": "A pod as namespace/name.",
    "pod_uid": "The pod's UID: `ce-partitionkey` of its events, `k8s.pod.uid` of its spans.",
    "intent_id": "An eviction: the first part of `ce-id` of its events, `intent_id` of its spans.",
    "plugin": "The eviction plugin.",
    "why": "A sentence for a person.",
    "reason": "A word for a machine, as in the labels of counters.",
    "exception": "The traceback of a fault.",
    "library": "Whose line it is, for `library.said`.",
}


def log_line_schema() -> dict[str, Any]:
    """What every line is; keys that are not named here belong to their event."""
    text = {"type": "string"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "LogLine",
        "description": "A line on standard error of a process with log_json, the default.",
        "type": "object",
        "required": ["event", "level", "node", "service", "timestamp"],
        "properties": {
            "event": {"description": "What happened (docs/reference/logs.md).", "enum": sorted(LOG_EVENTS)},
            "level": {"enum": ["debug", "info", "warning", "error", "critical"]},
            "timestamp": text | {"pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$", "description": "In UTC."},
            "service": text | {"description": "Who speaks."},
            "trace_id": text | {"pattern": "^[0-9a-f]{32}$", "description": "While tracing is on, within a span."},
            "span_id": text | {"pattern": "^[0-9a-f]{16}$"},
            **{key: text | {"description": about} for key, about in _TEXTS.items()},
        },
    }
