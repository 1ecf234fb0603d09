"""What a central tells the others of the nodes that it has heard itself, and what they take of it into their ledger.

Each word is told in several rounds, so that one that is lost is in the next. What arrives is asked all that a heartbeat
is asked: by its numbers whether it is news, and by its node's clock how old it is.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from services.central.core.heartbeats.ears import ROUNDS
from services.central.core.heartbeats.heartbeat_rate import MOST_NODES
from services.central.core.heartbeats.readiness import HEARTBEAT_S, Heartbeat, Ledger
from shared.contracts.cluster.heard import (
    FIRST_MS,
    LAST_MS,
    MOST_SERVICES,
    NAME_CHARACTERS,
    WORDS_CHARACTERS,
    HeardNodes,
    HeardRefusal,
)
from shared.contracts.readiness import Readiness
from shared.core.bus.newest import NewestGate

PART_BYTES = 500_000
"""Of what is told of nodes in one message, roughly; the bus takes twice as much."""
_ROW_BYTES, _GROUP_BYTES = 90, 30_000
"""Of one node beside its name and number, and of what many say together, at most."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Word(NamedTuple):
    """The newest heartbeat of one node, as it was heard."""

    round: int
    shard: int | None
    boot_id: str
    seq: int
    sent_ms: int
    heartbeat: Heartbeat


class OwnRounds:
    """The nodes that this central has heard itself in its last rounds."""

    def __init__(self) -> None:
        self.number = 0
        """Of the next round."""
        self._words: dict[str, _Word] = {}

    def hear(self, readiness: Readiness, heartbeat: Heartbeat) -> None:
        """Keep one heartbeat for the next rounds."""
        sent_ms = (readiness.sent_at - _EPOCH) // timedelta(milliseconds=1)
        self._words[readiness.node] = _Word(
            self.number,
            heartbeat.shard,
            readiness.boot_id,
            readiness.seq,
            min(max(sent_ms, FIRST_MS), LAST_MS),
            heartbeat,
        )

    def next_round(self, now_s: float) -> list[tuple[HeardNodes, ...]]:
        """The next round, in parts of a bounded size; one without nodes has one part."""
        told, self.number = self.number, self.number + 1
        self._words = {node: word for node, word in self._words.items() if told - word.round < ROUNDS}
        alike: dict[tuple[object, ...], list[str]] = defaultdict(list)
        for node, word in self._words.items():
            one = word.heartbeat
            alike[(word.shard, one.ready, one.mode, one.failing, one.applied, one.revision, one.refusals)].append(node)
        parts, room = [list[HeardNodes]()], PART_BYTES
        for nodes in alike.values():
            room, some = room - _GROUP_BYTES, list[str]()
            for node in nodes:
                size = _ROW_BYTES + len(node) + self._words[node].seq.bit_length() // 3
                if room < size:
                    parts[-1] += [self._said(some, now_s)] if some else []
                    parts.append([])
                    room, some = PART_BYTES - _GROUP_BYTES, []
                some.append(node)
                room -= size
            parts[-1].append(self._said(some, now_s))
        return [tuple(part) for part in parts]

    def _said(self, nodes: list[str], now_s: float) -> HeardNodes:
        words = [self._words[node] for node in nodes]
        first = words[0].heartbeat
        return HeardNodes(
            shard=words[0].shard,
            ready=first.ready,
            mode=first.mode,
            # None of ours is cut off: a node says what it wants, and the round has to be told all the same.
            failing=tuple(why[:WORDS_CHARACTERS] for why in first.failing[:MOST_SERVICES]),
            applied=first.applied and first.applied[:NAME_CHARACTERS],
            revision=first.revision,
            refusals=tuple(
                HeardRefusal(service=name[:NAME_CHARACTERS], refused=refused)
                for name, refused in first.refusals[:MOST_SERVICES]
            ),
            nodes=tuple(nodes),
            boot_ids=tuple(word.boot_id for word in words),
            seqs=tuple(word.seq for word in words),
            sent_ms=tuple(word.sent_ms for word in words),
            age_ms=tuple(max(0, round((now_s - word.heartbeat.heard_at_s) * 1000)) for word in words),
        )


class ToldNode(NamedTuple):
    """A node of which another central has told news."""

    node: str
    applied: bool
    """Whether it works with another configuration than before."""


IsOld = Callable[[str, datetime], bool]


def take_told(ledger: Ledger, said: HeardNodes, now_s: float, is_old: IsOld) -> Iterator[ToldNode]:
    """Take what another central has heard into the ledger; what is known, replayed or old changes nothing."""
    refusals = tuple((one.service, one.refused) for one in said.refusals)
    for node, boot_id, seq, sent_ms, age_ms in said.rows():
        known = ledger.get(node)
        # Each word is told several times, and may have been heard here as well.
        if known is not None and seq == known.gate.seq and boot_id == known.gate.boot_id:
            continue
        if known is None and len(ledger) >= MOST_NODES:
            continue
        gate = NewestGate(HEARTBEAT_S) if known is None else known.gate
        if is_old(node, _EPOCH + timedelta(milliseconds=sent_ms)) or gate.admit(boot_id, seq, now_s) != "new":
            continue
        heard_at_s = now_s - age_ms / 1000
        ledger[node] = Heartbeat(
            heard_at_s if known is None else max(heard_at_s, known.heard_at_s),
            said.ready,
            said.failing,
            gate,
            said.applied,
            said.revision,
            refusals,
            said.mode,
            said.shard,
        )
        yield ToldNode(node, applied=known is None or known.applied != said.applied)
