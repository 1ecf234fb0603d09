"""Eviction events as lines: a table, names, a template's output, or documents, including CloudEvents.

Each event is printed as it arrives: JSON as one object per line, YAML as one document after `---`.
"""

import json
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.stored import RefusedMessage, read_event
from shared.contracts.eviction import EvictionEvent
from shared.contracts.mode import Mode
from shared.ports import Received
from sublet.output import LineTable, as_yaml
from sublet.terminal.formats import OutputFormat
from sublet.views.figures import amount, moment

_TABLE = LineTable(
    ("seq", "time", "phase", "pod", "observed", "threshold", "message"), (6, 24, 9, 32, 12, 12, 0), right={0, 4, 5}
)
_WIDE = LineTable(
    (*_TABLE.header[:-1], "node", "qos", "plugin", "mode", "message"),
    (*_TABLE.widths[:-1], 12, 15, 40, 7, 0),
    _TABLE.right,
)


def head(output: OutputFormat) -> str:
    """The line above the events; "" where none is wanted."""
    return (_WIDE if output.kind == "wide" else _TABLE).head() if output.is_table else ""


def table_line(event: EvictionEvent, sequence: int, *, wide: bool = False) -> str:
    """One event with its numbers and the text of the Kubernetes event; `wide` with its node and its rule too."""
    words = f"{event.message} ({event.detail})" if event.detail and event.detail not in event.message else event.message
    # First, for the end of a line may not be seen: nobody is evicted in a rehearsal, whatever its message says.
    words = words if event.mode == "enforce" else f"[{event.mode}] {words}"
    pod = f"{event.namespace}/{event.pod}"
    figures = [amount(event.scope, value) for value in (event.observed, event.threshold)]
    cells = [str(sequence), moment(event.sent_at), event.phase, pod, *figures]
    if wide:
        return _WIDE.line([*cells, event.node, event.qos, event.plugin, event.mode, words])
    return _TABLE.line([*cells, words])


def document(event: EvictionEvent, sequence: int) -> dict[str, Any]:
    """The event as it travels, with its place in the stream."""
    return {"stream_sequence": sequence, **event.model_dump(mode="json")}


def cloudevent_line(event: EvictionEvent) -> str:
    """The event in structured mode: its attributes, itself as `data` (CloudEvents 1.0, JSON)."""
    attributes = {name.removeprefix("ce-"): unquote(value) for name, value in event_headers(event).items()}
    document: dict[str, Any] = {**attributes, "data": json.loads(event.encode())}
    return json.dumps(document)


def line(
    received: Received, output: OutputFormat, *, begin: datetime | None = None, mode: Mode | None = None
) -> str | RefusedMessage:
    """One message of the stream in the form asked for, or why it is no event.

    "" for an event that the node's clock puts before `begin`, or of another mode.
    """
    event = read_event(received.subject, received.headers, received.data)
    if isinstance(event, RefusedMessage):
        return event
    if (begin is not None and event.sent_at < begin) or mode not in (None, event.mode):
        return ""
    return _printed(event, received.sequence, output)


def _printed(event: EvictionEvent, sequence: int, output: OutputFormat) -> str:
    if output.is_table:
        return table_line(event, sequence, wide=output.kind == "wide")
    if output.template is not None:
        return output.template.render(document(event, sequence))
    match output.kind:
        case "name":
            return f"event/{event.event_id}"
        case "cloudevents":
            return cloudevent_line(event)
        case "yaml":
            return f"---\n{as_yaml(document(event, sequence))}"
    return json.dumps(document(event, sequence))
