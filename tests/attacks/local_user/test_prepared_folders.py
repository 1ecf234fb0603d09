"""A state folder that a local user has prepared, or can exchange: root takes none and touches nothing behind it."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from present import present
from slow_machines import patience_s

from shared.errors import Unfit
from sublet.exit_codes import FAILED
from sublet.host.capped_logs import MAX_POD_LOG_BYTES, cap_all
from sublet.instance import running_instance
from sublet.state.files import MARK
from sublet.state.folder import StateFolder
from sublet.state.old_place import bring_history

NOBODY = 65534
SECRET = "root's own"
MOUNT_AND_UP = 'mount -t tmpfs -o "$1" tmpfs "$2" && exec "$3" -m sublet up --substrate sim --nats-port 0'
pytestmark = [
    pytest.mark.root,
    pytest.mark.timeout(200),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be somebody else"),
]


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A file of root's at which links point."""
    file = tmp_path / "precious"
    file.write_text(SECRET)
    file.chmod(0o600)
    return file


def theirs(path: Path) -> Path:
    path.mkdir(parents=True)
    os.chown(path, NOBODY, NOBODY)
    return path


def own_folder(at: Path, precious: Path) -> None:
    (theirs(at) / "up.lock").symlink_to(precious)


def own_folder_with_a_mark(at: Path, precious: Path) -> None:
    own_folder(at, precious)
    (at / MARK).write_text("")


def folder_above(at: Path, precious: Path) -> None:
    theirs(at.parent)
    at.mkdir()
    (at / "up.lock").symlink_to(precious)


def link(at: Path, precious: Path) -> None:
    at.parent.mkdir()
    at.symlink_to(precious.parent)
    os.chown(at, NOBODY, NOBODY, follow_symlinks=False)


def link_above(at: Path, precious: Path) -> None:
    real = precious.parent / "real"
    real.mkdir()
    at.parent.symlink_to(real)
    os.chown(at.parent, NOBODY, NOBODY, follow_symlinks=False)


def writable_folder(at: Path, precious: Path) -> None:
    at.mkdir(parents=True)
    at.chmod(0o777)
    (at / "launch.json").symlink_to(precious)


def mark_in_a_folder_of_roots(at: Path, _precious: Path) -> None:
    at.mkdir(parents=True)
    (at / MARK).write_text("")
    os.chown(at / MARK, NOBODY, NOBODY)


PREPARED = [
    own_folder,
    own_folder_with_a_mark,
    folder_above,
    link,
    link_above,
    writable_folder,
    mark_in_a_folder_of_roots,
]


@pytest.mark.parametrize("prepare", PREPARED)
def test_root_takes_no_folder_that_somebody_else_prepared(
    tmp_path: Path, precious: Path, prepare: Callable[[Path, Path], None]
) -> None:
    at = tmp_path / "x/state"
    prepare(at, precious)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(Unfit, match="state folder"):
        StateFolder.claim(at)
    assert precious.read_text() == SECRET
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("prepare", PREPARED)
def test_a_history_that_somebody_else_prepared_is_not_moved_to_roots_folder(
    tmp_path: Path, precious: Path, prepare: Callable[[Path, Path], None]
) -> None:
    at, new = tmp_path / "x/state", tmp_path / "disk"
    prepare(at, precious)
    with contextlib.suppress(OSError):
        (at / "ledger.db").symlink_to(precious)
        (at / "config.yaml").write_text("advisor: {policy: theirs}")
    before = sorted(tmp_path.rglob("*"))
    with contextlib.suppress(Unfit):
        assert bring_history(at, new) == ""
    assert sorted(tmp_path.rglob("*")) == before
    assert precious.read_text() == SECRET


@pytest.mark.parametrize("prepare", PREPARED)
def test_roots_history_is_not_moved_to_a_place_that_somebody_else_prepared(
    tmp_path: Path, precious: Path, prepare: Callable[[Path, Path], None]
) -> None:
    old, new = tmp_path / "run", tmp_path / "x/state"
    StateFolder.claim(old)._lock.close()
    (old / "ledger.db").write_text(SECRET)
    prepare(new, precious)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(Unfit, match=f"state folder {new}"):
        bring_history(old, new)
    assert [path for path in sorted(tmp_path.rglob("*")) if path.name != "up.lock" or path.parent != old] == [
        path for path in before if path.name != "up.lock" or path.parent != old
    ]


def test_a_log_of_a_pod_that_is_a_link_is_not_cut(tmp_path: Path, precious: Path) -> None:
    logs = tmp_path / "state/pods/cc/logs"
    logs.mkdir(parents=True)
    precious.write_bytes(b"x" * (MAX_POD_LOG_BYTES + 1))
    (logs / "main.log").symlink_to(precious)
    cap_all(tmp_path / "state")
    assert precious.stat().st_size == MAX_POD_LOG_BYTES + 1
    assert [path.name for path in logs.iterdir()] == ["main.log"]


def test_the_commands_say_it_and_end(tmp_path: Path, precious: Path) -> None:
    at = tmp_path / "x/state"
    own_folder(at, precious)
    done = subprocess.run(
        [sys.executable, "-m", "sublet", "up", "--substrate", "sim", "--nats-port", "0"],
        env={**os.environ, "SUBLET_STATE_DIR": str(at)},
        capture_output=True, text=True, check=False, timeout=patience_s(150),
    )  # fmt: skip
    assert (done.returncode, f"belongs to user {NOBODY}" in done.stderr) == (FAILED, True), done.stderr
    assert precious.read_text() == SECRET


@pytest.mark.parametrize("options", ["ro", "mode=0750,nr_inodes=2"], ids=["read-only", "full"])
def test_a_disk_that_is_full_or_read_only_is_said_in_one_line(tmp_path: Path, options: str) -> None:
    at = tmp_path / "disk"
    at.mkdir()
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", MOUNT_AND_UP, "sh", options, str(at), sys.executable],
        env={**os.environ, "SUBLET_STATE_DIR": str(at / "state" if options == "ro" else at)},
        capture_output=True, text=True, check=False, timeout=patience_s(150),
    )  # fmt: skip
    assert done.returncode == FAILED, done.stderr
    assert "Traceback" not in done.stderr
    assert f"state folder {at}" in done.stderr
    assert "choose another with SUBLET_STATE_DIR" in done.stderr


def of_this_process(folder: Path) -> str:
    return json.dumps({"pid": os.getpid(), "state_dir": str(folder), "node": "theirs", "substrate": "host"})


@pytest.mark.parametrize("as_link", [False, True], ids=["file", "link"])
def test_another_users_word_of_where_sublet_is_found_is_not_followed(tmp_path: Path, as_link: bool) -> None:
    told = tmp_path / "told.json"
    told.write_text(of_this_process(tmp_path))
    file = tmp_path / "sublet.json"
    assert running_instance(told) is not None
    if as_link:
        file.symlink_to(told)
    else:
        file.write_text(of_this_process(tmp_path))
        os.chown(file, NOBODY, NOBODY)
    assert running_instance(file) is None


def test_what_is_told_of_an_instance_cannot_steer_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "sublet.json"
    file.write_text(of_this_process(tmp_path).replace("theirs", "a\\u001b[2J\\nb"))
    words = present(running_instance(file)).words()
    assert words.isprintable()
    assert "a\\x1b[2J" in words
