"""Which Sublet of the machine a command means, and what a user is told who may not touch it."""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from present import present

from shared.errors import Unavailable, Unfit
from shared.settings import CommonSettings
from sublet import ask, instance
from sublet.instance import (
    RECORD,
    Instance,
    advertise,
    running_instance,
    started_ticks,
    this_instance,
    withdraw,
    writable_settings,
)


def of(state_dir: Path, pid: int | None = None, node: str = "vm") -> Instance:
    pid = os.getpid() if pid is None else pid
    return Instance(str(state_dir), pid, started_ticks(pid), node, "host", "127.0.0.1:4222", "0.1.0")


def put(folder: Path, found: Instance) -> None:
    folder.mkdir(exist_ok=True)
    (folder / RECORD).write_text(json.dumps(asdict(found)))


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the settings of this user lead to; nothing is set by hand."""
    folder = tmp_path / "home"
    for name in [name for name in os.environ if name.startswith("SUBLET_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(instance, "common_settings", lambda _raw: CommonSettings(node="mine", state_dir=folder))
    monkeypatch.setattr(ask, "common_settings", lambda _raw: CommonSettings(node="mine", state_dir=folder))
    monkeypatch.setattr(ask, "SYSTEM_STATE_DIR", tmp_path / "none")
    instance._note.cache_clear()
    return folder


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Root's Sublet in its own folder, as every user sees it."""
    file, folder = tmp_path / "sublet.json", tmp_path / "root"
    advertise(of(folder), file)
    monkeypatch.setattr(instance, "SYSTEM_FILE", file)
    return folder


@pytest.fixture
def as_user(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    def become() -> None:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        monkeypatch.setattr("sys.argv", ["sublet", "pause", "-r", "all is\x1b[2J lost"])

    return become


def test_everybody_may_read_where_it_is_found_and_it_holds_no_secret(tmp_path: Path) -> None:
    file = tmp_path / "sublet.json"
    advertise(of(tmp_path), file)
    assert file.stat().st_mode & 0o777 == 0o644
    assert running_instance(file) == of(tmp_path)
    withdraw(1, file)
    assert file.exists()
    withdraw(os.getpid(), file)
    assert not file.exists()


def test_one_whose_process_has_ended_runs_no_more(tmp_path: Path) -> None:
    child = subprocess.Popen(["/bin/true"])
    found = of(tmp_path, child.pid)
    child.wait()
    put(tmp_path, found)
    assert running_instance(tmp_path / RECORD) is None


def test_a_later_process_with_the_same_number_is_another(tmp_path: Path) -> None:
    put(tmp_path, replace(of(tmp_path), started_ticks=of(tmp_path).started_ticks - 1))
    assert running_instance(tmp_path / RECORD) is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "5", "{}", '{"pid": "1"}', '{"pid": true}', '{"pid": -1}', '{"pid": 1e3}',
     '{"pid": 1, "started_ticks": "x"}', '{"pid": 99999999999999999999}', "[" * 9000, "\xff", '{"pid": 0}'],
)  # fmt: skip
def test_what_cannot_be_read_tells_of_no_instance(tmp_path: Path, text: str) -> None:
    (tmp_path / RECORD).write_text(text, encoding="latin-1")
    assert running_instance(tmp_path / RECORD) is None


def test_a_stranger_tells_of_no_instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, of(tmp_path))
    monkeypatch.setattr("sublet.bus_login.TRUSTED", frozenset({os.geteuid() + 1}))
    assert running_instance(tmp_path / RECORD) is None


def test_roots_is_found_by_who_has_none_of_his_own(own: Path, system: Path) -> None:
    meant = this_instance()
    assert (meant.state_dir, present(meant.running).node) == (system, "vm")


def test_ones_own_goes_first_and_that_is_said(own: Path, system: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(own, of(own, node="laptop"))
    assert this_instance().state_dir == own
    said = capsys.readouterr().err
    assert "this is your own Sublet (host node laptop" in said
    assert f"another runs here (host node vm, process {os.getpid()}, state folder {system})" in said
    assert this_instance().state_dir == own
    assert capsys.readouterr().err == "", "it is said once"


def test_a_state_folder_that_is_named_is_meant_whatever_else_runs(
    own: Path, system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBLET_STATE_DIR", str(own))
    meant = this_instance()
    assert (meant.state_dir, meant.running, meant.foreign) == (own, None, False)


def test_a_user_is_refused_at_roots_files_with_the_next_step(
    own: Path, system: Path, as_user: Callable[[], None]
) -> None:
    as_user()
    with pytest.raises(
        Unfit, match=r"state folder .*/root\), and you are not: sudo sublet pause -r 'all is\\x1b\[2J lost'"
    ):
        writable_settings()
    assert not own.exists()


def test_a_user_without_a_login_is_told_whose_bus_it_is(own: Path, system: Path, as_user: Callable[[], None]) -> None:
    as_user()
    with pytest.raises(Unavailable, match=r"you may not read its bus: sudo sublet pause .*reader_group"):
        ask.target()


def test_root_works_in_the_folder_that_root_chose_for_it(
    own: Path, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert writable_settings().state_dir == system
