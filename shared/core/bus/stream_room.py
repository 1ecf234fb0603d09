"""A nearly full stream loses messages of the nodes that hold more than their share, then its oldest. Pure.

A full stream refuses new messages, and their senders keep them. So one node's flood cannot drop what other nodes have
stored: it can only fill what is free, until room is made again.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

FULL = 0.7
"""Part of a stream's bytes, or messages, above which room is made."""
ROOM = 0.6
"""Part of them that is left when room has been made."""
SHARE = 0.1
"""Part of `ROOM` that one node may hold when room is needed; with fewer than ten nodes it is more."""
ENOUGH = 200
"""Messages that have to be looked at to know whose bytes a stream holds."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a stream holds; a limit of 0 or less is none."""

    messages: int
    size_bytes: int
    max_messages: int
    max_bytes: int

    @property
    def level(self) -> float:
        """How full it is, by the limit that is nearer: 0 to 1."""
        return max(self._by_messages, self._by_bytes)

    @property
    def counts(self) -> bool:
        """Whether the number of messages is nearer to its limit than their bytes."""
        return self._by_messages > self._by_bytes

    @property
    def _by_messages(self) -> float:
        return self.messages / self.max_messages if self.max_messages > 0 else 0.0

    @property
    def _by_bytes(self) -> float:
        return self.size_bytes / self.max_bytes if self.max_bytes > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Weighed:
    """One randomly sampled message: its node, from its subject, and its bytes."""

    node: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Cut:
    """Drop all but the newest messages of a node, or, if "", of all."""

    node: str
    keep: int


def cuts(held: Held, sample: Sequence[Weighed]) -> tuple[Cut, ...]:
    """Return what to drop, estimated from a sample of the messages; nothing while there is room."""
    if held.level <= FULL or not sample:
        return ()
    weights, counts = Counter[str](), Counter[str]()
    for one in sample:
        # By what is short: a flood of tiny messages fills the count long before the bytes.
        weights[one.node] += 1 if held.counts else max(1, one.size_bytes)
        counts[one.node] += 1
    # With fewer than ten nodes an even share is more than a tenth; below it no node is cut.
    share = max(SHARE, 1 / len(weights)) * ROOM
    heavy = []
    for node, weight in sorted(weights.items()):
        level = held.level * weight / weights.total()
        # Also where the sample shows one node alone: others may be too few to be in it, and lose nothing by that.
        if level > share:
            heavy.append(Cut(node, int(held.messages * counts[node] / len(sample) * share / level)))
    return tuple(heavy) or (Cut("", int(held.messages * ROOM / held.level)),)
