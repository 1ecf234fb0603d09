"""A folder is trusted only if no other user could have prepared it or could change it."""

import contextlib
import os
import stat
from pathlib import Path

from shared.errors import Unfit

ANOTHER = "take an empty folder, or one that does not exist yet: SUBLET_STATE_DIR=/var/lib/sublet"


def require_own(path: Path) -> None:
    """Refuse a folder that another user could have prepared or could change, because its contents act with this
    user's rights.

    A missing folder is accepted if no other user can create it.

    Raises:
        Unfit: it is a link or no folder, belongs to another user, or its group or everyone may write to it.
        OSError: it cannot be accessed.
    """
    require_own_path(path)
    if not path.exists():
        return
    facts = path.lstat()
    if not stat.S_ISDIR(facts.st_mode):
        raise Unfit(f"state folder {path}: it is no folder; {ANOTHER}")
    # Also for root: a folder of another user holds what that user has put there, and it would be run as root.
    if facts.st_uid != os.geteuid():
        raise Unfit(
            f"state folder {path}: it belongs to user {facts.st_uid}, and this is user {os.geteuid()}; {ANOTHER}"
        )
    if stat.S_IMODE(facts.st_mode) & 0o022:
        raise Unfit(
            f"state folder {path}: others may write there (mode {stat.S_IMODE(facts.st_mode):04o}), so what it holds "
            f"may not be ours; look at it, then: chmod go-w {path}"
        )


def require_own_path(path: Path) -> None:
    """Refuse a path on which another user could replace a folder.

    Raises:
        Unfit: it is a link, or a folder above it belongs to another user, or everyone may rename its contents.
        OSError: it cannot be accessed.
    """
    path = path.absolute()
    if path.is_symlink():
        raise Unfit(f"state folder {path}: it is a link to {path.readlink()}; name that folder itself, if it is yours")
    # The path as written and as links resolve it, because either of them could be exchanged.
    for above in {*path.parents, *path.parent.resolve().parents, path.parent.resolve()}:
        with contextlib.suppress(FileNotFoundError):
            _require_unmovable(path, above)


def _require_unmovable(path: Path, above: Path) -> None:
    facts = above.lstat()
    if facts.st_uid not in (0, os.geteuid()):
        raise Unfit(f"state folder {path}: {above} belongs to user {facts.st_uid}, who may exchange it; {ANOTHER}")
    # The sticky bit, as on /tmp: everyone may write, and no one may rename what belongs to others.
    if stat.S_ISDIR(facts.st_mode) and facts.st_mode & 0o002 and not facts.st_mode & stat.S_ISVTX:
        raise Unfit(f"state folder {path}: everybody may write in {above} and exchange it; {ANOTHER}")
