"""`bring_history` moves what an earlier version kept in memory to a folder on disk, all of it or nothing."""

import contextlib
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from shared.adapters.files.boot import NAME as BOOT
from shared.adapters.files.own_folder import require_own, require_own_path
from shared.adapters.local.pods import LocalPods
from shared.errors import Conflict, Unfit
from sublet.state.files import MARK, Until, known
from sublet.state.folder import MODE, StateFolder, remove_state

OLD_STATE_DIR = Path("/run/sublet")
"""Where versions before the first release kept the state of root: in memory, which a reboot clears."""
_SHOWN = 3


def bring_history(old: Path, new: Path) -> str:
    """Move the history, and what an operator wrote, from one state folder to another that is not there yet or empty.

    Returns what was done, in words; empty where there was nothing to move.

    Raises:
        Conflict: a Sublet is up in the old folder, or pods of it still run.
        Unfit: the new folder holds something, is not ours, or has no room; the old one stays as it was.
    """
    if not _history(old):
        return ""
    held = StateFolder.claim(old)
    try:
        names = _history(old)
        _require_movable(old, new, names)
        _copy(old, new, names)
        for name in names:
            _discard(old / name)
        remove_state(old, forget=True)
    finally:
        held.release()
    _remove_emptied(old)
    return f"the history of an earlier version was moved from {old}, which a reboot clears, to {new}"


def _history(folder: Path) -> list[str]:
    """What a stop leaves in a folder with our mark; nothing in any other folder."""
    try:
        if not stat.S_ISREG((mark := (folder / MARK).lstat()).st_mode) or mark.st_uid != os.geteuid():
            return []
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []
    return [name for name in names if name != MARK and (own := known(name)) is not None and own.until is not Until.STOP]


def _require_movable(old: Path, new: Path, names: Sequence[str]) -> None:
    # A pod's watcher writes into the folder that it was started with: under it the pod would end unseen.
    if running := [pod.key for pod in LocalPods(old).pods()]:
        raise Conflict(
            f"state folder {old}: pods of an earlier version have not ended ({_few(running)}), and their state cannot "
            f"be moved to {new} meanwhile; end them: SUBLET_STATE_DIR={old} sublet down; or go on with them there: "
            f"SUBLET_STATE_DIR={old} sublet up"
        )
    require_own(new)
    if new.exists() and any(new.iterdir()):
        raise Unfit(
            f"state folder {new}: it is not empty, and {old} holds the history of an earlier version ({_few(names)}); "
            f"keep one of them aside: mv {old} {new}.before"
        )


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _copy(old: Path, new: Path, names: Sequence[str]) -> None:
    """Copy aside, on the disk to the last byte, and only then under the name that counts."""
    aside = new.with_name(f".{new.name}.moving")
    try:
        require_own_path(aside)
        _discard(aside)  # of a move that was cut off
        aside.mkdir(MODE, parents=True)
        for name in (MARK, *names):
            _copy_synced(old / name, aside / name)
        _sync(aside)
        aside.rename(new)
        _sync(new.parent)
    except OSError as error:
        with contextlib.suppress(OSError):  # why it failed is what counts
            _discard(aside)
        raise Unfit(
            f"state folder {new}: the history in {old} cannot be moved there ({error.strerror or error}), and stays "
            f"where it is; make room, or go on there: SUBLET_STATE_DIR={old} sublet up"
        ) from error


def _copy_synced(source: Path, target: Path) -> None:
    """A file or a folder with all that is in it; links stay links, and sockets are left out."""
    mode = source.lstat().st_mode
    if stat.S_ISDIR(mode):
        target.mkdir(stat.S_IMODE(mode))
        for entry in sorted(source.iterdir()):
            _copy_synced(entry, target / entry.name)
        _sync(target)
    elif stat.S_ISLNK(mode):
        target.symlink_to(source.readlink())
    elif stat.S_ISREG(mode):
        shutil.copy2(source, target, follow_symlinks=False)
        _sync(target)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _discard(path: Path) -> None:
    if not os.path.lexists(path):  # a disk that is read-only refuses to remove also what is not there
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _remove_emptied(old: Path) -> None:
    """Remove the folder where nothing is left in it but our mark; what is not ours stays."""
    if {entry.name for entry in old.iterdir()} <= {MARK, BOOT}:
        shutil.rmtree(old, ignore_errors=True)
