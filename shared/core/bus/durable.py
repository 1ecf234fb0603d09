"""`Durable` describes the wanted state of a team's durable consumer, and its differences from the server's. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from shared.contracts.bus.subjects import event_filter
from shared.contracts.eviction_phases import PHASES
from shared.contracts.ids import NAME_PATTERN
from shared.errors import Conflict, Refused

Start = str | datetime
"""`all`: the oldest event; `new`: only those to come; or from a time on. Others can be made by other tools only."""

ACK_WAIT_S = 30.0
"""As the examples ask for it."""
MIN_ACK_WAIT_S, MAX_ACK_WAIT_S = 0.1, 86_400.0
MAX_NAME = 64
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{MAX_NAME - 1}}}")
_UNCHANGEABLE = ("start", "ack_policy", "kind")
"""Settings of an existing consumer that a NATS server does not change."""


@dataclass(frozen=True, slots=True)
class Durable:
    """Pull, explicit acknowledgements, one message under way: the stream's order through crashes of both sides."""

    name: str
    filters: tuple[str, ...]
    start: Start = "all"
    ack_wait_s: float = ACK_WAIT_S
    max_deliver: int | None = None
    """Vain deliveries after which the server gives an event up; None: never."""
    max_ack_pending: int = 1
    ack_policy: str = "explicit"
    kind: str = "pull"


@dataclass(frozen=True, slots=True)
class Change:
    """One setting: its value at the server now, and the one wanted."""

    field: str
    now: str
    wanted: str


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The eviction events that a consumer receives; an unset part of the subject means all of it."""

    namespaces: Sequence[str] = ()
    phases: Sequence[str] = ()
    nodes: Sequence[str] = ()

    def subjects(self) -> tuple[str, ...]:
        """Return the subjects, sorted, so that the order of a filter is no change of the consumer.

        Raises:
            Refused: a word that is no name or phase; says what is possible.
        """
        for what, values in (("namespace", self.namespaces), ("node", self.nodes)):
            for value in values:
                if not re.fullmatch(NAME_PATTERN, value):
                    raise Refused(f"{what} {value!r}: want a Kubernetes name: a-z 0-9 - and .", reason=what)
        for phase in self.phases:
            if phase not in PHASES:
                raise Refused(f"phase {phase!r}: want one of {', '.join(PHASES)}", reason="phase")
        filters = {
            event_filter(phase=phase, namespace=namespace.replace(".", "_"), node=node)
            for phase in self.phases or ("*",)
            for namespace in self.namespaces or ("*",)
            for node in self.nodes or ("*",)
        }
        return tuple(sorted(filters))


ALL_EVENTS = EventFilter()


def wanted_durable(
    name: str,
    events: EventFilter = ALL_EVENTS,
    *,
    start: str = "all",
    ack_wait_s: float = ACK_WAIT_S,
    max_deliver: int | None = None,
) -> Durable:
    """The durable that an operator's words ask for.

    Raises:
        Refused: names the word, its value and what is possible.
    """
    if not _NAME.fullmatch(name):
        raise Refused(
            f"consumer name {name!r}: want 1 to {MAX_NAME} characters of A-Z a-z 0-9 - _, the first a letter or digit "
            "(it is part of subjects and of a file name at the server)",
            reason="name",
        )
    filters = events.subjects()
    if not MIN_ACK_WAIT_S <= ack_wait_s <= MAX_ACK_WAIT_S:
        raise Refused(f"ack wait {ack_wait_s:g} s: want {MIN_ACK_WAIT_S:g} to {MAX_ACK_WAIT_S:g}", reason="ack_wait")
    if max_deliver is not None and max_deliver < 1:
        raise Refused(f"max deliver {max_deliver}: want 1 or more, or leave it out for no limit", reason="max_deliver")
    return Durable(name, filters, read_start(start), ack_wait_s, max_deliver)


def read_start(text: str) -> Start:
    """Parse `all`, `new`, or a time in RFC 3339; a time without an offset is UTC.

    Raises:
        Refused: it is none of these.
    """
    if text in ("all", "new"):
        return text
    try:
        when = datetime.fromisoformat(text)
    except ValueError as error:
        raise Refused(
            f"from {text!r}: want all, new, or a time such as 2026-03-09T14:00:00Z", reason="start"
        ) from error
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def changes(now: Durable, wanted: Durable) -> tuple[Change, ...]:
    """Return the settings that differ from the server's.

    Raises:
        Conflict: one of them cannot be changed; says which, both values, and what to do.
    """
    found = tuple(
        Change(field, shown(getattr(now, field)), shown(getattr(wanted, field)))
        for field in ("filters", "start", "ack_wait_s", "max_deliver", "max_ack_pending", "ack_policy", "kind")
        if getattr(now, field) != getattr(wanted, field)
    )
    for change in found:
        if change.field in _UNCHANGEABLE:
            raise Conflict(
                f"consumer {now.name}: {change.field} is {change.now}, wanted {change.wanted}, and the server lets "
                f"nobody change that: say {change.now} again, or remove it (sublet consumers remove {now.name}), which "
                "forgets its place in the stream, and add it anew",
                reason=change.field,
            )
    return found


def shown(value: object) -> str:
    """A setting in the words in which it is asked for."""
    if value is None:
        return "none"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, tuple):
        return " ".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
