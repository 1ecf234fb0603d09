"""A pod runs as the user who asked for it, not as the root that starting it takes."""

import grp
import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass

from shared.errors import Refused

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Of the caller's variables, those about terminal and language, and nothing that root has.
_PASSED_ON = ("TERM", "COLORTERM", "LANG", "LANGUAGE", "TZ")
_LARGEST_ID = (1 << 32) - 2  # the one above means "no change" to the kernel


@dataclass(frozen=True, slots=True)
class PodUser:
    """A user of this host with the groups that he has; `name` and `home` are for the environment."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str
    home: str
    shell: str = "/bin/sh"

    def environment(self, callers: Mapping[str, str]) -> dict[str, str] | None:
        """Return the environment that the user's pods inherit; None for the caller's whole environment, if the
        caller is that user."""
        if self.uid == os.geteuid():
            return None
        passed_on = {name: callers[name] for name in callers if name in _PASSED_ON or name.startswith("LC_")}
        own = {"HOME": self.home, "USER": self.name, "LOGNAME": self.name, "SHELL": self.shell, "PATH": PATH}
        return {**passed_on, **own}


def asked_user(text: str, env: Mapping[str, str]) -> PodUser:
    """Return the user of `--user NAME|UID[:GROUP|:GID]`; without it the user who called sudo, otherwise the caller.

    Raises:
        Refused: no such user or group, or a number without a group of its own.
    """
    if text:
        return _named(text)
    if os.geteuid() == 0 and "SUDO_UID" in env:
        return _of_sudo(env["SUDO_UID"], env.get("SUDO_GID", ""))
    return this_user()


def this_user() -> PodUser:
    """The caller himself, with the groups that he has now."""
    uid = os.geteuid()
    entry = _entry(uid)
    return _user(uid, os.getegid(), tuple(os.getgroups()), entry)


def _of_sudo(uid_text: str, gid_text: str) -> PodUser:
    uid, gid = _number(uid_text), _number(gid_text)
    if uid is None or gid is None:
        raise Refused(
            f"SUDO_UID={uid_text!r} with SUDO_GID={gid_text!r} is no user; say who runs the pod: --user NAME",
            reason="user",
        )
    entry = _entry(uid)
    return _user(uid, gid, _groups(entry, gid), entry)


def _named(text: str) -> PodUser:
    who, colon, group = text.partition(":")
    number = _number(who)
    entry = _entry(number if number is not None else who)
    if entry is None and number is None:
        raise Refused(f"--user {text!r}: this host has no user {who!r}; want NAME or UID, or UID:GID", reason="user")
    if colon:
        gid = _gid(text, group)
        return _user(number if entry is None else entry.pw_uid, gid, (gid,), entry)  # type: ignore[arg-type]
    if entry is None:
        raise Refused(f"--user {text!r}: this host knows no such user, so say the group too: {who}:GID", reason="user")
    return _user(entry.pw_uid, entry.pw_gid, _groups(entry, entry.pw_gid), entry)


def _gid(text: str, group: str) -> int:
    number = _number(group)
    if number is not None:
        return number
    try:
        return grp.getgrnam(group).gr_gid
    except (KeyError, ValueError):
        raise Refused(
            f"--user {text!r}: this host has no group {group!r}; want its name or GID", reason="user"
        ) from None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and int(text[:11]) <= _LARGEST_ID else None


def _entry(who: int | str) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(who) if isinstance(who, int) else pwd.getpwnam(who)
    except (KeyError, ValueError):
        return None


def _groups(entry: pwd.struct_passwd | None, gid: int) -> tuple[int, ...]:
    return tuple(os.getgrouplist(entry.pw_name, gid)) if entry is not None else (gid,)


def _user(uid: int, gid: int, groups: tuple[int, ...], entry: pwd.struct_passwd | None) -> PodUser:
    if entry is None:
        return PodUser(uid, gid, groups, str(uid), "/")
    return PodUser(uid, gid, groups, entry.pw_name, entry.pw_dir or "/", entry.pw_shell or "/bin/sh")
