"""HeardRound: what one central has heard itself of the nodes, for all others, where several share the heartbeats."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Self

from pydantic import Field, StringConstraints, model_validator

from shared.contracts.envelope import Amount, Count, Message, MessagePart
from shared.contracts.ids import NodeName
from shared.contracts.mode import NodeMode
from shared.contracts.readiness import ConfigRefusal

MOST_SHARDS = 16
"""Heartbeats are divided into at most so many."""
MAX_ROUND_BYTES = 1_000_000
"""Of one message; a round of more nodes is told in several."""
MOST_SERVICES = 5
"""Of a node, of which something is told."""
NAME_CHARACTERS, WORDS_CHARACTERS = 64, 300
"""Of a name or a hash, and of what is wrong with a service."""
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""Years 1 to 9999, in milliseconds since 1970."""

Shard = Annotated[int, Field(ge=0, lt=MOST_SHARDS)]
BootId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8,32}$")]
Name = Annotated[str, StringConstraints(max_length=NAME_CHARACTERS)]
Words = Annotated[str, StringConstraints(max_length=WORDS_CHARACTERS)]
Moment = Annotated[int, Field(ge=FIRST_MS, le=LAST_MS)]


class Ear(MessagePart):
    """One shard that this central hears, and for how long without a gap, as of its newest probe."""

    shard: Shard
    listening_s: Amount


class HeardRefusal(MessagePart):
    """A service of a node that has refused a revision of the configuration."""

    service: Name
    refused: ConfigRefusal


class HeardNodes(MessagePart):
    """Nodes of one shard that say the same, a column for each thing that differs."""

    shard: Shard | None = None
    """None: its heartbeats came undivided, for the hub does not map them (yet)."""
    ready: bool
    mode: NodeMode | None = None
    failing: Annotated[tuple[Words, ...], Field(max_length=MOST_SERVICES)] = ()
    """What is wrong with its services; what is too long is cut off."""
    applied: Name | None = None
    """`entry_hash` of the configuration that all of its services work with; None: they differ, or have none."""
    revision: Count | None = None
    """Oldest revision of the configuration among its services; None: one of them does not report it."""
    refusals: Annotated[tuple[HeardRefusal, ...], Field(max_length=MOST_SERVICES)] = ()
    nodes: tuple[NodeName, ...]
    boot_ids: tuple[BootId, ...]
    seqs: tuple[Count, ...]
    sent_ms: tuple[Moment, ...]
    """When the heartbeat was sent by its node's clock, in milliseconds since 1970."""
    age_ms: tuple[Count, ...]
    """How long ago it was heard, as of `sent_at` of the message, by the monotonic clock of who heard it."""

    @model_validator(mode="after")
    def _same_rows(self) -> Self:
        columns = (self.boot_ids, self.seqs, self.sent_ms, self.age_ms)
        if any(len(column) != len(self.nodes) for column in columns):
            raise ValueError(f"columns of {[len(column) for column in columns]} rows for {len(self.nodes)} nodes")
        return self

    def rows(self) -> Iterator[tuple[str, str, int, int, int]]:
        """One node after the other: name, boot, number, when it was sent, and for how long it has been known."""
        return zip(self.nodes, self.boot_ids, self.seqs, self.sent_ms, self.age_ms, strict=True)


class HeardRound(Message):
    """A part of one round; `node` is the central that has heard. Each second a central tells a round, with or without
    nodes in it: that is how the others know that it lives.
    """

    kind: ClassVar[str] = "heard"

    round: Count
    part: Count = 0
    parts: Annotated[int, Field(ge=1)] = 1
    """Messages in this round; it counts once all of them have come, one after the other."""
    probe_age_s: Amount
    """How long ago this central heard its own probe: until then, and no longer, it certainly heard its shards."""
    ears: Annotated[tuple[Ear, ...], Field(max_length=MOST_SHARDS)] = ()
    nodes: tuple[HeardNodes, ...] = ()
