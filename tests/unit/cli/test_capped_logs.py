"""Logs of `sublet up` do not grow without end, and their writers do not notice."""

import os
from pathlib import Path

import pytest

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


def test_without_room_it_begins_anew_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "qrm.log").write_text("x" * 900)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "sendfile", full)
    with pytest.raises(OSError, match="No space left"):
        cap(tmp_path / "qrm.log", max_bytes=200)
    assert (tmp_path / "qrm.log").stat().st_size == 0
