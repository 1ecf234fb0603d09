"""The state folder of an earlier version, in memory: its history goes to the disk whole, or stays where it is."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from shared.adapters.local.pods import LocalPods
from shared.contracts.pod import Pod
from shared.core.pods.manifest import PodRecord
from shared.errors import Conflict, Unfit
from sublet.state import claim as claim_module
from sublet.state.claim import claim_state
from sublet.state.files import MARK
from sublet.state.folder import StateFolder
from sublet.state.old_place import bring_history

UID = "11111111-2222-4333-8444-555555555555"
HISTORY = {"ledger.db": "rows", "config.yaml": "advisor: {}", "evictions.paused": "why", "nats/streams/1.blk": "events"}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """As a stop of an earlier version leaves it, with a file that was to go."""
    path = tmp_path / "run"
    folder = StateFolder.claim(path)
    for name, text in {**HISTORY, "checkpoint.json": "{}"}.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    (path / "ledger.db").chmod(0o640)
    folder.release()
    return path


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return tmp_path / "disk/sublet"


def tree(path: Path) -> dict[str, str]:
    return {file.relative_to(path).as_posix(): file.read_text() for file in path.rglob("*") if file.is_file()}


def test_the_history_moves_and_the_old_folder_goes(old: Path, new: Path) -> None:
    said = bring_history(old, new)
    assert f"from {old}" in said
    assert str(new) in said
    assert {name: text for name, text in tree(new).items() if name != MARK} == HISTORY
    assert (new / "ledger.db").stat().st_mode & 0o777 == 0o640
    assert not old.exists()
    assert bring_history(old, new) == ""
    StateFolder.claim(new).release()


def test_a_folder_that_is_empty_is_filled(old: Path, new: Path) -> None:
    new.mkdir(parents=True)
    assert bring_history(old, new)
    assert tree(new).keys() >= HISTORY.keys()


def test_what_is_not_ours_stays_where_it_is(old: Path, new: Path) -> None:
    (old / "photo").write_text("mine")
    bring_history(old, new)
    assert (old / "photo").read_text() == "mine"
    assert not (new / "photo").exists()


def test_two_histories_are_refused_and_both_stay(old: Path, new: Path) -> None:
    new.mkdir(parents=True)
    (new / "ledger.db").write_text("newer")
    before = tree(old)
    with pytest.raises(Unfit, match=f"not empty, and {old} holds .*keep one of them aside: mv {old} {new}.before"):
        bring_history(old, new)
    assert tree(old).items() >= {name: before[name] for name in HISTORY}.items()
    assert tree(new) == {"ledger.db": "newer"}


def test_while_it_is_up_there_nothing_is_moved(old: Path, new: Path) -> None:
    held = StateFolder.claim(old)
    with pytest.raises(Conflict, match="already up here"):
        bring_history(old, new)
    held.release()
    assert tree(old).keys() >= HISTORY.keys()
    assert not new.exists()


def test_while_pods_of_it_run_nothing_is_moved(old: Path, new: Path) -> None:
    LocalPods(old).add(PodRecord(pod=Pod(namespace="default", name="work", uid=UID, qos="reclaimed_cores")))
    with pytest.raises(Conflict, match=f"default/work.*end them: SUBLET_STATE_DIR={old} sublet down"):
        bring_history(old, new)
    assert tree(old).keys() >= HISTORY.keys()
    assert not new.exists()
    LocalPods(old).remove(UID)
    assert bring_history(old, new)


@pytest.mark.parametrize("at", ["ledger.db", "nats"])
def test_on_a_full_disk_nothing_is_lost_and_nothing_half_there(
    old: Path, new: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copy2

    def full(source: Path, target: Path, **options: bool) -> None:
        copy(source, target, **options)
        if at in target.parts:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copy2", full)
        with pytest.raises(Unfit, match=r"No space left.*stays where it is; make room"):
            bring_history(old, new)
    assert {name: tree(old)[name] for name in HISTORY} == HISTORY
    assert not new.exists()
    assert sorted(entry.name for entry in new.parent.iterdir()) == []
    assert bring_history(old, new)


def test_a_move_that_was_cut_off_is_made_again(old: Path, new: Path) -> None:
    aside = new.with_name(".sublet.moving")
    aside.mkdir(parents=True)
    (aside / "ledger.db").write_text("half")
    assert bring_history(old, new)
    assert tree(new)["ledger.db"] == HISTORY["ledger.db"]
    assert not aside.exists()


@pytest.mark.parametrize("how", ["no mark", "a link for a mark", "no folder", "no history"])
def test_a_folder_without_our_mark_or_history_is_none_of_ours(old: Path, new: Path, how: str, tmp_path: Path) -> None:
    match how:
        case "no mark":
            (old / MARK).unlink()
        case "a link for a mark":
            (old / MARK).rename(tmp_path / "mark")
            (old / MARK).symlink_to(tmp_path / "mark")
        case "no folder":
            shutil.rmtree(old)
        case _:
            for name in ("ledger.db", "config.yaml", "evictions.paused"):
                (old / name).unlink()
            shutil.rmtree(old / "nats")
    assert bring_history(old, new) == ""
    assert not new.exists()


def test_only_the_folder_of_the_system_takes_it_over(old: Path, new: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_module, "OLD_STATE_DIR", old)
    monkeypatch.setattr(claim_module, "memory_only_words", lambda _folder: "")
    said = list[str]()
    claim_state(new, said.append).release()
    assert said == []
    monkeypatch.setattr(claim_module, "SYSTEM_STATE_DIR", new)
    held = claim_state(new, said.append)
    assert len(said) == 1
    assert tree(new).keys() >= HISTORY.keys()
    held.release()


def test_a_disk_that_is_read_only_is_refused_with_the_next_step(
    old: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aside = new.with_name(".sublet.moving")
    mkdir, unlink = Path.mkdir, Path.unlink

    def refuse(path: Path) -> None:
        if path == aside:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    def read_only_mkdir(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        refuse(path)
        mkdir(path, mode, parents=parents, exist_ok=exist_ok)

    def read_only_unlink(path: Path, missing_ok: bool = False) -> None:
        refuse(path)
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "mkdir", read_only_mkdir)
    monkeypatch.setattr(Path, "unlink", read_only_unlink)
    refusal = f"Read-only file system.*stays where it is; .*SUBLET_STATE_DIR={old} sublet up"
    with pytest.raises(Unfit, match=refusal):
        bring_history(old, new)
    new.parent.mkdir()
    aside.write_text("of a move that was cut off")  # it cannot be removed
    with pytest.raises(Unfit, match=refusal):
        bring_history(old, new)
    assert {name: tree(old)[name] for name in HISTORY} == HISTORY
