"""The ledger's file has a lock, tables and transactions; a broken one is set aside.

Write-ahead log with full synchronisation: a transaction that has returned is on the disk. A file of an older format
is brought to this one, with all that it holds.
"""

import contextlib
import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from shared.core.evictions.intents import FINAL_STEPS, MAX_LEDGER_BYTES
from shared.errors import Conflict, Refused, Unavailable

BUSY_TIMEOUT_S = 1.0
MAX_WAL_BYTES = 8 << 20
"""Largest write-ahead log."""
KEEP_BROKEN = 3
"""How many broken files stay aside for people to look at, the newest of them."""
_MODE = 0o640
_PAGES_AT_ONCE = 64
SCHEMA_VERSION = 2
_ASIDE = re.compile(r"ledger\.db\.broken-([0-9]{1,9})")
_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
FINAL = ", ".join(f"'{step}'" for step in sorted(FINAL_STEPS))
"""The final steps as SQL."""

# Added with format 2: evictions as budgets count them, and why others were refused.
_SECOND = """
CREATE TABLE spent (
    intent TEXT PRIMARY KEY, mode TEXT NOT NULL, namespace TEXT NOT NULL, owner TEXT, at_s REAL) WITHOUT ROWID;
CREATE TABLE refusals (
    uid TEXT NOT NULL, plugin TEXT NOT NULL, guard TEXT NOT NULL, pod TEXT NOT NULL, why TEXT NOT NULL,
    count INTEGER NOT NULL, first_at_s REAL NOT NULL, last_at_s REAL NOT NULL,
    PRIMARY KEY (uid, plugin, guard)) WITHOUT ROWID;
"""
# A finished intent of format 1 does not say when it ended: its last call came after all that it may have done.
_FROM_FIRST = f"""
{_SECOND}
INSERT INTO spent
    SELECT id, json_extract(CAST(intent AS TEXT), '$.mode'), json_extract(CAST(intent AS TEXT), '$.namespace'), NULL,
        CASE WHEN step IN ({FINAL}) THEN
            coalesce(accepted_at_s, (SELECT max(at_s) FROM calls WHERE calls.intent = id), opened_at_s) END
    FROM intents
    WHERE step NOT IN ({FINAL}) OR attempts > 0 OR json_extract(CAST(intent AS TEXT), '$.mode') = 'dry-run';
PRAGMA user_version = 2;
"""  # noqa: S608 - constants
_SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE intents (
    row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, pod_uid TEXT NOT NULL, step TEXT NOT NULL, hard INTEGER NOT NULL,
    attempts INTEGER NOT NULL, opened_at_s REAL NOT NULL, accepted_at_s REAL, detail TEXT NOT NULL,
    intent BLOB NOT NULL, pod BLOB NOT NULL);
CREATE UNIQUE INDEX one_live_intent_per_pod ON intents (pod_uid) WHERE step NOT IN ({FINAL});
CREATE TABLE calls (
    intent TEXT NOT NULL, attempt INTEGER NOT NULL, what TEXT NOT NULL, outcome TEXT NOT NULL, detail TEXT NOT NULL,
    at_s REAL NOT NULL);
CREATE INDEX calls_of_intent ON calls (intent);
CREATE TABLE outbox (
    row INTEGER PRIMARY KEY AUTOINCREMENT, msg_id TEXT NOT NULL UNIQUE, intent TEXT NOT NULL, subject TEXT NOT NULL,
    headers TEXT NOT NULL, body BLOB NOT NULL, held INTEGER NOT NULL, sequence INTEGER, published_at_s REAL);
