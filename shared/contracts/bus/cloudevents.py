"""CloudEvents 1.0, NATS protocol binding, binary mode: attributes as headers, the event itself as the body.

Header names are written and read exactly in lower case, because NATS keeps case and the client compares it
(docs/facts/nats.md#cloudevents-on-nats). Values outside printable ASCII are percent-encoded, as the binding asks.
"""

from urllib.parse import quote

from shared.contracts.eviction import EvictionEvent

CONTENT_TYPE = "application/json"
REQUIRED = ("ce-specversion", "ce-id", "ce-type", "ce-source")
MSG_ID = "Nats-Msg-Id"

# Space, double quote, percent and everything outside printable ASCII are encoded; the rest stays readable.
_SAFE = "!#$&'()*+,/:;=?@[]<>^`{|}~\\"


def event_type(event: EvictionEvent) -> str:
    """Reverse domain name, the fact in the past tense, the major version."""
    return f"io.sublet.eviction.{event.phase}.v1"


def event_headers(event: EvictionEvent) -> dict[str, str]:
    """The attributes of one eviction event as headers; all of them follow from the event.

    `mode` is an extension of ours, by which whoever acts on events leaves rehearsals out without reading the body.
    """
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
        "mode": event.mode,
    }
    return {f"ce-{name}": quote(value, safe=_SAFE) for name, value in attributes.items()}
