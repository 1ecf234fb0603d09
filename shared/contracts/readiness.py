"""Health of one service, and Readiness: the node's heartbeat, folded from its services."""

import hashlib
from typing import Annotated, ClassVar, Self

from pydantic import Field

from shared.contracts.envelope import Amount, Message, MessagePart
from shared.contracts.ids import node_token
from shared.contracts.mode import NodeMode

_HASH_DIGITS = 12
WHY_CHARACTERS = 200
"""Of a refusal. Five of them, at four bytes a character, leave room in what central reads of a heartbeat (8 KiB)."""


def node_config_key(node: str) -> str:
    """Key of a node's own configuration in the bucket, beside the one of all nodes."""
    return f"node.{node_token(node)}"


def entry_hash(value: bytes | None) -> str:
    """By what a node tells which entry it works with: the first hex digits of its SHA-256."""
    return hashlib.sha256(value or b"").hexdigest()[:_HASH_DIGITS]


class ConfigRefusal(MessagePart):
    """One entry of the configuration that a service has refused; what was in force before stays."""

    revision: Annotated[int, Field(ge=0)]
    why: Annotated[str, Field(max_length=WHY_CHARACTERS)]

    @classmethod
    def of(cls, revision: int, why: str) -> Self:
        """The refusal of a revision; longer words are cut off."""
        return cls(revision=revision, why=why if len(why) <= WHY_CHARACTERS else f"{why[: WHY_CHARACTERS - 1]}…")


class ServiceHealth(MessagePart):
    """One service as it sees itself. `ok` false means: alive, but its input or its work is not as it should be."""

    service: str
    ok: bool
    why: str = ""
    input_age_s: Amount | None = None
    """Age of the newest usable input by the service's own monotonic clock; None: none yet."""
    config_hash: Annotated[str | None, Field(exclude_if=lambda value: value is None)] = None
    """`entry_hash` of the node's own entry that the service works with; None: it works with none."""
    config_revision: Annotated[int | None, Field(ge=0, exclude_if=lambda value: value is None)] = None
    """Newest revision of the configuration that the service works with; 0: its settings alone."""
    config_refused: Annotated[ConfigRefusal | None, Field(exclude_if=lambda value: value is None)] = None
    """The newest revision that it has refused, while nothing newer was taken."""


class Health(Message):
    """A service's own heartbeat; stays on the node."""

    kind: ClassVar[str] = "health"

    health: ServiceHealth


class Readiness(Message):
    """The node's heartbeat to central. A service not heard of is listed with ok false, never left out."""

    kind: ClassVar[str] = "ready"

    ready: bool
    mode: Annotated[NodeMode | None, Field(exclude_if=lambda value: value is None)] = None
    """Whether the node observes or enforces; None: an agent that is older than the switch, and enforces."""
    services: tuple[ServiceHealth, ...] = ()
