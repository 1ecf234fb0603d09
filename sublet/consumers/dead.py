"""Dead letters: events that a durable failed to process as often as its `max_deliver` allows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.adapters.nats.consumers import Durables
from shared.contracts.bus.stored import RefusedMessage, read_event
from shared.contracts.bus.subjects import DEAD_LETTERS_STREAM, MAX_FACT_BYTES, dead_letter_subject
from shared.contracts.eviction import EvictionEvent
from shared.core.text.json_text import read_json_object
from shared.errors import Refused
from shared.ports import Bus, Received


@dataclass(frozen=True, slots=True)
class Advisory:
    """What the server said: which durable gave up which message of the stream, when, after how many deliveries."""

    consumer: str
    sequence: int
    deliveries: int
    given_up_at: datetime


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An advisory and its event; None: the stream does not hold it any more. What is no event says why."""

    advisory: Advisory
    event: EvictionEvent | RefusedMessage | None


def read_advisory(received: Received) -> Advisory:
    """An advisory of NATS, `io.nats.jetstream.advisory.v1.max_deliver`.

    Raises:
        Refused: it is none.
    """
    try:
        said = read_json_object(received.data, what="advisory", max_bytes=MAX_FACT_BYTES)
        when = datetime.fromisoformat(said["timestamp"])
        return Advisory(str(said["consumer"]), int(said["stream_seq"]), int(said["deliveries"]), when)
    except (Refused, ArithmeticError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"{DEAD_LETTERS_STREAM}: sequence {received.sequence} is no advisory: {error!r}") from error


async def advisories(bus: Bus, consumer: str = "*") -> Sequence[Advisory]:
    """All that are kept, oldest first; what is none is passed over.

    Raises:
        Unavailable: the stream cannot be read.
    """
    found = []
    for received in await bus.replay(DEAD_LETTERS_STREAM, dead_letter_subject(consumer)):
        try:
            found.append(read_advisory(received))
        except Refused:
            continue
    return found


async def counts(bus: Bus) -> Mapping[str, int]:
    """Dead letters by consumer.

    Raises:
        Unavailable: the stream cannot be read.
    """
    return Counter(advisory.consumer for advisory in await advisories(bus))


async def dead_letters(bus: Bus, durables: Durables, consumer: str = "*") -> Sequence[DeadLetter]:
    """With the events themselves, oldest first.

    Raises:
        Unavailable: a stream cannot be read.
    """
    return [await _with_event(advisory, durables) for advisory in await advisories(bus, consumer)]


async def _with_event(advisory: Advisory, durables: Durables) -> DeadLetter:
    kept = await durables.kept(advisory.sequence)
    if kept is None or kept.stored_at > advisory.given_up_at:  # younger: the stream was made anew since
        return DeadLetter(advisory, None)
    message = kept.message
    return DeadLetter(advisory, read_event(message.subject, message.headers, message.data))
