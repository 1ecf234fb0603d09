"""What is built of a checkout depends on its commit alone."""

import hashlib
import os
import tarfile
from pathlib import Path

import pytest

from deploy import wheel_backend
from deploy.artifacts import __main__ as command
from deploy.artifacts.checkout import BuildError, Checkout, ToolMissing, pack, run


def test_an_archive_knows_neither_times_nor_owners_nor_rights_of_the_files_that_it_is_made_of(tmp_path: Path) -> None:
    made = []
    for name, second, mode in (("one", 1, 0o600), ("two", 2, 0o664)):
        folder = tmp_path / name
        for path in ("b/text", "a"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(path)
            (folder / path).chmod(mode)
            os.utime(folder / path, (second, second))
        made.append(pack(folder, tmp_path / f"{name}.tar.gz", 1_700_000_000, "top"))
    assert made[0].read_bytes() == made[1].read_bytes()
    with tarfile.open(made[0]) as archive:
        members = [(m.name, m.mtime, m.mode, m.uid, m.uname) for m in archive.getmembers()]
    assert members == [("top/a", 1_700_000_000, 0o644, 0, ""), ("top/b/text", 1_700_000_000, 0o644, 0, "")]


def test_a_program_stays_one(tmp_path: Path) -> None:
    (tmp_path / "program").write_text("#!/bin/sh\n")
    (tmp_path / "program").chmod(0o700)
    with tarfile.open(pack(tmp_path, tmp_path.parent / "a.tar.gz", 1, "top")) as archive:
        assert archive.getmember("top/program").mode == 0o755


@pytest.mark.parametrize(
    ("given", "expected"), [("1700000000", 1_700_000_000), ("0", wheel_backend.EARLIEST_S), ("soon", None)]
)
def test_the_time_of_all_files_is_the_one_that_is_given(
    given: str, expected: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", given)
    assert wheel_backend.epoch_s(tmp_path) == (expected or wheel_backend.EARLIEST_S)


def test_a_part_whose_tool_is_missing_is_named_and_the_others_are_built(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def write(checkout: Checkout, goal: Path) -> list[Path]:
        (goal / "file").write_text("content")
        return [goal / "file"]

    def lack(checkout: Checkout, goal: Path) -> list[Path]:
        run(["no-such-program-of-sublet"])
        return []

    monkeypatch.setattr(command, "PARTS", {"good": write, "lacking": lack})
    made, skipped = command.build(["good", "lacking"], tmp_path / "into")
    assert made == [tmp_path / "into/file"]
    assert skipped == {"lacking": "no-such-program-of-sublet is not on this machine"}
    digest = hashlib.sha256(b"content").hexdigest()
    assert (tmp_path / "into/SHA256SUMS").read_text() == f"{digest}  file\n"


def test_a_tool_that_fails_is_quoted() -> None:
    with pytest.raises(BuildError, match=r"sh -c .*: exit code 3\nno luck"):
        run(["sh", "-c", "echo no luck; exit 3"])
    with pytest.raises(ToolMissing):
        run(["no-such-program-of-sublet"])
