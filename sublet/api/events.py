"""Eviction events: their model, their subjects, and the headers with which they travel.

docs/subscribing.md shows how to read them; the JSON Schema is docs/schemas/EvictionEvent.json.
"""

from shared.contracts.bus.cloudevents import MSG_ID, event_headers
from shared.contracts.bus.subjects import EVENTS_STREAM, event_filter, event_subject
from shared.contracts.eviction import EvictionEvent
from shared.contracts.eviction_phases import Phase
from shared.contracts.ids import IntentId, intent_id

__all__ = (
    "EVENTS_STREAM",
    "MSG_ID",
    "EvictionEvent",
    "IntentId",
    "Phase",
    "event_filter",
    "event_headers",
    "event_subject",
    "intent_id",
)
