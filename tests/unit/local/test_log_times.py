"""Logs of containers: when their lines were written, from where they are read, and what a successor keeps of them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pods_rig import record

from shared.adapters.local import log_times
from shared.adapters.local.log import LogChoice, log_of, read_log
from shared.adapters.local.log_times import (
    MAX_ENTRIES,
    LogTimes,
    keep_end,
    kept_aside,
    note_length,
    read_times,
    times_file,
)
from shared.adapters.local.pods import LocalPods
from shared.errors import Refused

BASE_MS = 1_767_268_800_000  # 2026-01-01T12:00:00Z


def written(log: Path, *pieces: tuple[int, bytes]) -> Path:
    """A log whose pieces were seen so many seconds after the base."""
    log.write_bytes(b"")
    for at_s, text in pieces:
        with log.open("ab") as file:
            file.write(text)
        note_length(log, BASE_MS + at_s * 1000)
    return log


def at(second: int) -> datetime:
    return datetime.fromtimestamp(BASE_MS / 1000 + second, UTC)


def shown(log: Path, choice: LogChoice) -> bytes:
    return b"".join(read_log(log, choice, lambda: False))


def test_each_line_has_the_time_at_which_it_was_seen(tmp_path: Path) -> None:
    log = written(tmp_path / "main.log", (0, b"one\ntwo\nth"), (1, b"ree\n"), (61, b"four"))
    assert shown(log, LogChoice(timestamps=True)) == (
        b"2026-01-01T12:00:00.000Z one\n2026-01-01T12:00:00.000Z two\n"
        b"2026-01-01T12:00:01.000Z three\n2026-01-01T12:01:01.000Z four"
    )


@pytest.mark.parametrize(
    ("since_s", "text"),
    [(0, b"one\nthree\nfour"), (1, b"three\nfour"), (2, b"four"), (61, b"four"), (62, b"")],
)
def test_since_begins_with_the_first_line_that_ended_then_or_later(
    tmp_path: Path, since_s: int, text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.adapters.local.log._last_write_ms", lambda _file: BASE_MS + 61_000)
    log = written(tmp_path / "main.log", (0, b"one\nth"), (1, b"ree\n"), (61, b"four"))
    assert shown(log, LogChoice(since=at(since_s))) == text


def test_since_and_tail_are_both_kept(tmp_path: Path) -> None:
    log = written(tmp_path / "main.log", (0, b"a\n"), (10, b"b\nc\nd\n"))
    assert shown(log, LogChoice(tail_lines=2, since=at(5))) == b"c\nd\n"
    assert shown(log, LogChoice(tail_lines=9, since=at(5))) == b"b\nc\nd\n"


def test_what_nobody_watched_has_the_time_of_the_last_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.adapters.local.log._last_write_ms", lambda _file: BASE_MS + 30_000)
    log = written(tmp_path / "main.log", (0, b"watched\n"))
    with log.open("ab") as file:
        file.write(b"alone\n")
    assert shown(log, LogChoice(since=at(30))) == b"alone\n"
    assert shown(log, LogChoice(since=at(31))) == b""
    assert shown(log, LogChoice(timestamps=True)).splitlines()[1] == b"2026-01-01T12:00:30.000Z alone"
    times_file(log).unlink()
    assert shown(log, LogChoice(since=at(30))) == b"watched\nalone\n"


@given(lines=st.lists(st.tuples(st.integers(0, 50), st.binary(max_size=9)), max_size=12), since_s=st.integers(0, 51))
def test_since_leaves_out_exactly_the_lines_from_before(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[int, bytes]], since_s: int
) -> None:
    told = [(at_s, text.replace(b"\n", b"") + b"\n") for at_s, text in sorted(lines)]
    log = written(tmp_path_factory.mktemp("logs") / "main.log", *told)
    after = b"".join(text for at_s, text in told if at_s >= since_s)
    found = shown(log, LogChoice(since=at(since_s)))
    # The file itself was written now: behind the index nothing stands, so nothing is added to it.
    assert found == after


def test_a_quiet_log_adds_nothing_and_one_that_was_cut_off_begins_anew(tmp_path: Path) -> None:
    log = written(tmp_path / "main.log", (0, b"first\n"), (1, b""), (2, b""))
    assert (read_times(log).at_ms, read_times(log).lengths) == ([BASE_MS], [6])
    log.write_bytes(b"x\n")
    note_length(log, BASE_MS + 9000)
    assert (read_times(log).at_ms, read_times(log).lengths) == ([BASE_MS + 9000], [2])


def test_times_ascend_when_the_clock_is_set_back(tmp_path: Path) -> None:
    log = written(tmp_path / "main.log", (50, b"a\n"), (0, b"b\n"), (60, b"c\n"))
    assert read_times(log).at_ms == [BASE_MS + 50_000, BASE_MS + 50_000, BASE_MS + 60_000]


def test_the_index_is_bounded_and_its_end_stays_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_times, "MAX_ENTRIES", 8)
    log = written(tmp_path / "main.log", *((second, b"x\n") for second in range(100)))
    times = read_times(log)
    assert len(times.lengths) <= 9
    assert (times.lengths[-1], times.time_ms(200)) == (200, BASE_MS + 99_000)
    # What has become less exact is said later than it was, never earlier.
    assert all((times.time_ms(2 * second + 2) or 0) >= BASE_MS + second * 1000 for second in range(100))


@given(st.binary(max_size=200))
def test_no_index_of_any_kind_does_harm(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    log = tmp_path_factory.mktemp("logs") / "main.log"
    log.write_bytes(b"a\nb\n")
    times_file(log).write_bytes(content)
    times = read_times(log)
    assert list(times.lengths) == sorted(set(times.lengths))
    assert len(times.lengths) <= MAX_ENTRIES
    assert b"a\nb\n".endswith(shown(log, LogChoice(since=at(0))))


def test_an_index_that_cannot_be_written_ends_nobody(tmp_path: Path) -> None:
    log = tmp_path / "main.log"
    note_length(log, BASE_MS)
    assert not times_file(log).exists()
    log.write_bytes(b"a\n")
    times_file(log).symlink_to(tmp_path / "elsewhere")
    note_length(log, BASE_MS)
    assert not (tmp_path / "elsewhere").exists()
    assert read_times(log).lengths == ()


def test_of_a_long_log_the_last_whole_lines_stay_with_their_times(tmp_path: Path) -> None:
    log = written(tmp_path / "main.log", *((second, f"line {second}\n".encode()) for second in range(10)))
    keep_end(log, 20)
    assert shown(log, LogChoice(timestamps=True)).splitlines() == [
        b"2026-01-01T12:00:08.000Z line 8", b"2026-01-01T12:00:09.000Z line 9"
    ]  # fmt: skip
    keep_end(log, 20)
    assert log.read_bytes() == b"line 8\nline 9\n"


@pytest.fixture
def written_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last write to any log was 90 seconds after the base."""
    monkeypatch.setattr("shared.adapters.local.log._last_write_ms", lambda _file: BASE_MS + 90_000)


