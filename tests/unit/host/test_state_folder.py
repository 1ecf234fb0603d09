"""The state folder: taken only where it is ours, emptied of what Sublet made and of nothing else."""

import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.qrm.adapters.checkpoint import file as checkpoint
from services.qrm.adapters.lease import file as lease
from shared.adapters.files import pause as pause_file
from shared.adapters.files import pods as pods_file
from shared.adapters.files import taints as taint_file
from shared.adapters.files.own_folder import require_own
from shared.adapters.ledger import file as ledger_file
from shared.adapters.nats.embedded import server as nats_server
from shared.errors import Conflict, Unfit
from sublet.state.files import MARK, STATE_FILES, Until, known
from sublet.state.folder import StateFolder, remove_state, remove_what_was_learned

SENTENCE = "kept by its owner"
STAYING = ("config.yaml", "ledger.db.broken-1", "ledger.db.broken-12-wal", "checkpoint.json.refused")
GOING = (
    "up.json",
    "cnr.json",
    "checkpoint.json",
    ".checkpoint.json.new",
    ".cnr.json.k3_x9a2b",
    "lease.json",
    "keeper.log",
)
HISTORY = ("ledger.db", "ledger.db-wal", "evictions.paused", "policy-past.json")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state"


def fill(path: Path, *names: str) -> None:
    path.mkdir(exist_ok=True)
    for name in names:
        (path / name).write_text(SENTENCE)


def names(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}


foreign = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    lambda name: name not in (".", "..") and known(name) is None
)


