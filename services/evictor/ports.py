"""Ports of the evictor: its ledger, who evicts and taints, and whether people have paused evictions."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from shared.contracts.mode import Mode
from shared.core.evictions.intents import Call, IntentRecord, KeptRefusal, Outgoing, Record, Spent, TokenBucket
from shared.ports import EvictionActuator, NodeTaints


class EvictionLedger(Protocol):
    """The node's truth about evictions, and the outbox of their messages. `shared.adapters.ledger` keeps it in SQLite.

    Every method that writes is one transaction and returns once it is on the disk. All raise Unavailable when the
    ledger cannot be read or written; then nothing may be evicted.
    """

    def open(self, *, first_episode: int) -> str:
        """Open, or open anew; returns in words what was wrong with the file that was found ("" when nothing was).

        Raises:
            Conflict: another evictor has it.
        """
        ...

    def close(self) -> None:
        """Release file and lock."""
        ...

    def next_episode(self) -> int:
        """Number for the next intent: never given twice, also not by a ledger that begins anew."""
        ...

    def bucket(self, mode: Mode) -> TokenBucket | None:
        """What is left of the rate of a mode; None before its first eviction."""
        ...

    def spent(self) -> Sequence[Spent]:
        """Evictions that budgets may count: what `begin` has opened, until `prune` finds it older than any window."""
        ...

    def refusals(self) -> Sequence[KeptRefusal]:
        """Why pods were not evicted, by pod UID, plugin and guard."""
        ...

    def keep_refusals(self, refusals: Sequence[KeptRefusal]) -> None:
        """Write refusals, each in the place of the last one of its key."""
        ...

    def records(self) -> Mapping[str, Record]:
        """What each plugin's evictions have led to, by plugin name."""
        ...

    def keep_record(self, plugin: str, record: Record) -> None:
        """Write a plugin's record."""
        ...

    def begin(self, record: IntentRecord, bucket: TokenBucket, outgoing: Sequence[Outgoing]) -> None:
        """Write a new intent ahead of everything else.

        Raises:
            Conflict: this pod UID has a live intent, or the intent is known.
        """
        ...

    def advance(
        self,
        record: IntentRecord,
        outgoing: Sequence[Outgoing] = (),
        *,
        calls: Sequence[Call] = (),
        now_s: float,
        plugin_record: Record | None = None,
    ) -> None:
        """Write an intent's next step, the calls that led to it, and the messages about it."""
        ...

    def live(self) -> Sequence[IntentRecord]:
        """Intents that are not final, oldest first."""
        ...

    def recent(self, limit: int) -> Sequence[Mapping[str, Any]]:
        """The newest intents with their calls and events, newest first, as JSON values."""
        ...

    def waiting(self, limit: int) -> Sequence[Outgoing]:
        """Messages to be sent, in order; held ones are left out."""
        ...

    def waiting_count(self) -> int:
        """How many messages wait, held ones included."""
        ...

    def outgoing(self, fact_id: str) -> Outgoing | None:
        """A message, held or not, acknowledged or not; None: there is none."""
        ...

    def published(self, fact_id: str, *, sequence: int, now_s: float) -> None:
        """The stream has acknowledged a message."""
        ...

    def rename(self, fact_id: str, msg_id: str) -> None:
        """Send a message under another message id from now on."""
        ...

    def release(self, fact_id: str) -> None:
        """Free a held message to be sent."""
        ...

    def discard(self, fact_id: str) -> None:
        """Drop a held message: it must never be sent."""
        ...

    def prune(self, now_s: float) -> None:
        """Delete a bounded number of messages acknowledged long ago, and of old intents, and all that budgets and
        refusals no longer need.

        It writes in every case, and so proves that the ledger works. Where the clock is below that of the last time,
        the machine was started anew in between.
        """
        ...


def _not_paused() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class EvictorPorts:
    """What the evictor needs of the world."""

    ledger: EvictionLedger
    actuator: EvictionActuator
    paused: Callable[[], str] = _not_paused
    """Why nobody may be evicted on this node now; "" when evictions go on."""
    taints: NodeTaints | None = None
    """The node's taints; None: there is no node to taint."""
    release: Callable[[], Awaitable[None]] | None = None
    """Closes what the actuator and the taints hold open."""
