"""The audit reads the evictor's ledger while the evictor runs: it opens the file for reading and locks nothing."""

import sqlite3
from collections import defaultdict
from datetime import datetime
from pathlib import Path

from shared.core.evictions.audit import LedgerEntry
from shared.errors import Unavailable


def read_ledger(state_dir: Path) -> list[LedgerEntry]:
    """Return every intent in the ledger of a state folder, oldest first; empty if there is no ledger.

    Raises:
        Unavailable: it exists and cannot be read.
    """
    path = state_dir / "ledger.db"
    try:
        if not path.exists():
            return []
    except OSError as error:
        raise Unavailable(f"eviction ledger {path}: {error.strerror}; try it as root", reason="ledger") from error
    try:
        # Without `immutable`, though nothing is written: the evictor is writing, and its log has to be read as well.
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            messages = db.execute("SELECT intent, msg_id, sequence, published_at_s FROM outbox").fetchall()
            rows = db.execute(
                "SELECT id, pod_uid, step, json_extract(pod, '$.namespace') || '/' || json_extract(pod, '$.name'),"
                " json_extract(intent, '$.sent_at'), json_extract(intent, '$.node'),"
                " coalesce(json_extract(intent, '$.mode'), 'enforce') FROM intents ORDER BY row"
            ).fetchall()
        finally:
            db.close()
    except sqlite3.Error as error:
        raise Unavailable(f"eviction ledger {path}: {error}; try it as root", reason="ledger") from error
    waiting: dict[str, set[str]] = defaultdict(set)
    sent: dict[str, dict[str, int]] = defaultdict(dict)
    for intent, name, sequence, published_at_s in messages:
        if published_at_s is None:
            waiting[intent].add(name)
        else:
            sent[intent][name] = sequence or 0
    return [
        LedgerEntry(
            identity, uid, pod, step, frozenset(waiting[identity]), sent[identity], _seconds(begun_at), node, mode
        )
        for identity, uid, step, pod, begun_at, node, mode in rows
    ]


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
