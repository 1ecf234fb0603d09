"""Eviction events as lines: a table, JSON, or CloudEvents in structured mode (one JSON object a line)."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from shared.contracts.cloudevents import read_event
from shared.contracts.eviction import EvictionEvent
from shared.ports import Received
from sublet.views.figures import clock, number

HEAD = f"{'SEQ':>6}  {'TIME':<12}  {'PHASE':<9}  {'POD':<32}  {'OBSERVED':>10}  {'THRESHOLD':>10}  MESSAGE"
_PREFIX = "ce-"


def table_line(event: EvictionEvent, sequence: int) -> str:
    """One event with its numbers and the text of the Kubernetes event."""
    words = f"{event.message} ({event.detail})" if event.detail and event.detail not in event.message else event.message
    return (
        f"{sequence:>6}  {clock(event.sent_at)}  {event.phase:<9}  {f'{event.namespace}/{event.pod}':<32}  "
        f"{number(event.observed):>10}  {number(event.threshold):>10}  {words}"
    ).rstrip()


def json_line(event: EvictionEvent, sequence: int) -> str:
    """The event as it travels, with its place in the stream."""
    return json.dumps({"stream_sequence": sequence, **event.model_dump(mode="json")})


def cloudevent_line(headers: Mapping[str, str], body: bytes) -> str:
    """The event in structured mode: the attributes from the headers, the body as `data` (CloudEvents 1.0, JSON)."""
    attributes = {name[len(_PREFIX) :]: unquote(value) for name, value in headers.items() if name.startswith(_PREFIX)}
    document: dict[str, Any] = {**attributes, "data": json.loads(body)}
    return json.dumps(document)


def line(received: Received, output: str, *, begin: datetime | None = None) -> str:
    """One message of the stream in the form asked for; "" for an event that the node's clock puts before `begin`.

    Raises:
        Refused: it is not an eviction event that can be read.
    """
    event = read_event(received.headers, received.data)
    if begin is not None and event.sent_at < begin:
        return ""
    if output == "cloudevents":
        return cloudevent_line(received.headers, received.data)
    if output == "json":
        return json_line(event, received.sequence)
    return table_line(event, received.sequence)
