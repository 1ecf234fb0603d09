"""The login files of `sublet up`: who can read which, and that another user's is not read."""

import os
import stat
from pathlib import Path

import pytest

from shared.errors import Unfit
from sublet import bus_login
from sublet.bus_login import LOGIN, READER, read_login, write_login, write_reader


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_both_are_their_owners_alone_unless_a_group_is_named(tmp_path: Path) -> None:
    write_login(tmp_path, "node-a", "nats://_sublet:a@h:1")
    write_reader(tmp_path, "node-a", "nats://_reader:b@h:1", None)
    assert modes(tmp_path) == {LOGIN: 0o600, READER: 0o600}
    assert read_login(tmp_path) == {"node": "node-a", "nats_url": "nats://_sublet:a@h:1"}
    (tmp_path / LOGIN).unlink()
    assert read_login(tmp_path)["nats_url"] == "nats://_reader:b@h:1"


def test_a_group_may_reach_and_read_the_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "state"
    folder.mkdir(0o700)
    given = []
    monkeypatch.setattr(os, "chown", lambda path, uid, gid: given.append((Path(path).name, uid, gid)))
    write_login(folder, "node-a", "nats://_sublet:a@h:1")
    write_reader(folder, "node-a", "nats://_reader:b@h:1", "root")
    assert given == [(READER, -1, 0), ("state", -1, 0)]
    assert modes(folder) == {LOGIN: 0o600, READER: 0o640}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o710


def test_a_group_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unfit, match=r"reader_group 'no-such-group'.*groupadd"):
        write_reader(tmp_path, "node-a", "nats://h:1", "no-such-group")


@pytest.mark.parametrize("text", ["", "{", "[]", "5", "[" * 9000, '"x"', '{"node": 5}', "\xff"])
def test_what_cannot_be_read_is_no_login(text: str, tmp_path: Path) -> None:
    (tmp_path / LOGIN).write_text(text, encoding="latin-1")
    assert read_login(tmp_path).get("nats_url") is None


def test_another_users_file_and_a_link_are_no_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_login(tmp_path, "node-a", "nats://h:1")
    owner = (tmp_path / LOGIN).stat().st_uid
    monkeypatch.setattr(bus_login, "TRUSTED", frozenset({owner + 1}))
    assert read_login(tmp_path) == {}
    monkeypatch.undo()
    aside = tmp_path / "aside.json"
    (tmp_path / LOGIN).rename(aside)
    (tmp_path / LOGIN).symlink_to(aside)
    assert read_login(tmp_path) == {}