@given(st.sets(foreign, max_size=8), st.booleans())
def test_no_name_that_is_not_ours_is_ever_removed(others: set[str], forget: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        for name in others:
            (path / os.fsencode(name).decode(errors="surrogateescape")).write_text(SENTENCE)
        fill(path, *GOING)
        remove_state(path, forget=forget)
        assert names(path) == others


@pytest.mark.parametrize("forget", [False, True])
def test_what_an_operator_wrote_or_should_see_stays(path: Path, forget: bool) -> None:
    fill(path, *STAYING, *GOING, *HISTORY)
    remove_state(path, forget=forget)
    assert names(path) == {*STAYING, *(() if forget else HISTORY)}


def test_with_an_installation_goes_what_it_learned_of_the_nodes_tenants_and_nothing_else(path: Path) -> None:
    fill(path, *STAYING, *GOING, *HISTORY)
    remove_what_was_learned(path)
    assert names(path) == {*STAYING, *GOING, *HISTORY} - {"policy-past.json"}


def test_a_name_of_ours_that_is_a_link_or_of_another_kind_is_left_alone(path: Path, tmp_path: Path) -> None:
    fill(path)
    fill(tmp_path / "precious", "photo")
    (path / "pods").symlink_to(tmp_path / "precious")
    (path / "cnr.json").symlink_to(tmp_path / "precious/photo")
    (path / "up.json").mkdir()
    (path / "simhost").write_text(SENTENCE)
    remove_state(path, forget=True)
    assert names(path) == {"pods", "cnr.json", "up.json", "simhost"}
    assert (tmp_path / "precious/photo").read_text() == SENTENCE


def test_others_taints_stay_and_ours_go(path: Path) -> None:
    path.mkdir()
    ours = {"key": "node.katalyst.kubewharf.io/MemoryPressure", "effect": "NoSchedule"}
    others = {"key": "site.example/maintenance", "effect": "NoSchedule", "note": "till Monday"}
    file = path / "taints.json"
    file.write_text(f'{{"taints": [{_json(ours)}, {_json(others)}]}}')
    remove_state(path, forget=True)
    assert "till Monday" in file.read_text()
    assert "MemoryPressure" not in file.read_text()
    file.write_text(f'{{"taints": [{_json(ours)}]}}')
    remove_state(path, forget=False)
    assert not file.exists()
    file.write_text("not JSON, yet somebody's")
    remove_state(path, forget=False)
    assert file.exists()


def _json(document: dict[str, str]) -> str:
    import json

    return json.dumps(document)


def test_every_name_that_the_owners_use_is_on_the_list() -> None:
    used = {pause_file.NAME, pods_file.NAME, taint_file.NAME, checkpoint.FILE, lease.FILE, lease.LOCK, lease.FIRED}
    assert {name for name in used if known(name) is None} == set()
    assert known(ledger_file.__name__) is None
    assert known(nats_server.CONFIG) is None  # below nats/, not beside it
    assert all(one.owner for one in STATE_FILES)


def test_what_plugins_keep_goes_with_the_run(path: Path) -> None:
    fill(path)
    (path / "plugins/mine").mkdir(parents=True)
    remove_state(path, forget=False)
    assert names(path) == set()


@pytest.mark.parametrize("there", [False, True], ids=["new", "empty"])
def test_a_new_or_empty_folder_is_marked_and_closed_to_others(path: Path, there: bool) -> None:
    if there:
        path.mkdir(mode=0o755)
    folder = StateFolder.claim(path)
    assert names(path) == {MARK, "up.lock", "boot"}
    assert path.stat().st_mode & 0o777 == 0o750
    folder.release()
    assert path.exists() is there
    assert not there or names(path) == set()


@pytest.mark.parametrize("there", ["photos", "config.yaml.bak", ".bashrc", "logs", "nats"])
def test_a_folder_that_is_not_ours_is_refused_and_untouched(path: Path, there: str) -> None:
    fill(path, "config.yaml")
    (path / there).mkdir()
    with pytest.raises(Unfit, match=f"{re.escape(MARK)}.*take an empty folder"):
        StateFolder.claim(path)
    assert names(path) == {"config.yaml", there}


@pytest.mark.parametrize(
    "there",
    [
        ("ledger.db", "ledger.db-wal", "evictions.paused"),
        ("up.json", "up.lock", "cnr.json"),
        ("config.yaml",),
        ("taints.json",),
    ],
    ids=["stopped", "crashed", "configured before", "tainted before"],
)
def test_the_folder_of_a_sublet_that_made_no_marks_is_taken_over(path: Path, there: tuple[str, ...]) -> None:
    fill(path, *there)
    folder = StateFolder.claim(path)
    assert MARK in names(path)
    folder.release()
    assert {*there} - {"up.lock"} <= names(path)


def test_a_start_that_failed_removes_what_it_made_and_keeps_what_says_why(path: Path) -> None:
    fill(path, MARK, "checkpoint.json", "config.yaml", "photo")
    folder = StateFolder.claim(path)
    fill(path, "up.json", "cnr.json", "checkpoint.json")
    (path / "logs").mkdir()
    folder.undo()
    folder.release()
    assert names(path) == {MARK, "checkpoint.json", "config.yaml", "photo", "logs"}


def test_it_is_held_by_one_at_a_time(path: Path) -> None:
    folder = StateFolder.claim(path)
    with pytest.raises(Conflict, match=f"already up here .process {os.getpid()}"):
        StateFolder.claim(path)
    folder.release()
    StateFolder.claim(path).release()


def test_a_link_in_its_place_is_refused(path: Path, tmp_path: Path) -> None:
    fill(tmp_path / "real")
    path.symlink_to(tmp_path / "real")
    with pytest.raises(Unfit, match="it is a link to"):
        StateFolder.claim(path)
    assert names(tmp_path / "real") == set()


@pytest.mark.parametrize("mode", [0o770, 0o757, 0o1777])
def test_a_folder_that_others_may_write_is_refused(path: Path, mode: int) -> None:
    path.mkdir()
    path.chmod(mode)
    with pytest.raises(Unfit, match=f"others may write there .mode {mode:04o}.*chmod go-w"):
        StateFolder.claim(path)
    assert names(path) == set()


def test_a_folder_whose_place_everybody_may_exchange_is_refused(tmp_path: Path) -> None:
    above = tmp_path / "open"
    above.mkdir()
    above.chmod(0o777)
    with pytest.raises(Unfit, match="everybody may write in"):
        StateFolder.claim(above / "state")
    above.chmod(0o1777)  # as /tmp: what lies there is its owner's alone
    StateFolder.claim(above / "state").release()


def test_links_where_a_file_is_opened_are_not_followed(path: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text(SENTENCE)
    fill(path, MARK)
    (path / "up.lock").symlink_to(precious)
    with pytest.raises(Unfit, match="symbolic links"):
        StateFolder.claim(path)
    assert precious.read_text() == SENTENCE


def test_a_folder_that_cannot_be_made_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unfit, match="choose another with SUBLET_STATE_DIR"):
        StateFolder.claim(tmp_path / "file/state")
    with pytest.raises(Unfit, match="it is no folder"):
        require_own(tmp_path / "file")


def test_numbers_and_files_written_aside_are_known_by_their_pattern() -> None:
    assert known("ledger.db.broken-3") is not None
    assert known(".up.json") == known(".up.json")
    assert (one := known(".taints.json.ab_d3f4x")) is not None
    assert one.until is Until.STOP
    for name in (
        "ledger.db.broken-",
        "ledger.db.broken-x",
        ".nats.new",
        ".config",
        "up.json~",
        "Up.json",
        ".cnr.json.swp",
    ):
        assert known(name) is None, name
