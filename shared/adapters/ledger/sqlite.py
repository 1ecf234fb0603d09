"""The evictor's ledger in SQLite; `services.evictor.ports` is the protocol.

Calls are made from one thread and not handed to another: on a disk a commit takes 0.4 ms (p99 6 ms), in memory 80
microseconds (p99 0.9 ms), and an eviction needs about ten.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from shared.adapters.ledger.file import FINAL, LedgerFile
from shared.adapters.ledger.upkeep import prune
from shared.contracts.bus.cloudevents import MSG_ID
from shared.contracts.eviction import EvictionIntent
from shared.contracts.mode import Mode
from shared.contracts.pod import Pod
from shared.core.evictions.intents import Call, IntentRecord, KeptRefusal, Outgoing, Record, Spent, TokenBucket
from shared.errors import Conflict

# In the outbox, `msg_id` is the fact's id, which tells one from another; the one that a message is sent under is among
# its headers.
_COLUMNS = "intent, pod, hard, opened_at_s, step, attempts, accepted_at_s, detail"
_REFUSAL = "pod, uid, plugin, guard, why, count, first_at_s, last_at_s"
_BUCKETS: Mapping[Mode, str] = {"enforce": "bucket", "dry-run": "dry_bucket", "observe": "observe_bucket"}
_LIVE = f"SELECT {_COLUMNS} FROM intents WHERE step NOT IN ({FINAL}) ORDER BY row"  # noqa: S608 - constants


class SqliteLedger(LedgerFile):
    """`ledger.db` in a state folder."""

    def next_episode(self) -> int:
        """The number that `begin` will use up."""
        return int(self._meta()["next_episode"])

    def bucket(self, mode: Mode) -> TokenBucket | None:
        """The rate bucket of a mode as last written."""
        meta, name = self._meta(), _BUCKETS[mode]
        return TokenBucket(meta[f"{name}_tokens"], meta[f"{name}_at_s"]) if f"{name}_at_s" in meta else None

    def spent(self) -> Sequence[Spent]:
        """Evictions that budgets may count."""
        with self.reading():
            rows = self.db.execute("SELECT mode, namespace, owner, at_s FROM spent ORDER BY intent").fetchall()
            return [Spent(mode, namespace, owner, None if at_s is None else float(at_s)) for mode, namespace, owner,
                    at_s in rows]  # fmt: skip

    def refusals(self) -> Sequence[KeptRefusal]:
        """Every refusal that is kept."""
        with self.reading():
            rows = self.db.execute(f"SELECT {_REFUSAL} FROM refusals ORDER BY uid, plugin, guard").fetchall()  # noqa: S608
        return [KeptRefusal(*row) for row in rows]

    def keep_refusals(self, refusals: Sequence[KeptRefusal]) -> None:
        """Write these, each over what was there of the same pod, plugin and guard."""
        rows = [(r.pod, r.uid, r.plugin, r.guard, r.why, r.count, r.first_at_s, r.last_at_s) for r in refusals]
        with self.transaction() as db:
            db.executemany(f"INSERT OR REPLACE INTO refusals ({_REFUSAL}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)  # noqa: S608

    def records(self) -> Mapping[str, Record]:
        """Each plugin's record."""
        with self.reading():
            rows = self.db.execute("SELECT name, without_relief, last_at_s FROM plugins ORDER BY name").fetchall()
        return {name: Record(without_relief, last_at_s) for name, without_relief, last_at_s in rows}

    def keep_record(self, plugin: str, record: Record) -> None:
        """Write one plugin's record."""
        with self.transaction() as db:
            _write_record(db, plugin, record)

    def begin(self, record: IntentRecord, bucket: TokenBucket, outgoing: Sequence[Outgoing]) -> None:
        """Intent, spent token, what it uses of budgets, used episode and first messages in one transaction."""
        name = _BUCKETS[record.intent.mode]
        meta = {
            f"{name}_tokens": bucket.tokens,
            f"{name}_at_s": bucket.at_s,
            "next_episode": record.intent.episode + 1,
        }
        try:
            with self.transaction() as db:
                db.execute(
                    "INSERT INTO intents"
                    " (id, pod_uid, step, hard, attempts, opened_at_s, accepted_at_s, detail, intent, pod)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        record.id,
                        record.pod.uid,
                        record.step,
                        record.hard,
                        record.attempts,
                        record.opened_at_s,
                        record.accepted_at_s,
                        record.detail,
                        record.intent.encode(),
                        record.pod.model_dump_json().encode(),
                    ),
                )
                db.execute(
                    "INSERT INTO spent (intent, mode, namespace, owner) VALUES (?, ?, ?, ?)",
                    (record.id, record.intent.mode, record.pod.namespace, record.pod.owner_key),
                )
                db.executemany("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", meta.items())
                _queue(db, record.id, outgoing)
        except sqlite3.IntegrityError as error:
            # The index on live intents: a pod has at most one eviction under way, whatever two plugins want at once.
            raise Conflict(
                f"pod {record.pod.key} ({record.pod.uid}): an eviction is already under way", reason="live_intent"
            ) from error

    def advance(
        self,
        record: IntentRecord,
        outgoing: Sequence[Outgoing] = (),
        *,
        calls: Sequence[Call] = (),
        now_s: float,
        plugin_record: Record | None = None,
    ) -> None:
        """Step, calls, messages, the plugin's record and what budgets count in one transaction."""
        with self.transaction() as db:
            db.execute(
                "UPDATE intents SET step = ?, attempts = ?, accepted_at_s = ?, detail = ? WHERE id = ?",
                (record.step, record.attempts, record.accepted_at_s, record.detail, record.id),
            )
            db.executemany(
                "INSERT INTO calls (intent, attempt, what, outcome, detail, at_s) VALUES (?, ?, ?, ?, ?, ?)",
                [(record.id, record.attempts, c.what, c.outcome, c.detail, now_s) for c in calls],
            )
            _queue(db, record.id, outgoing)
            if plugin_record is not None:
                _write_record(db, record.intent.plugin, plugin_record)
            if not record.spends:
                db.execute("DELETE FROM spent WHERE intent = ?", (record.id,))
            elif record.final or record.step == "accepted":
                # From "accepted" on the eviction counts as carried out; `coalesce` keeps the first moment.
                db.execute("UPDATE spent SET at_s = coalesce(at_s, ?) WHERE intent = ?", (now_s, record.id))

    def live(self) -> Sequence[IntentRecord]:
        """Unfinished intents, oldest first."""
        with self.reading():
            rows = self.db.execute(_LIVE).fetchall()
            return [
                IntentRecord(EvictionIntent.decode(intent), Pod.model_validate_json(pod), bool(hard), *rest)
                for intent, pod, hard, *rest in rows
            ]

    def recent(self, limit: int) -> Sequence[Mapping[str, Any]]:
        """The newest intents with calls and messages."""
        with self.reading():
            rows = self.db.execute(
                "SELECT id, step, detail, attempts, opened_at_s, intent FROM intents ORDER BY row DESC LIMIT ?",
                (limit,),
            ).fetchall()
            return [
                {
                    "step": step,
                    "detail": detail,
                    "attempts": attempts,
                    "opened_at_s": opened_at_s,
                    "intent": json.loads(intent),
                    "calls": self._calls_of(identity),
                    "events": self._events_of(identity),
                }
                for identity, step, detail, attempts, opened_at_s, intent in rows
            ]

    def waiting(self, limit: int) -> Sequence[Outgoing]:
        """Unacknowledged messages that may be sent, in order."""
        return self._messages("published_at_s IS NULL AND NOT held ORDER BY row", limit)

    def outgoing(self, fact_id: str) -> Outgoing | None:
        """Return a message, whatever its state."""
        with self.reading():
            row = self.db.execute(
                "SELECT msg_id, subject, body, headers, held FROM outbox WHERE msg_id = ?", (fact_id,)
            ).fetchone()
        if row is None:
            return None
        kept, subject, body, headers, held = row
        return Outgoing(kept, subject, body, json.loads(headers), held=bool(held))

    def waiting_count(self) -> int:
        """Unacknowledged messages."""
        with self.reading():
            row = self.db.execute("SELECT count(*) FROM outbox WHERE published_at_s IS NULL").fetchone()
        return int(row[0])

    def published(self, fact_id: str, *, sequence: int, now_s: float) -> None:
        """Mark as acknowledged."""
        with self.transaction() as db:
            db.execute(
                # Not deleted: what is acknowledged need not be on the server's disk yet
                # (docs/facts/nats.md#acknowledged-is-not-on-disk).
                "UPDATE outbox SET published_at_s = ?, sequence = ?, held = 0 WHERE msg_id = ?",
                (now_s, sequence, fact_id),
            )

    def acknowledged(self, limit: int) -> Sequence[Outgoing]:
        """Acknowledged messages, newest first."""
        return self._messages("published_at_s IS NOT NULL ORDER BY row DESC", limit)

    def _messages(self, which: str, limit: int) -> Sequence[Outgoing]:
        with self.reading():
            rows = self.db.execute(
                f"SELECT msg_id, subject, body, headers FROM outbox WHERE {which} LIMIT ?",  # noqa: S608 - constants
                (limit,),
            ).fetchall()
        return [Outgoing(fact_id, subject, body, json.loads(headers)) for fact_id, subject, body, headers in rows]

    def send_again(self, fact_ids: Sequence[str]) -> None:
        """Mark as not acknowledged."""
        with self.transaction() as db:
            db.executemany(
                "UPDATE outbox SET published_at_s = NULL, sequence = NULL WHERE msg_id = ?",
                [(fact_id,) for fact_id in fact_ids],
            )

    def rename(self, fact_id: str, msg_id: str) -> None:
        """Write another message id into its headers."""
        with self.transaction() as db:
            db.execute(
                "UPDATE outbox SET headers = json_set(headers, ?, ?) WHERE msg_id = ?",
                (f'$."{MSG_ID}"', msg_id, fact_id),
            )

    def release(self, fact_id: str) -> None:
        """Let a held message go."""
        with self.transaction() as db:
            db.execute("UPDATE outbox SET held = 0 WHERE msg_id = ?", (fact_id,))

    def discard(self, fact_id: str) -> None:
        """Forget a held message."""
        with self.transaction() as db:
            db.execute("DELETE FROM outbox WHERE msg_id = ? AND held", (fact_id,))

    def prune(self, now_s: float) -> None:
        """In one transaction. With nothing to delete it is a write too: it proves that the ledger can be written."""
        with self.transaction() as db:
            prune(db, now_s)

    def _meta(self) -> dict[str, float]:
        with self.reading():
            return dict(self.db.execute("SELECT key, value FROM meta").fetchall())

    def _calls_of(self, identity: str) -> list[dict[str, Any]]:
        rows = self.db.execute(
            "SELECT attempt, what, outcome, detail FROM calls WHERE intent = ? ORDER BY rowid", (identity,)
        )
        return [dict(zip(("attempt", "what", "outcome", "detail"), row, strict=True)) for row in rows]

    def _events_of(self, identity: str) -> list[dict[str, Any]]:
        rows = self.db.execute(
            "SELECT msg_id, subject, published_at_s IS NOT NULL, sequence FROM outbox WHERE intent = ? ORDER BY row",
            (identity,),
        )
        return [
            {"id": msg_id, "subject": subject, "published": bool(published), "sequence": sequence}
            for msg_id, subject, published, sequence in rows
        ]


def _queue(db: sqlite3.Connection, intent: str, outgoing: Sequence[Outgoing]) -> None:
    db.executemany(
        "INSERT INTO outbox (msg_id, intent, subject, headers, body, held) VALUES (?, ?, ?, ?, ?, ?)",
        [(o.fact_id, intent, o.subject, json.dumps(dict(o.headers)), o.body, o.held) for o in outgoing],
    )


def _write_record(db: sqlite3.Connection, plugin: str, record: Record) -> None:
    db.execute("INSERT OR REPLACE INTO plugins VALUES (?, ?, ?)", (plugin, record.without_relief, record.last_at_s))
