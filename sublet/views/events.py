"""Eviction events as lines: a table, JSON, or CloudEvents in structured mode (one JSON object a line)."""

import json
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.stored import RefusedMessage, read_event
from shared.contracts.eviction import EvictionEvent
from shared.ports import Received
from sublet.output import printable
from sublet.views.figures import amount, moment

HEAD = f"{'SEQ':>6}  {'TIME':<24}  {'PHASE':<9}  {'POD':<32}  {'OBSERVED':>12}  {'THRESHOLD':>12}  MESSAGE"


def table_line(event: EvictionEvent, sequence: int) -> str:
    """One event with its numbers and the text of the Kubernetes event."""
    words = f"{event.message} ({event.detail})" if event.detail and event.detail not in event.message else event.message
    return (
        f"{sequence:>6}  {moment(event.sent_at)}  {event.phase:<9}  {f'{event.namespace}/{event.pod}':<32}  "
        f"{amount(event.scope, event.observed):>12}  {amount(event.scope, event.threshold):>12}  {printable(words)}"
    ).rstrip()


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
