"""Ports of the evictor: its ledger, who evicts and taints, and whether people have paused evictions."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from shared.contracts.mode import Mode
from shared.core.evictions.intents import Call, IntentRecord, KeptRefusal, Outgoing, Record, Spent, TokenBucket
from shared.ports import Entry, EvictionActuator, NodeTaints


class EvictionLedger(Protocol):
    """The node's truth about evictions, and the outbox of their messages. `shared.adapters.ledger` keeps it in SQLite.

    Every method that writes is one transaction and returns once it is on the disk. All raise Unavailable when the
    ledger cannot be read or written; then nothing may be evicted.
    """

    def open(self, *, first_episode: int) -> str:
        """Open or reopen the ledger; return what was wrong with the existing file ("" if nothing was).

        Raises:
            Conflict: another evictor has it open.
        """
        ...

    def close(self) -> None:
        """Release file and lock."""
        ...

    def next_episode(self) -> int:
        """Return the number for the next intent. Numbers are never reused, even by a new ledger."""
        ...

    def bucket(self, mode: Mode) -> TokenBucket | None:
        """Return the remaining rate of a mode; None before its first eviction."""
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
        """Return the outcome of each plugin's evictions, by plugin name."""
        ...

    def keep_record(self, plugin: str, record: Record) -> None:
        """Write a plugin's record."""
        ...

    def begin(self, record: IntentRecord, bucket: TokenBucket, outgoing: Sequence[Outgoing]) -> None:
        """Write a new intent before anything else is done.

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
        """Return a message, acknowledged or not; None if it does not exist."""
        ...

    def published(self, fact_id: str, *, sequence: int, now_s: float) -> None:
        """The stream has acknowledged a message."""
        ...

    def acknowledged(self, limit: int) -> Sequence[Outgoing]:
        """Return acknowledged messages that are still kept, newest first."""
        ...

    def send_again(self, fact_ids: Sequence[str]) -> None:
        """Let acknowledged messages wait again: their stream has lost them."""
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
        """Delete a bounded number of messages that were acknowledged long ago, of old intents, and of rows that
        budgets and refusals no longer need.

        The call writes in every case, which proves that the ledger works. A clock below that of the last call means
        that the machine was restarted in between.
        """
        ...


class PausesOfCluster(Protocol):
    """The pauses of the whole cluster and of pools, as central hands them to every node."""

    def why(self) -> str:
        """Why evictions are paused on this node by one of them; "" when they are not."""
        ...

    def follow_entry(self, entry: Entry) -> None:
        """Follow an entry of the bucket of configuration."""
        ...

    async def run(self) -> None:
        """Keep what tells which of them mean this node, until cancelled."""
        ...


def _not_paused() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class EvictorPorts:
    """What the evictor needs from outside."""

    ledger: EvictionLedger
    actuator: EvictionActuator
    paused: Callable[[], str] = _not_paused
    """Return why no pod may be evicted on this node now by the word of this node alone; "" if evictions are allowed."""
    taints: NodeTaints | None = None
    """The node's taints; None if there is no node to taint."""
    release: Callable[[], Awaitable[None]] | None = None
    """Closes what the actuator and the taints hold open."""
    cluster_pauses: PausesOfCluster | None = None
    """None: there is no cluster."""
