"""The logins of a `sublet up` at its bus, in files of its state folder: the right to read a file is the right of its
login.

`login.json` is the services' login, with every right, only for the user who runs Sublet. `reader.json` is for readers:
`status`, `top`, `explain` and `events`. A group can be allowed to read it (`reader_group`).
"""

import grp
import json
import os
from collections.abc import Mapping
from pathlib import Path

from shared.adapters.files.replaced import replace_file
from shared.errors import Unfit

LOGIN, READER = "login.json", "reader.json"
MAX_FILE_BYTES = 16 << 10
TRUSTED = frozenset({0, os.geteuid()})


def write_login(folder: Path, node: str, url: str) -> None:
    """Keep the services' login, for the owner alone.

    Raises:
        Unavailable: the file cannot be written.
    """
    _write(folder / LOGIN, node, url)


def write_reader(folder: Path, node: str, url: str, group: str | None) -> None:
    """Keep the reader's login, for the owner, and where a group is named for its members.

    Raises:
        Unavailable: the file cannot be written.
        Unfit: there is no such group, or this user may not give it a file.
    """
    _write(folder / READER, node, url)
    if group is None:
        return
    try:
        number = grp.getgrnam(group).gr_gid
        for path, more in ((folder / READER, 0o040), (folder, 0o010)):
            os.chown(path, -1, number)
            path.chmod(path.stat().st_mode & 0o7777 | more)
    except KeyError:
        raise Unfit(f"reader_group {group!r}: there is no such group here; make it: groupadd {group}") from None
    except OSError as error:
        raise Unfit(f"reader_group {group!r}: {error.filename}: {error.strerror}") from error


def read_login(folder: Path) -> Mapping[str, str]:
    """Node and address of the login that this user may read in a state folder; empty where there is none."""
    return _read(folder / LOGIN) or _read(folder / READER)


def _write(path: Path, node: str, url: str) -> None:
    replace_file(path, json.dumps({"node": node, "nats_url": url}).encode(), what="login", mode=0o600)


def _read(path: Path) -> Mapping[str, str]:
    return {key: str(value) for key, value in read_own_json(path).items() if key in ("node", "nats_url")}


def read_own_json(path: Path) -> Mapping[str, object]:
    """A mapping in a file that this user or root wrote; empty where there is none that can be read.

    Anybody else's file is none of ours, whatever it says.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if os.fstat(handle).st_uid not in TRUSTED:
                return {}
            found = json.loads(file.read(MAX_FILE_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