@pytest.mark.usefixtures("written_last")
def test_who_follows_a_log_that_begins_anew_is_not_told_old_times(tmp_path: Path) -> None:
    log = written(tmp_path / "main.log", (0, b"old line\n"), (1, b"old line\n"))
    pieces = read_log(log, LogChoice(timestamps=True), iter([True, True, False]).__next__)
    assert [next(pieces), next(pieces)][-1] == b"2026-01-01T12:00:01.000Z old line\n"
    log.write_bytes(b"new\n")  # the index is still that of what went
    assert next(pieces) == b"2026-01-01T12:01:30.000Z new\n"
    note_length(log, BASE_MS + 95_000)
    with log.open("ab") as file:
        file.write(b"next\n")
    note_length(log, BASE_MS + 99_000)
    assert b"".join(pieces) == b"2026-01-01T12:01:39.000Z next\n"


@pytest.mark.usefixtures("written_last")
def test_since_shows_what_a_log_says_that_has_begun_anew(tmp_path: Path) -> None:
    log = written(tmp_path / "main.log", (0, b"old line\n"), (1, b"old line\n"))
    log.write_bytes(b"new\n")
    assert shown(log, LogChoice(since=at(60))) == b"new\n"
    assert shown(log, LogChoice(since=at(91))) == b""


def test_an_index_is_read_again_only_when_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = list[Path]()

    def counted(path: Path) -> LogTimes:
        reads.append(path)
        return read_times(path)

    monkeypatch.setattr("shared.adapters.local.log.read_times", counted)
    log = written(tmp_path / "main.log", (0, b"watched\n"))
    with log.open("ab") as file:
        file.write(b"alone\n" * 100)
    pieces = read_log(log, LogChoice(timestamps=True), lambda: False)
    for _ in range(50):
        next(pieces)
    assert len(reads) == 1
    note_length(log, BASE_MS + 5000)
    assert b"".join(pieces) == b"2026-01-01T12:00:05.000Z alone\n" * 51
    assert len(reads) == 2


