"""`EvictionFeed` keeps the newest steps of evictions for the live page."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.contracts.eviction import EvictionEvent

KEPT_EVENTS = 500
TEXT_CHARACTERS = 300


@dataclass(slots=True)
class EvictionFeed:
    """The newest events in the order of their stream; a repetition of a fact is shown once."""

    _events: deque[tuple[int, dict[str, Any]]] = field(default_factory=lambda: deque(maxlen=KEPT_EVENTS))

    def add(self, event: EvictionEvent, sequence: int) -> None:
        """Keep one event; one that is older than the newest, or is kept already, changes nothing."""
        if self._events and sequence <= self._events[-1][0]:
            return
        if all(kept["id"] != event.event_id for _, kept in self._events):
            self._events.append((sequence, _shown(event)))

    def since(self, sequence: int) -> tuple[int, Sequence[dict[str, Any]]]:
        """The newest sequence, and the events after `sequence`, oldest first."""
        newest = self._events[-1][0] if self._events else sequence
        return newest, [event for number, event in self._events if number > sequence]


def _shown(event: EvictionEvent) -> dict[str, Any]:
    return {
        "id": event.event_id,
        "at": event.sent_at.isoformat(),
        "node": event.node,
        "namespace": event.namespace,
        "pod": event.pod,
        "qos": event.qos,
        "phase": event.phase,
        "mode": event.mode,
        "plugin": event.plugin,
        "scope": event.scope,
        "observed": event.observed,
        "threshold": event.threshold,
        "text": (event.detail or event.message)[:TEXT_CHARACTERS],
    }
