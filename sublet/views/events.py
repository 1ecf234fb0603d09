"""Eviction events as lines: a table, JSON, or CloudEvents in structured mode (one JSON object a line)."""

import json
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.stored import RefusedMessage, read_event
from shared.contracts.eviction import EvictionEvent
from shared.ports import Received
from sublet.output import LineTable
from sublet.views.figures import amount, moment

_TABLE = LineTable(
    ("seq", "time", "phase", "pod", "observed", "threshold", "message"), (6, 24, 9, 32, 12, 12, 0), right={0, 4, 5}
)
HEAD = _TABLE.head()


def table_line(event: EvictionEvent, sequence: int) -> str:
    """One event with its numbers and the text of the Kubernetes event."""
    words = f"{event.message} ({event.detail})" if event.detail and event.detail not in event.message else event.message
    pod = f"{event.namespace}/{event.pod}"
    figures = [amount(event.scope, value) for value in (event.observed, event.threshold)]
    return _TABLE.line([str(sequence), moment(event.sent_at), event.phase, pod, *figures, words])


def json_line(event: EvictionEvent, sequence: int) -> str:
    """The event as it travels, with its place in the stream."""
    return json.dumps({"stream_sequence": sequence, **event.model_dump(mode="json")})


def cloudevent_line(event: EvictionEvent) -> str:
    """The event in structured mode: its attributes, itself as `data` (CloudEvents 1.0, JSON)."""
    attributes = {name.removeprefix("ce-"): unquote(value) for name, value in event_headers(event).items()}
    document: dict[str, Any] = {**attributes, "data": json.loads(event.encode())}
    return json.dumps(document)


def line(received: Received, output: str, *, begin: datetime | None = None) -> str | RefusedMessage:
    """One message of the stream in the form asked for, or why it is no event.

    "" for an event that the node's clock puts before `begin`.
    """
    event = read_event(received.subject, received.headers, received.data)
    if isinstance(event, RefusedMessage):
        return event
    if begin is not None and event.sent_at < begin:
        return ""
    if output == "cloudevents":
        return cloudevent_line(event)
    if output == "json":
        return json_line(event, received.sequence)
    return table_line(event, received.sequence)