@pytest.mark.parametrize(
    ("aside", "text", "kept"),
    [
        (b"part\nline 6\nline 7\n", b"line 8\nline 9\n", b"line 8\nline 9\n"),
        (b"part\nline 6\nline 7\n", b"line 9\n", b"line 7\nline 9\n"),
        (b"line 5\nline 6\nline 7\n", b"", b"line 6\nline 7\n"),
        (b"line 7\n", b"line 9\n", b"line 7\nline 9\n"),
        (b"line 5\n", b"line 6\nline 7\nline 8\n", b"line 7\nline 8\n"),
    ],
)
def test_of_a_log_that_has_begun_anew_the_end_of_both_parts_stays(
    tmp_path: Path, aside: bytes, text: bytes, kept: bytes
) -> None:
    log = written(tmp_path / "main.log", (9, text))
    kept_aside(log).write_bytes(aside)
    keep_end(log, 20)
    assert log.read_bytes() == kept
    assert not kept_aside(log).exists()
    assert read_times(log).known_bytes == (len(kept) if text else 0)


def test_times_of_what_a_log_was_before_are_not_kept(tmp_path: Path) -> None:
    log = written(tmp_path / "main.log", (0, b"line 5\nline 6\nline 7\n"))
    kept_aside(log).write_bytes(log.read_bytes())
    log.write_bytes(b"line 8\n")
    keep_end(log, 20)
    assert log.read_bytes() == b"line 7\nline 8\n"
    assert read_times(log).lengths == []


def test_what_lies_in_the_place_of_the_part_kept_aside_is_not_followed(tmp_path: Path) -> None:
    log = written(tmp_path / "main.log", (0, b"line\n"))
    (tmp_path / "other").write_text("other\n")
    kept_aside(log).symlink_to(tmp_path / "other")
    keep_end(log, 20)
    assert log.read_bytes() == b"line\n"


def ended(store: LocalPods, text: bytes) -> None:
    folder = store.add(record("web"))
    folder.log("main").parent.mkdir()
    written(folder.log("main"), (0, text))
    folder.finish()


def test_a_successor_keeps_the_log_of_the_last_pod_of_its_name_alone(tmp_path: Path) -> None:
    store = LocalPods(tmp_path)
    ended(store, b"first\n")
    with pytest.raises(Refused, match="no previous log"):
        log_of(store.find("web"), "", previous=True)
    ended(store, b"second\n")
    assert shown(log_of(store.find("web"), "", previous=True), LogChoice(timestamps=True)).endswith(b"Z first\n")
    store.add(record("web"))
    assert shown(log_of(store.find("web"), "main", previous=True), LogChoice()) == b"second\n"
    with pytest.raises(Refused, match="no container 'side'; it has main"):
        log_of(store.find("web"), "side", previous=True)
    assert len(list(store.path.rglob("*.log"))) == 1


def test_a_successor_keeps_no_more_than_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_times.keep_end, "__defaults__", (100,))
    store = LocalPods(tmp_path)
    ended(store, b"0123456789\n" * 100)
    store.add(record("web"))
    kept = log_of(store.find("web"), "", previous=True).read_bytes()
    assert (len(kept) <= 100, kept) == (True, b"0123456789\n" * 9)


def test_a_successor_that_is_given_up_takes_no_log_away(tmp_path: Path) -> None:
    store = LocalPods(tmp_path)
    ended(store, b"first\n")
    with pytest.raises(RuntimeError), store.adding(record("web")):
        raise RuntimeError("given up")
    assert shown(log_of(store.find("web"), ""), LogChoice()) == b"first\n"


def test_a_successor_keeps_the_end_of_a_log_that_had_begun_anew(tmp_path: Path) -> None:
    store = LocalPods(tmp_path)
    ended(store, b"last\n")
    kept_aside(store.find("web").folder.log("main")).write_bytes(b"first\n")
    store.add(record("web"))
    assert log_of(store.find("web"), "", previous=True).read_bytes() == b"first\nlast\n"
    assert list(store.path.rglob("*.log.1")) == []
