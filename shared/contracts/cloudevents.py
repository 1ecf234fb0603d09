"""CloudEvents 1.0, NATS protocol binding, binary mode: attributes as headers, the event itself as the body.

Header names are written and read exactly in lower case, because NATS keeps case and the client compares it
(notes/nats-practice.md section 15). Values outside printable ASCII are percent-encoded, as the binding asks.
"""

from collections.abc import Mapping
from urllib.parse import quote, unquote

from shared.contracts.eviction import EvictionEvent
from shared.errors import Refused

CONTENT_TYPE = "application/json"
REQUIRED = ("ce-specversion", "ce-id", "ce-type", "ce-source")
MSG_ID = "Nats-Msg-Id"

# Space, double quote, percent and everything outside printable ASCII are encoded; the rest stays readable.
_SAFE = "!#$&'()*+,/:;=?@[]<>^`{|}~\\"


def event_type(event: EvictionEvent) -> str:
    """Reverse domain name, the fact in the past tense, the major version."""
    return f"io.sublet.eviction.{event.phase}.v1"


def event_headers(event: EvictionEvent) -> dict[str, str]:
    """The headers of one eviction event; `ce-id` is also the NATS message id, so the stream drops repetitions."""
    attributes = {
        "specversion": "1.0",
        "id": event.event_id,
        "type": event_type(event),
        "source": f"/nodes/{event.node}/evictor",
        "subject": f"{event.namespace}/{event.pod}",
        "time": event.sent_at.isoformat().replace("+00:00", "Z"),
        "datacontenttype": CONTENT_TYPE,
        "dataschema": "https://sublet.io/schemas/v1/EvictionEvent.json",
        "partitionkey": event.pod_uid,
        "sequence": f"{event.attempt:020d}",
    }
    return {f"ce-{name}": quote(value, safe=_SAFE) for name, value in attributes.items()} | {MSG_ID: event.event_id}


def read_event(headers: Mapping[str, str], body: bytes) -> EvictionEvent:
    """The event of a message in binary mode.

    Raises:
        Refused: a required attribute is missing, the version is not 1.0, the body is malformed, or the id in the
            headers is not the body's.
    """
    missing = [name for name in REQUIRED if name not in headers]
    if missing:
        raise Refused(f"CloudEvent without {', '.join(missing)}", reason="malformed")
    if headers["ce-specversion"] != "1.0":
        raise Refused(f"CloudEvents version {headers['ce-specversion']!r}: only 1.0 is read", reason="unknown_version")
    event = EvictionEvent.decode(body)
    if unquote(headers["ce-id"]) != event.event_id:
        raise Refused(f"CloudEvent id {headers['ce-id']!r} is not the body's {event.event_id!r}", reason="malformed")
    return event