CREATE INDEX unpublished ON outbox (row) WHERE published_at_s IS NULL;
CREATE INDEX outbox_of_intent ON outbox (intent);
CREATE TABLE plugins (name TEXT PRIMARY KEY, without_relief INTEGER NOT NULL, last_at_s REAL) WITHOUT ROWID;
{_SECOND}
PRAGMA user_version = {SCHEMA_VERSION};
"""


class LedgerFile:
    """`ledger.db` and `ledger.lock` in a state folder."""

    def __init__(self, folder: Path, *, max_bytes: int = MAX_LEDGER_BYTES) -> None:
        self._folder, self._path, self._max_bytes = folder, folder / "ledger.db", max_bytes
        self._lock_fd: int | None = None
        self._connection: sqlite3.Connection | None = None

    def open(self, *, first_episode: int) -> str:
        """Take the lock, open the file, move one that is broken aside, create the tables.

        Raises:
            Conflict: another process has this ledger.
            Unavailable: the folder or file cannot be used, or a newer version has written it.
        """
        self._disconnect()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            # Before anything is opened: a second evictor must not even look for damage in a file that is being written.
            self._take_lock()
        except OSError as error:
            raise Unavailable(f"eviction ledger {self._path}: {error}", reason="ledger") from error
        word = ""
        try:
            self._connect(first_episode)
        except sqlite3.DatabaseError as error:
            self._disconnect()
            # The low byte is the primary code. A full disk or a locked file is no reason to part with the history.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _BROKEN:
                raise Unavailable(f"eviction ledger {self._path}: {error}", reason="ledger") from error
            word = self._move_aside(str(error))
            with self.reading():
                self._connect(first_episode)
        return word

    def close(self) -> None:
        """Close the file and give up the lock."""
        self._disconnect()
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    @property
    def db(self) -> sqlite3.Connection:
        """The open connection."""
        if self._connection is None:
            raise Unavailable(f"eviction ledger {self._path} is not open", reason="ledger")
        return self._connection

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of it on the disk, or nothing of it. A broken uniqueness is the caller's to explain."""
        with self.reading():
            db = self.db
            # The write lock at once: a transaction that begins by reading could be refused only when it comes to write.
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # the first error says what is wrong
                    db.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Everything that can go wrong with the file is Unavailable."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except (sqlite3.Error, Refused, ValueError) as error:
            raise Unavailable(f"eviction ledger {self._path}: {self._words(error)}", reason="ledger") from error

    def _words(self, error: Exception) -> str:
        """Describe an error; if the file's own bound is met, the bound and the next step."""
        if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_FULL or not self._at_bound():
            return str(error)
        return (
            f"it is full: it has its largest size, {self._max_bytes} bytes (evictor.ledger_max_bytes), and what it "
            "holds could not be sent; is the bus away?"
        )

    def _at_bound(self) -> bool:
        try:
            pages, most = (self.db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "max_page_count"))
        except sqlite3.Error:
            return False
        # The write that failed may have wanted several pages at once.
        return bool(pages >= most - _PAGES_AT_ONCE)

    def _take_lock(self) -> None:
        if self._lock_fd is not None:
            return
        fd = os.open(self._folder / "ledger.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise Conflict(
                f"eviction ledger {self._path}: another evictor has it; stop that one first", reason="locked"
            ) from None
        self._lock_fd = fd

    def _create(self) -> None:
        """An empty file that others cannot read: SQLite's own would be everybody's, and its log takes this one's mode.

        Raises:
            Unavailable: it cannot be made, or the name is a link.
        """
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
            try:
                os.fchmod(fd, _MODE)
            finally:
                os.close(fd)
        except OSError as error:
            raise Unavailable(f"eviction ledger {self._path}: {error}", reason="ledger") from error

    def _connect(self, first_episode: int) -> None:
        self._create()
        db = self._connection = sqlite3.connect(self._path, isolation_level=None, timeout=BUSY_TIMEOUT_S)
        db.execute("PRAGMA journal_mode = WAL")
        # In write-ahead mode NORMAL, to which some builds default, does not sync at a commit; an intent must be on the
        # disk before the call that it announces.
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA journal_size_limit = {MAX_WAL_BYTES}")
        page_bytes = db.execute("PRAGMA page_size").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {max(1, self._max_bytes // page_bytes)}")
        # A damaged page may be found only when it is read, in the middle of an eviction: looked for at the start.
        found = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            broken = sqlite3.DatabaseError(found)
            broken.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise broken
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            # `executescript` commits what is open before it starts, so the transaction is part of the script.
            db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA}")
            db.execute("INSERT INTO meta VALUES ('next_episode', ?)", (first_episode,))
            db.execute("COMMIT")
        elif version == 1:
            db.executescript(f"BEGIN IMMEDIATE; {_FROM_FIRST} COMMIT;")
        elif version != SCHEMA_VERSION:
            raise Unavailable(
                f"eviction ledger {self._path}: written in format {version}, this is {SCHEMA_VERSION}", reason="ledger"
            )

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _broken_numbers(self) -> list[int]:
        """Of the broken files that stand aside, ascending."""
        names = (entry.name for entry in self._folder.iterdir())
        return sorted(int(found[1]) for name in names if (found := _ASIDE.fullmatch(name)))

    def _move_aside(self, why: str) -> str:
        numbers = self._broken_numbers()
        aside = self._path.with_name(f"ledger.db.broken-{max(numbers, default=0) + 1}")
        try:
            for number in numbers[: 1 - KEEP_BROKEN]:
                for suffix in ("-wal", "-shm", ""):
                    self._path.with_name(f"ledger.db.broken-{number}{suffix}").unlink(missing_ok=True)
            # The log goes along: SQLite would play it into the new, empty file of this name.
            for suffix in ("-wal", "-shm", ""):
                part = self._path.with_name(f"ledger.db{suffix}")
                if part.exists():
                    part.rename(aside.with_name(aside.name + suffix))
        except OSError as error:
            raise Unavailable(f"eviction ledger {self._path} is broken and stays: {error}", reason="ledger") from error
        return f"eviction ledger {self._path} was broken ({why}); it was moved to {aside.name}"
