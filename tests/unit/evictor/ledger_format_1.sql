-- The tables of an eviction ledger as the first format has them.
CREATE TABLE meta (key TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE intents (
    row INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, pod_uid TEXT NOT NULL, step TEXT NOT NULL, hard INTEGER NOT NULL,
    attempts INTEGER NOT NULL, opened_at_s REAL NOT NULL, accepted_at_s REAL, detail TEXT NOT NULL,
    intent BLOB NOT NULL, pod BLOB NOT NULL);
CREATE UNIQUE INDEX one_live_intent_per_pod ON intents (pod_uid)
    WHERE step NOT IN ('cancelled', 'failed', 'refused', 'succeeded');
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
PRAGMA user_version = 1;
