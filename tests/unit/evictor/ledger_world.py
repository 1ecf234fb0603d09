"""A ledger on the disk, and what is written into it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evictor_world import pod

from shared.adapters.ledger.sqlite import SqliteLedger
from shared.contracts.eviction import EvictionIntent
from shared.contracts.ids import intent_id
from shared.contracts.pod import Pod
from shared.core.evictions.intents import IntentRecord, Outgoing, TokenBucket

BATCH = pod("batch", labels={"a": "b"})
BUCKET = TokenBucket(3.5, 7.0)


def record(of: Pod = BATCH, episode: int = 5, **fields: Any) -> IntentRecord:
    intent = EvictionIntent(
        node="node1", boot_id="0" * 8, seq=1, sent_at=datetime(2026, 1, 1, tzinfo=UTC), namespace=of.namespace,
        intent_id=intent_id("node1", of.uid, "p", episode), pod=of.name, pod_uid=of.uid, qos=of.qos, plugin="p",
        scope="memory", observed=1.5, threshold=2.5, episode=episode,
    )  # fmt: skip
    return IntentRecord(intent, of, hard=True, opened_at_s=10.0, **fields)


def message(name: str, *, held: bool = False) -> Outgoing:
    return Outgoing(name, f"subject.{name}", b"body", {"ce-id": name}, held)


def again(ledger: SqliteLedger, tmp_path: Path) -> SqliteLedger:
    ledger.close()
    word = ledger.open(first_episode=999)
    assert word == ""
    return ledger
