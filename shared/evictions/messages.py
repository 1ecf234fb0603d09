"""Builds the messages of an eviction, and sends each under an id that no other sender has used."""

from collections.abc import Callable
from dataclasses import replace

import structlog

from shared import telemetry
from shared.contracts.bus.cloudevents import MSG_ID, event_headers
from shared.contracts.bus.subjects import event_subject, intent_subject
from shared.contracts.eviction import EvictionEvent, EvictionIntent
from shared.core.evictions.intents import Outgoing
from shared.errors import IdTaken, Unavailable
from shared.ports import Bus, DurableMessage
from shared.wire import message_id

log = structlog.get_logger()

MAX_DETAIL = 1024
"""Characters of an event's detail: it may be an answer of the API server, and a stream bounds the size of a message."""

Rename = Callable[[Outgoing, IdTaken], Outgoing]
"""Gives a message another id where its own is taken, and remembers it."""


def intent_message(intent: EvictionIntent) -> Outgoing:
    """The message of an intent, in the trace of the decision; held, since its own writer announces it."""
    identified = {**telemetry.trace_headers(), MSG_ID: message_id(intent.intent_id)}
    return Outgoing(intent.intent_id, intent_subject(intent), intent.encode(), identified, held=True)


def event_message(event: EvictionEvent) -> Outgoing:
    """The message of an event, as a CloudEvent, in the trace of the step that it tells."""
    trace = telemetry.trace_headers()
    # Twice, as the extension for distributed tracing asks: the attribute stays what it was where the event was made,
    # the header changes with each hop.
    attributes = {f"ce-{name}": value for name, value in trace.items()}
    identified = {**event_headers(event), **attributes, **trace, MSG_ID: message_id(event.event_id)}
    return Outgoing(event.event_id, event_subject(event), event.encode(), identified)


def under_another_id(message: Outgoing, error: IdTaken) -> Outgoing:
    """The message under a new id; that somebody has used its own for another message is counted and logged."""
    # "gone": the stream has seen this very id and has dropped its message, so misuse by another sender is not proven.
    if error.reason != "gone":
        telemetry.IDS_TAKEN.inc()
        log.error("message.id_taken", fact=message.fact_id, why=str(error))
    return replace(message, headers={**message.headers, MSG_ID: message_id(message.fact_id)})


async def send(bus: Bus, message: Outgoing, rename: Rename, *, budget_s: float) -> int:
    """Send an event; gives its sequence in the stream.

    Raises:
        Unavailable: it is not known to be stored; send it again, as `rename` gave it where its id was taken.
    """
    try:
        stored = await bus.publish_durable(
            DurableMessage(message.subject, message.body, message.msg_id, message.headers), budget_s=budget_s
        )
    except IdTaken as error:
        rename(message, error)
        # Not repeated at once: a sender of ordered events restarts at this one.
        raise Unavailable(str(error), reason="id_taken") from error
    return stored.sequence
