"""What the ledger keeps for the budgets, over formats, machine starts and pruning."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from evictor_world import MakeNode, overcommitted, pod
from fixture_types import Virtual
from ledger_world import BUCKET, again, record

from shared.adapters.ledger import upkeep as ledger_upkeep
from shared.adapters.ledger.sqlite import SqliteLedger
from shared.contracts.mode import Mode
from shared.core.evictions.intents import KeptRefusal, Record, Spent, Step, TokenBucket
from shared.errors import Unavailable

FIRST_FORMAT = Path(__file__).with_name("ledger_format_1.sql")
OLD = {
    "succeeded": (1, 20.0),
    "failed": (2, None),
    "cancelled": (0, None),
    "accepted": (1, 25.0),
    "intended": (0, None),
}
"""By step: attempts, and when it was accepted."""


@pytest.fixture
def old_ledger(tmp_path: Path) -> Path:
    """A ledger of the first format in the middle of its work."""
    db = sqlite3.connect(tmp_path / "ledger.db")
    db.executescript(FIRST_FORMAT.read_text())
    db.execute("INSERT INTO meta VALUES ('next_episode', 42), ('bucket_tokens', 3.5), ('bucket_at_s', 7)")
    db.execute("INSERT INTO plugins VALUES ('p', 2, 4.5)")
    for episode, (step, (attempts, accepted_at_s)) in enumerate(OLD.items()):
        one = record(pod(step), episode)
        db.execute(
            "INSERT INTO intents (id, pod_uid, step, hard, attempts, opened_at_s, accepted_at_s, detail, intent, pod)"
            " VALUES (?, ?, ?, 1, ?, 10, ?, '', ?, ?)",
            (one.id, one.pod.uid, step, attempts, accepted_at_s, one.intent.encode(),
             one.pod.model_dump_json(exclude={"owner"}).encode()),
        )  # fmt: skip
        if attempts:
            db.execute("INSERT INTO calls VALUES (?, 1, 'evict', 'unknown', '', 30)", (one.id,))
        db.execute(
            "INSERT INTO outbox (msg_id, intent, subject, headers, body, held) VALUES (?, ?, 's', '{}', ?, 0)",
            (f"e{episode}", one.id, b"body"),
        )
    db.commit()
    db.close()
    return tmp_path


def test_a_ledger_of_the_first_format_keeps_all_that_it_holds_and_counts_it(old_ledger: Path) -> None:
    ledger = SqliteLedger(old_ledger)
    assert ledger.open(first_episode=1) == ""
    for _ in range(2):
        assert [r.step for r in ledger.live()] == ["accepted", "intended"]
        assert [r["step"] for r in ledger.recent(9)] == list(reversed(OLD))
        assert [m.fact_id for m in ledger.waiting(9)] == ["e0", "e1", "e2", "e3", "e4"]
        assert ledger.next_episode() == 42
        assert ledger.bucket("enforce") == TokenBucket(3.5, 7.0)
        assert ledger.records() == {"p": Record(2, 4.5)}
        counted = sorted(one.at_s or 0.0 for one in ledger.spent())
        assert counted == [0.0, 0.0, 20.0, 30.0], "two live, one at its acceptance, one at its last call"
        assert ledger.refusals() == []
        again(ledger, old_ledger)
    ledger.advance(record(pod("intended"), 4).follow("cancelled"), now_s=50.0)
    assert len(ledger.spent()) == 3
    ledger.close()


def test_a_migration_that_fails_changes_nothing_and_opens_nothing(old_ledger: Path) -> None:
    with sqlite3.connect(old_ledger / "ledger.db") as db:
        db.execute("UPDATE intents SET intent = 'no json' WHERE row = 2")
    db.close()
    before = (old_ledger / "ledger.db").read_bytes()
    ledger = SqliteLedger(old_ledger)
    with pytest.raises(Unavailable, match="malformed JSON"):
        ledger.open(first_episode=1)
    ledger.close()
    with sqlite3.connect(old_ledger / "ledger.db") as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM intents").fetchone() == (5,)
    db.close()
    assert len(before) == len((old_ledger / "ledger.db").read_bytes())


@pytest.mark.parametrize(
    ("mode", "way", "counted"),
    [
        pytest.param("enforce", [], [None], id="opened"),
        pytest.param("enforce", ["cancelled"], [], id="cancelled before any call"),
        pytest.param("enforce", ["refused"], [], id="refused at its rehearsal"),
        pytest.param("enforce", ["requested"], [None], id="about to be called"),
        pytest.param("enforce", ["requested", "accepted"], [2.0], id="on its way out"),
        pytest.param("enforce", ["requested", "accepted", "succeeded"], [2.0], id="gone"),
        pytest.param("enforce", ["requested", "failed"], [2.0], id="nobody knows what the call has done"),
        pytest.param("dry-run", ["cancelled"], [1.0], id="rehearsed"),
    ],
)
def test_what_budgets_count_follows_the_life_of_an_intent(
    ledger: SqliteLedger, mode: Mode, way: list[Step], counted: list[float | None]
) -> None:
    one = record(pod("batch", namespace="team-a", owner="Job/sort"))
    one = replace(one, intent=one.intent.model_copy(update={"mode": mode}))
    ledger.begin(one, BUCKET, [])
    for at_s, step in enumerate(way, 1):
        one = one.follow(step, now_s=float(at_s))
        ledger.advance(one, now_s=float(at_s))
    assert ledger.spent() == [Spent(mode, "team-a", "team-a/Job/sort", at_s) for at_s in counted]


def test_each_mode_has_a_bucket_of_its_own(ledger: SqliteLedger) -> None:
    rehearsal = record(pod("other"), 6)
    ledger.begin(replace(rehearsal, intent=rehearsal.intent.model_copy(update={"mode": "dry-run"})), BUCKET, [])
    assert (ledger.bucket("enforce"), ledger.bucket("dry-run")) == (None, BUCKET)


def ended(ledger: SqliteLedger, episode: int, at_s: float) -> None:
    one = record(pod(f"p{episode}"), episode)
    ledger.begin(one, BUCKET, [])
    for step in ("requested", "accepted", "succeeded"):
        one = one.follow(step, now_s=at_s)
        ledger.advance(one, now_s=at_s)


def test_evictions_are_counted_longer_than_their_intents_are_kept(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_upkeep, "KEEP_INTENTS", 2)
    for episode in range(5, 15):
        ended(ledger, episode, 100.0)
    ledger.prune(100.0 + ledger_upkeep.KEEP_SPENT_S - 1)
    assert (len(ledger.recent(20)), len(ledger.spent())) == (2, 10)
    ledger.prune(100.0 + ledger_upkeep.KEEP_SPENT_S)
    assert ledger.spent() == []


def test_a_clock_that_starts_anew_moves_moments_before_its_start(ledger: SqliteLedger) -> None:
    ended(ledger, 5, 1000.0)
    ledger.keep_record("p", Record(1, 1100.0))
    ledger.keep_refusals([KeptRefusal("", "", "p", "cooling", "why", 1, 900.0, 1100.0)])
    ledger.prune(1200.0)
    ended(ledger, 6, 1203.0)
    ledger.prune(40.0)
    ages_s = sorted(one.age_s(40.0) for one in ledger.spent())
    assert ages_s == [37.0, 240.0], "never more than has passed: what was up to the last prune, and this uptime"
    assert ledger.records() == {"p": Record(1, -100.0)}
    assert [(r.first_at_s, r.last_at_s) for r in ledger.refusals()] == [(-300.0, -100.0)]
    ledger.prune(50.0)
    assert sorted(one.age_s(50.0) for one in ledger.spent()) == [47.0, 250.0], "it is moved once"


def test_counts_that_cannot_be_read_let_nobody_go(node: MakeNode, virtual: Virtual, tmp_path: Path) -> None:
    async def main() -> None:
        world = await overcommitted(node(cooling_s=0))
        async with world.life():
            await world.tick(3)
        assert len(world.evictor.kills) == 1
        with sqlite3.connect(tmp_path / "state/ledger.db") as db:
            db.execute("UPDATE spent SET at_s = 'yesterday'")
        db.close()
        world.offered_millis = 1_000
        async with world.life() as app:
            await world.tick(30)
            assert "yesterday" in app.health().why
        assert len(world.evictor.kills) == 1

    virtual(main())
