"""Logs of `sublet up` do not grow without end, and their writers do not notice."""

import asyncio
import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from shared.adapters.local.log import LogChoice, read_log
from shared.adapters.local.log_times import note_length, read_times, times_file
from sublet.host import capped_logs
from sublet.host.capped_logs import cap


def test_a_log_that_is_too_long_begins_anew_and_its_end_is_kept(tmp_path: Path) -> None:
    with (tmp_path / "qrm.log").open("ab", buffering=0) as writer:
        for number in range(50):
            writer.write(b"%02d" % number * 10)
            cap(tmp_path / "qrm.log", max_bytes=200)
            assert (tmp_path / "qrm.log").stat().st_size <= 200
        kept = (tmp_path / "qrm.log.1").read_bytes()
        assert len(kept) == 200
        assert (kept + (tmp_path / "qrm.log").read_bytes()).endswith(b"49" * 10)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["qrm.log", "qrm.log.1"]


def test_a_short_one_stays_and_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "short.log").write_text("x" * 200)
    (tmp_path / "other.txt").write_text("x" * 900)
    cap(tmp_path / "short.log", max_bytes=200)
    assert (tmp_path / "short.log").stat().st_size == 200
    (tmp_path / "link.log").symlink_to(tmp_path / "other.txt")
    with pytest.raises(OSError, match=r"link\.log"):
        cap(tmp_path / "link.log", max_bytes=200)
    assert (tmp_path / "other.txt").stat().st_size == 900


def test_services_watchdog_and_pods_are_bounded_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capped_logs, "MAX_LOG_BYTES", 200)
    monkeypatch.setattr(capped_logs, "MAX_POD_LOG_BYTES", 400)
    bounded = {"logs/qrm.log": 200, "keeper.log": 200, "pods/cc/logs/main.log": 400}
    for name in (*bounded, "other.log", "pods/cc/shim.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * 900)
    capped_logs.cap_all(tmp_path)
    for name, most in bounded.items():
        assert (tmp_path / name).stat().st_size == 0
        assert (tmp_path / f"{name}.1").stat().st_size == most
    assert (tmp_path / "other.log").stat().st_size == (tmp_path / "pods/cc/shim.txt").stat().st_size == 900


def test_who_follows_a_log_that_begins_anew_reads_on(tmp_path: Path) -> None:
    path = tmp_path / "main.log"
    path.write_bytes(b"a" * 300)
    pieces = read_log(path, LogChoice(), iter([True, False]).__next__)
    assert next(pieces) == b"a" * 300
    cap(path, max_bytes=200)
    with path.open("ab") as writer:
        writer.write(b"after\n")
    assert b"".join(pieces) == b"after\n"


def test_without_room_it_begins_anew_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "qrm.log").write_text("x" * 900)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "sendfile", full)
    with pytest.raises(OSError, match="No space left"):
        cap(tmp_path / "qrm.log", max_bytes=200)
    assert (tmp_path / "qrm.log").stat().st_size == 0


def test_a_pod_that_goes_while_logs_are_looked_for_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capped_logs, "MAX_POD_LOG_BYTES", 400)
    for pod in ("aa", "bb"):
        (tmp_path / "pods" / pod / "logs").mkdir(parents=True)
        (tmp_path / "pods" / pod / "logs/main.log").write_bytes(b"x" * 900)
    scandir = os.scandir

    def gone(path: Path) -> object:
        if Path(path) == tmp_path / "pods/aa/logs":
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", gone)
    capped_logs.cap_all(tmp_path)
    assert (tmp_path / "pods/bb/logs/main.log").stat().st_size == 0


async def test_a_look_that_fails_is_said_once_and_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, enough = list[Path](), asyncio.Event()
    loop = asyncio.get_running_loop()

    def failing(folder: Path) -> None:
        looks.append(folder)
        if len(looks) == 3:
            loop.call_soon_threadsafe(enough.set)
        raise OSError(5, "Input/output error", str(folder))

    monkeypatch.setattr(capped_logs, "cap_all", failing)
    monkeypatch.setattr(capped_logs, "LOOK_S", 0.0)
    with capture_logs() as said:
        task = asyncio.create_task(capped_logs.keep_capped(tmp_path))
        waiting = asyncio.create_task(enough.wait())
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        assert not task.done()
        task.cancel()
        waiting.cancel()
        await asyncio.gather(task, waiting, return_exceptions=True)
    assert [line["event"] for line in said] == ["log.not_looked_at"]


def test_times_of_what_went_go_with_it(tmp_path: Path) -> None:
    log = tmp_path / "main.log"
    log.write_bytes(b"x" * 900)
    note_length(log, 1000)
    assert read_times(log).known_bytes == 900
    cap(log, max_bytes=200)
    assert not times_file(log).exists()
