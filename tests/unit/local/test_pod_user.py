"""As whom a pod runs: who asked for it, what he gets of the environment, and what is no user at all."""

import grp
import os
import pwd
from types import SimpleNamespace

import pytest
from present import present

from shared.adapters.local.pod_user import PATH, PodUser, asked_user, this_user
from shared.errors import Refused

ALICE = SimpleNamespace(pw_name="alice", pw_uid=1000, pw_gid=1001, pw_dir="/home/alice", pw_shell="/bin/bash")
ROOTS = {"HOME": "/root", "USER": "root", "AWS_SECRET": "s3cret", "PATH": "/opt/own/bin", "SUDO_UID": "1000",
         "TERM": "xterm", "LC_ALL": "C", "PYTHONPATH": "/tmp/evil"}  # fmt: skip


@pytest.fixture(autouse=True)
def a_host_with_alice(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_name(name: str) -> object:
        if name != "alice":
            raise KeyError(name)
        return ALICE

    def by_number(uid: int) -> object:
        if uid != 1000:
            raise KeyError(uid)
        return ALICE

    def group(name: str) -> object:
        if name != "batch":
            raise KeyError(name)
        return SimpleNamespace(gr_gid=77)

    monkeypatch.setattr(pwd, "getpwnam", by_name)
    monkeypatch.setattr(pwd, "getpwuid", by_number)
    monkeypatch.setattr(grp, "getgrnam", group)
    monkeypatch.setattr(os, "getgrouplist", lambda _name, gid: [gid, 77])
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("alice", (1000, 1001, (1001, 77))),
        ("1000", (1000, 1001, (1001, 77))),
        ("alice:batch", (1000, 77, (77,))),
        ("alice:5", (1000, 5, (5,))),
        ("4711:5", (4711, 5, (5,))),
    ],
)
def test_a_user_may_be_named_or_numbered_with_or_without_a_group(text: str, ids: tuple[object, ...]) -> None:
    user = asked_user(text, ROOTS)
    assert (user.uid, user.gid, user.groups) == ids


@pytest.mark.parametrize(
    "text",
    ["bob", "4711", "alice:", "alice:nogroup", ":5", "-1:5", "4294967295:5", "99999999999:5", "0x1:5", "²:5", "a\0b"],
)
def test_what_is_no_user_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(Refused, match="--user"):
        asked_user(text, {})


def test_who_called_sudo_is_who_asked() -> None:
    user = asked_user("", {"SUDO_UID": "1000", "SUDO_GID": "1001"})
    assert (user.uid, user.gid, user.groups, user.name) == (1000, 1001, (1001, 77), "alice")
    assert asked_user("0:0", {"SUDO_UID": "1000", "SUDO_GID": "1001"}).uid == 0


@pytest.mark.parametrize("env", [{"SUDO_UID": ""}, {"SUDO_UID": "alice", "SUDO_GID": "5"}, {"SUDO_UID": "1000"}])
def test_a_sudo_that_does_not_say_who_is_refused_rather_than_root(env: dict[str, str]) -> None:
    with pytest.raises(Refused, match="--user NAME"):
        asked_user("", env)


def test_without_sudo_it_is_the_caller_with_the_callers_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    user = asked_user("", {})
    assert (user, user.uid) == (this_user(), 0)
    assert user.environment(ROOTS) is None


def test_another_user_gets_nothing_of_roots_environment_but_the_terminal_and_language() -> None:
    assert asked_user("alice", ROOTS).environment(ROOTS) == {
        "HOME": "/home/alice", "USER": "alice", "LOGNAME": "alice", "SHELL": "/bin/bash", "PATH": PATH,
        "TERM": "xterm", "LC_ALL": "C",
    }  # fmt: skip
    assert present(PodUser(4711, 5, (5,), "4711", "/").environment({}))["HOME"] == "/"


def test_the_parts_that_are_replaced_here_exist() -> None:
    assert {"pw_name", "pw_uid", "pw_gid", "pw_dir", "pw_shell"} <= set(dir(pwd.struct_passwd))
    assert os.geteuid() == 0  # as replaced
