"""Decision: what central and its processes decided about one object, and why, for everybody who asks."""

from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, StringConstraints

from shared.contracts.envelope import Message, MessagePart, Reason
from shared.contracts.ids import ObjectName, node_token

MAX_REASONS = 64
"""Of one decision; further ones are cut off."""
MESSAGE_CHARACTERS = 500
NO_NAMESPACE = "-"
"""Stands in a subject for the namespace of an object that has none; no name begins with it."""

AREA_PATTERN = r"^[a-z][a-z0-9_]{0,31}$"
KIND_PATTERN = r"^[a-z][a-z0-9]{0,62}$"


def _cut(text: object) -> object:
    return f"{text[: MESSAGE_CHARACTERS - 1]}…" if isinstance(text, str) and len(text) > MESSAGE_CHARACTERS else text


def _first(reasons: object) -> object:
    return tuple(reasons)[:MAX_REASONS] if isinstance(reasons, list | tuple) else reasons


class DecidedObject(MessagePart):
    """The object that is decided about: its kind in small letters, as `pod` or `tidalnodepool`, and its name."""

    kind: Annotated[str, StringConstraints(pattern=KIND_PATTERN)]
    namespace: ObjectName | None = None
    """None: an object of the whole cluster."""
    name: ObjectName
    uid: Annotated[str, StringConstraints(max_length=64)] = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class Decided(MessagePart):
    """What was decided, without who says it when. Words and reasons beyond their bounds are cut off."""

    area: Annotated[str, StringConstraints(pattern=AREA_PATTERN)]
    """The controller or process: scheduling, overcommit, tide, recommendation, …"""
    about: DecidedObject
    verdict: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
    """In one word, by which others count and filter: placed, refused, released, …"""
    message: Annotated[str, BeforeValidator(_cut)] = ""
    """The same as a sentence, for a person."""
    why: Annotated[tuple[Reason, ...], BeforeValidator(_first), Field(max_length=MAX_REASONS)] = ()
    """The rules that fired, with the figures that they used."""


class Decision(Decided, Message):
    """A decision of central or of one of its processes; `node` names who decided, not what it is about."""

    kind: ClassVar[str] = "decision"


def decision_tokens(area: str, about: DecidedObject) -> dict[str, str]:
    """The words of the subject that differ from decision to decision."""
    namespace = NO_NAMESPACE if about.namespace is None else node_token(about.namespace)
    return {"area": area, "object_kind": about.kind, "namespace": namespace, "name": node_token(about.name)}
