"""Events as tests read them out of the stream."""

from shared.contracts.bus.stored import read_event
from shared.contracts.eviction import EvictionEvent
from shared.ports import Received


def event_in(received: Received) -> EvictionEvent:
    """The event of a stored message, which is one."""
    found = read_event(received.subject, received.headers, received.data)
    assert isinstance(found, EvictionEvent), found
    return found
