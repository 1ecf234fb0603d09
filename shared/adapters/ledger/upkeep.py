"""Upkeep removes what the ledger need not remember, and mends its times after a reboot has reset the clock."""

import sqlite3

from shared.adapters.ledger.file import FINAL
from shared.core.evictions.intents import passed_s

KEEP_PUBLISHED_S = 600.0
"""How long acknowledged messages stay in any case (docs/facts/nats.md#acknowledged-is-not-on-disk)."""
KEEP_NEWEST, KEEP_NEWEST_S = 2_000, 86_400.0
"""How many of the newest stay for longer, and for how long: a hub may come back from a copy of yesterday."""
KEEP_INTENTS = 1_000
"""How many finished intents stay, for `explain`."""
KEEP_SPENT_S = 86_400.0
"""How long evictions are counted: the longest window of a budget."""
KEEP_REFUSALS, KEEP_REFUSALS_S = 1_000, 86_400.0
"""How many refusals stay at most, and for how long."""
# A transaction runs on the evictor's own thread, and a backlog of thousands would hold it.
PRUNE_AT_ONCE = 500


def prune(db: sqlite3.Connection, now_s: float) -> None:
    """Delete what is over: at most `PRUNE_AT_ONCE` messages and intents, and all that budgets no longer count.

    Raises:
        ValueError: a moment is no number.
    """
    acknowledged = db.execute(
        "SELECT row, published_at_s FROM outbox WHERE published_at_s IS NOT NULL ORDER BY row LIMIT ?",
        (PRUNE_AT_ONCE,),
    ).fetchall()
    # As a difference, for both counts are of an index, and the messages themselves are large.
    many = db.execute(
        "SELECT (SELECT count(*) FROM outbox) - (SELECT count(*) FROM outbox WHERE published_at_s IS NULL)"
    ).fetchone()[0]
    old = [
        (row,)
        for place, (row, at_s) in enumerate(acknowledged)
        if passed_s(at_s, now_s) > (KEEP_PUBLISHED_S if many - place > KEEP_NEWEST else KEEP_NEWEST_S)
    ]
    db.executemany("DELETE FROM outbox WHERE row = ?", old)
    finished = db.execute(
        f"SELECT id FROM intents WHERE step IN ({FINAL}) ORDER BY row DESC LIMIT ? OFFSET ?",  # noqa: S608
        (PRUNE_AT_ONCE, KEEP_INTENTS),
    ).fetchall()
    db.executemany("DELETE FROM calls WHERE intent = ?", finished)
    db.executemany("DELETE FROM intents WHERE id = ?", finished)
    # Before spans are compared below.
    _start_anew(db, now_s)
    counted = db.execute("SELECT intent, at_s FROM spent WHERE at_s IS NOT NULL").fetchall()
    over = [(intent,) for intent, at_s in counted if passed_s(float(at_s), now_s) >= KEEP_SPENT_S]
    db.executemany("DELETE FROM spent WHERE intent = ?", over)
    kept = db.execute("SELECT uid, plugin, guard, last_at_s FROM refusals").fetchall()
    kept.sort(key=lambda row: (passed_s(row[3], now_s), row[:3]))
    faded = [row[:3] for n, row in enumerate(kept) if n >= KEEP_REFUSALS or passed_s(row[3], now_s) > KEEP_REFUSALS_S]
    db.executemany("DELETE FROM refusals WHERE uid = ? AND plugin = ? AND guard = ?", faded)
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('pruned_at_s', ?)", (now_s,))


def _start_anew(db: sqlite3.Connection, now_s: float) -> None:
    """After the clock has restarted with the machine, move the old clock's readings before its start.

    They move back as far as had passed on the old clock at the last prune, so that expired rows do not come back when
    the new clock reaches the old reading.
    """
    row = db.execute("SELECT value FROM meta WHERE key = 'pruned_at_s'").fetchone()
    if row is None or now_s >= row[0]:
        return
    db.execute("UPDATE spent SET at_s = at_s - ?", row)
    db.execute("UPDATE plugins SET last_at_s = last_at_s - ?", row)
    db.execute("UPDATE refusals SET first_at_s = first_at_s - ?, last_at_s = last_at_s - ?", (*row, *row))
