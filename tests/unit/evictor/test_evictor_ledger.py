"""The SQLite ledger: what is written is there again, what must be unique is, and what is broken is found."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from evictor_world import pod
from ledger_world import BUCKET, again, message, record

from shared.adapters.ledger import upkeep as ledger_upkeep
from shared.adapters.ledger.sqlite import SqliteLedger
from shared.core.evictions.intents import FINAL_STEPS, STEPS, Call, Record
from shared.errors import Conflict, Unavailable


def test_everything_written_is_there_after_a_restart(ledger: SqliteLedger, tmp_path: Path) -> None:
    first = record()
    ledger.begin(first, BUCKET, [message("i", held=True), message("e1")])
    second = first.follow("requested")
    ledger.advance(second, calls=[Call("dry-run", "accepted", "fine")], now_s=11.0)
    third = second.follow("accepted", now_s=12.0)
    ledger.advance(third, [message("e2")], now_s=12.0)
    ledger.keep_record("p", Record(2, 4.5))
    ledger = again(ledger, tmp_path)
    assert list(ledger.live()) == [third]
    assert ledger.bucket("enforce") == BUCKET
    assert ledger.records() == {"p": Record(2, 4.5)}
    assert ledger.next_episode() == 6
    assert [m.fact_id for m in ledger.waiting(10)] == ["e1", "e2"]
    assert ledger.waiting(1)[0] == message("e1")
    assert ledger.waiting_count() == 3
    recent = ledger.recent(5)[0]
    assert recent["step"] == "accepted"
    assert recent["calls"] == [{"attempt": 1, "what": "dry-run", "outcome": "accepted", "detail": "fine"}]
    assert [e["id"] for e in recent["events"]] == ["i", "e1", "e2"]


def test_a_pod_has_at_most_one_live_intent(ledger: SqliteLedger) -> None:
    ledger.begin(record(), BUCKET, [])
    with pytest.raises(Conflict, match="already under way"):
        ledger.begin(record(episode=6), BUCKET, [message("lost")])
    assert ledger.waiting_count() == 0, "a refused intent leaves nothing behind"
    assert ledger.next_episode() == 6
    ledger.advance(record().follow("cancelled"), now_s=1.0)
    ledger.begin(record(episode=6), BUCKET, [])
    assert [r.intent.episode for r in ledger.live()] == [6]


def test_an_intent_is_written_once(ledger: SqliteLedger) -> None:
    ledger.begin(record(), BUCKET, [])
    ledger.advance(record().follow("cancelled"), now_s=1.0)
    with pytest.raises(Conflict):
        ledger.begin(record(), BUCKET, [])


def test_a_held_message_is_sent_only_when_released_and_can_be_discarded(ledger: SqliteLedger) -> None:
    ledger.begin(record(), BUCKET, [message("i", held=True), message("j", held=True), message("k", held=True)])
    assert ledger.waiting(10) == []
    ledger.release("i")
    ledger.discard("j")
    ledger.published("k", sequence=4, now_s=1.0)
    assert [m.fact_id for m in ledger.waiting(10)] == ["i"]
    assert ledger.waiting_count() == 1
    ledger.discard("i")
    assert ledger.waiting_count() == 1, "what was let go is not taken back"


def test_acknowledged_messages_stay_ten_minutes_and_go_in_bounded_batches(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_upkeep, "PRUNE_AT_ONCE", 2)
    monkeypatch.setattr(ledger_upkeep, "KEEP_NEWEST", 0)
    ledger.begin(record(), BUCKET, [message(str(i)) for i in range(5)])
    for i in range(4):
        ledger.published(str(i), sequence=i, now_s=100.0)

    def left() -> int:
        return len(ledger.recent(1)[0]["events"])

    ledger.prune(700.0)
    assert left() == 5
    ledger.prune(700.1)
    assert left() == 3
    ledger.prune(700.1)
    ledger.prune(700.1)
    assert left() == 1
    assert ledger.waiting_count() == 1


def test_the_newest_acknowledged_messages_stay_for_a_day(ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_upkeep, "KEEP_NEWEST", 2)
    ledger.begin(record(), BUCKET, [message(str(i)) for i in range(5)])
    for i in range(4):
        ledger.published(str(i), sequence=i, now_s=100.0)

    def kept() -> list[str]:
        return [one.fact_id for one in ledger.acknowledged(10)]

    ledger.prune(700.1)
    assert kept() == ["3", "2"]
    assert ledger.acknowledged(1)[0].body == message("3").body
    ledger.prune(100.0 + ledger_upkeep.KEEP_NEWEST_S)
    assert len(kept()) == 2
    ledger.prune(100.1 + ledger_upkeep.KEEP_NEWEST_S)
    assert kept() == []


def test_what_its_stream_has_lost_waits_again_before_what_came_later(ledger: SqliteLedger) -> None:
    ledger.begin(record(), BUCKET, [message(name) for name in "abc"])
    for sequence, name in enumerate("ab", start=1):
        ledger.published(name, sequence=sequence, now_s=1.0)
    ledger.send_again(["a"])
    assert [one.fact_id for one in ledger.waiting(10)] == ["a", "c"]
    assert [one.fact_id for one in ledger.acknowledged(10)] == ["b"]


def test_only_the_newest_finished_intents_stay_and_live_ones_always(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_upkeep, "KEEP_INTENTS", 2)
    ledger.begin(record(pod("live"), 1), BUCKET, [])
    for episode in range(5, 10):
        one = record(pod(f"p{episode}"), episode)
        ledger.begin(one, BUCKET, [])
        ledger.advance(one.follow("cancelled"), calls=[Call("lookup", "gone")], now_s=1.0)
    ledger.prune(1.0)
    assert [r["intent"]["pod"] for r in ledger.recent(10)] == ["p9", "p8", "live"]


def test_a_second_owner_is_refused_until_the_first_has_closed(ledger: SqliteLedger, tmp_path: Path) -> None:
    other = SqliteLedger(tmp_path)
    with pytest.raises(Conflict, match="another evictor"):
        other.open(first_episode=1)
    ledger.close()
    assert other.open(first_episode=1) == ""
    other.close()


@pytest.mark.parametrize("damage", ["text", "page"])
def test_a_broken_file_is_moved_aside_and_an_empty_one_takes_its_place(
    ledger: SqliteLedger, tmp_path: Path, damage: str
) -> None:
    ledger.begin(record(), BUCKET, [message("e")])
    ledger.close()
    path = tmp_path / "ledger.db"
    content = bytearray(path.read_bytes())
    content[: 100 if damage == "text" else 0] = b"x" * (100 if damage == "text" else 0)
    content[4096:12288] = b"\xff" * 8192
    path.write_bytes(bytes(content))
    word = ledger.open(first_episode=77)
    assert "was moved to ledger.db.broken-1" in word
    assert (tmp_path / "ledger.db.broken-1").read_bytes() == bytes(content)
    assert ledger.live() == []
    assert ledger.next_episode() == 77
    assert again(ledger, tmp_path).next_episode() == 77


def test_a_ledger_of_a_newer_format_is_left_alone(ledger: SqliteLedger, tmp_path: Path) -> None:
    ledger.close()
    with sqlite3.connect(tmp_path / "ledger.db") as db:
        db.execute("PRAGMA user_version = 9")
    db.close()
    with pytest.raises(Unavailable, match="format 9"):
        ledger.open(first_episode=1)
    assert (tmp_path / "ledger.db").exists()


def test_a_ledger_that_is_not_open_says_so(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path)
    for use in (ledger.live, ledger.next_episode, lambda: ledger.prune(1.0)):
        with pytest.raises(Unavailable, match="not open"):
            use()


def test_a_full_disk_fails_the_write_and_keeps_what_was_there(ledger: SqliteLedger) -> None:
    ledger.begin(record(), BUCKET, [message("e")])
    ledger.db.execute("PRAGMA max_page_count = 1")
    big = replace(message("f"), body=b"x" * 200_000)
    with pytest.raises(Unavailable, match="full"):
        ledger.advance(record().follow("cancelled"), [big], now_s=1.0)
    assert [r.step for r in ledger.live()] == ["intended"]
    assert [m.fact_id for m in ledger.waiting(9)] == ["e"]


def test_a_ledger_has_a_largest_size_and_says_where_it_is_set(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path, max_bytes=1 << 20)
    ledger.open(first_episode=5)
    body = b"x" * 20_000

    def fill() -> None:
        for number in range(100):
            ledger.begin(record(pod(f"p{number}"), number), BUCKET, [replace(message(f"e{number}"), body=body)])

    with pytest.raises(Unavailable, match=r"full.* 1048576 bytes \(evictor\.ledger_max_bytes\)"):
        fill()
    assert 30 < len(ledger.live()) == len(ledger.waiting(99)) < 60, "what was refused is not there at all"
    ledger.close()
    assert (tmp_path / "ledger.db").stat().st_size <= 1 << 20
    wider = SqliteLedger(tmp_path, max_bytes=2 << 20)
    wider.open(first_episode=5)
    wider.begin(record(pod("after"), 200), BUCKET, [replace(message("after"), body=body)])
    wider.close()


def test_of_broken_files_the_newest_stay(ledger: SqliteLedger, tmp_path: Path) -> None:
    for number in range(1, 8):
        ledger.close()
        (tmp_path / "ledger.db").write_bytes(b"broken %d" % number + bytes(4096))
        assert f"moved to ledger.db.broken-{number}" in ledger.open(first_episode=1)
    aside = sorted(path for path in tmp_path.iterdir() if "broken" in path.name)
    assert [path.name for path in aside] == [f"ledger.db.broken-{number}" for number in (5, 6, 7)]
    assert aside[-1].read_bytes().startswith(b"broken 7")


def test_commits_are_synchronised_and_logged_ahead(ledger: SqliteLedger) -> None:
    assert ledger.db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ledger.db.execute("PRAGMA synchronous").fetchone() == (2,)


FOLLOWS = {
    "intended": {"requested", "refused", "cancelled", "failed"},
    "requested": {"requested", "accepted", "refused", "cancelled", "failed"},
    "accepted": {"succeeded", "failed"},
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_followed_only_by_what_may_follow_it(step: str) -> None:
    here = record(step=step)
    for after in STEPS:
        if after in FOLLOWS.get(step, set()):
            assert here.follow(after, now_s=3.0).step == after
        else:
            with pytest.raises(ValueError, match="cannot follow"):
                here.follow(after)
    assert here.final == (step in FINAL_STEPS)


def test_attempts_count_the_calls_that_were_announced() -> None:
    assert record().follow("requested").follow("requested").follow("accepted", now_s=8.0).attempts == 2


@pytest.mark.parametrize(
    ("now_s", "expired"), [(70.0, False), (70.1, True), (9.0, True)], ids=["in time", "too late", "after a new start"]
)
def test_an_intent_expires_with_its_deadline_or_with_the_machine(now_s: float, expired: bool) -> None:
    assert record().expired(now_s) is expired
