"""`read_event`, `read_intent` and `read_decision` read what the streams hold, or say why a message is none of them.

Anybody whom the bus lets publish may have written it. Who may publish on a subject is what the bus has looked at: so
node, namespace, phase, pod and object are the subject's, and a message that says something else is refused as forged.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import TypeVar
from urllib.parse import unquote

from shared.contracts.bus.cloudevents import REQUIRED, event_headers
from shared.contracts.bus.subjects import MAX_FACT_BYTES, decision_subject, event_subject, intent_subject
from shared.contracts.cluster.decision import Decision
from shared.contracts.envelope import Message
from shared.contracts.eviction import EvictionEvent, EvictionIntent
from shared.errors import Refused

F = TypeVar("F", bound=Message)

FORGED = "forged"
FIRST_YEAR, LAST_YEAR = 2000, 2999
"""Of a time that every reader can compute with, in whatever zone."""

_COMPARED = ("ce-id", "ce-type", "ce-source", "ce-subject", "ce-partitionkey", "ce-sequence", "ce-mode")
"""Attributes by which others filter, sort and sign; each says what the body says, where it is given."""
_MAX_WHY = 300


@dataclass(frozen=True, slots=True)
class RefusedMessage:
    """Why a message may not be used: `forged`, `too_large`, `malformed` or `unknown_version`."""

    reason: str
    why: str
    """In printable ASCII, of bounded length: nothing of a stranger's text reaches a terminal as he wrote it."""

    def __str__(self) -> str:
        return self.why


def read_event(subject: str, headers: Mapping[str, str], body: bytes) -> EvictionEvent | RefusedMessage:
    """The event of a stored message, or why it is none. Never raises; the time of the event is in UTC."""
    return _kept_out(lambda: _event(subject, headers, body))


def read_intent(subject: str, body: bytes) -> EvictionIntent | RefusedMessage:
    """The intent of a stored message, or why it is none. Never raises; the time of the intent is in UTC."""
    return _kept_out(lambda: _intent(subject, body))


def read_decision(subject: str, body: bytes) -> Decision | RefusedMessage:
    """The decision of a stored message, or why it is none. Never raises; its time is in UTC."""
    return _kept_out(lambda: _decision(subject, body))


def _kept_out(read: Callable[[], F]) -> F | RefusedMessage:
    try:
        return read()
    except Refused as refusal:
        return RefusedMessage(refusal.reason, _shown(str(refusal)))
    except Exception as error:  # noqa: BLE001 - whatever a stranger has found: one message less, and no reader
        return RefusedMessage("malformed", _shown(f"not to be read: {error!r}"))


def _event(subject: str, headers: Mapping[str, str], body: bytes) -> EvictionEvent:
    _bound(len(body) + sum(len(name) + len(value) for name, value in headers.items()))
    missing = [name for name in REQUIRED if name not in headers]
    if missing:
        raise Refused(f"CloudEvent without {', '.join(missing)}", reason="malformed")
    if headers["ce-specversion"] != "1.0":
        raise Refused(f"CloudEvents version {headers['ce-specversion']!r}: only 1.0 is read", reason="unknown_version")
    event = _in_utc(EvictionEvent.decode(body))
    _belongs(subject, event_subject(event))
    said = event_headers(event)
    for name in _COMPARED:
        if name in headers and unquote(headers[name]) != unquote(said[name]):
            raise Refused(f"{name} is {headers[name]!r}, of this event it is {said[name]!r}", reason=FORGED)
    return event


def _intent(subject: str, body: bytes) -> EvictionIntent:
    _bound(len(body))
    intent = _in_utc(EvictionIntent.decode(body))
    _belongs(subject, intent_subject(intent))
    return intent


def _decision(subject: str, body: bytes) -> Decision:
    _bound(len(body))
    decision = _in_utc(Decision.decode(body))
    _belongs(subject, decision_subject(decision.area, decision.about))
    return decision


def _bound(size_bytes: int) -> None:
    if size_bytes > MAX_FACT_BYTES:
        raise Refused(f"{size_bytes} bytes, at most {MAX_FACT_BYTES} are read", reason="too_large")


def _in_utc(facts: F) -> F:
    moment = facts.sent_at.astimezone(UTC)
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise Refused(f"sent_at {facts.sent_at}: want a year from {FIRST_YEAR} to {LAST_YEAR}", reason="malformed")
    return facts.model_copy(update={"sent_at": moment})


def _belongs(subject: str, wanted: str) -> None:
    if subject != wanted:
        raise Refused(f"on {subject!r}, and says that it belongs on {wanted!r}", reason=FORGED)


def _shown(text: str) -> str:
    """Printable ASCII, cut: `\\x1b` stands for the character."""
    return text[:_MAX_WHY].encode("unicode_escape").decode("ascii")
