"""The state folder of `sublet up`: used only if it is ours and closed to others, and emptied only of our own files.

A folder is ours if it carries our mark, which is set if the folder was new or empty, or contained only the files of a
Sublet version without marks.
"""

import contextlib
import fcntl
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from shared.adapters.files.boot import NAME as BOOT
from shared.adapters.files.boot import note_boot, of_earlier_boot
from shared.adapters.files.own_folder import ANOTHER, require_own, require_own_path
from shared.adapters.files.pods import NAME as PODS_OF_A_CLUSTER
from shared.adapters.files.taints import NAME as TAINTS
from shared.adapters.files.taints import TaintFile
from shared.errors import Conflict, Unfit
from sublet.state.files import MARK, PREPARED, WITNESSES, Until, known

# The group may read: `reader_group` gets the bus for its members there. Others see nothing.
MODE = 0o750
_LOCK = "up.lock"
_WORD = (
    "Sublet keeps its state in this folder. When it stops it removes the files that it made, and leaves all others.\n"
)
_SHOWN = 3


class StateFolder:
    """A state folder that this process holds, from `claim` until `release`."""

    rebooted = False
    """Whether the machine has started anew since the folder was last used; what only its boot knew is removed then."""

    def __init__(self, path: Path, before: frozenset[str], lock: IO[str], *, made: bool) -> None:
        self.path, self._before, self._lock, self._made = path, before, lock, made

    @classmethod
    def claim(cls, path: Path) -> "StateFolder":
        """Look at the folder, make it where it is missing, mark it as ours and lock it.

        Of an earlier boot of the machine, what a stop removes is removed now.

        Raises:
            Unfit: it is a link, somebody else's or open to others, holds files that are not ours, or is not writable.
            Conflict: another `sublet up` holds it.
        """
        try:
            require_own_path(path)
            made = not path.exists()
            path.mkdir(MODE, parents=True, exist_ok=True)
            require_own(path)
            before = _names_before(path)
            if MARK not in before:
                _mark(path)
            # Only takes rights away: an operator's tighter mode stays.
            path.chmod(stat.S_IMODE(path.stat().st_mode) & MODE)
            folder = cls(path, before, _locked(path / _LOCK), made=made)
            folder._begin_boot()
            return folder
        except OSError as error:
            raise Unfit(
                f"state folder {path}: {error.strerror} ({error.filename or path}); make room there, or "
                "choose another with SUBLET_STATE_DIR"
            ) from error

    def _begin_boot(self) -> None:
        """Remove what tells of an earlier boot, and note this one.

        Raises:
            OSError: the note cannot be written; the folder is let go.
        """
        try:
            self.rebooted = of_earlier_boot(self.path)
            if self.rebooted:
                remove_state(self.path, forget=False)
                self._before &= frozenset(_names(self.path))
            note_boot(self.path)
        except OSError:
            self.release()
            raise

    def empty(self, *, forget: bool) -> None:
        """Remove what Sublet keeps only while it is up; with `forget` the history too."""
        remove_state(self.path, forget=forget)

    def undo(self) -> None:
        """Remove what was not there when the folder was claimed; the logs stay, they say what went wrong."""
        # By name, not by age: what a start before this one left is not this one's to remove.
        _remove(self.path, (name for name in _names(self.path) if name not in self._before), {Until.STOP})

    def release(self) -> None:
        """Let go; a folder that was made for this run, and holds nothing now, goes too."""
        # While the lock is still held: after it is given up, the file may be the next owner's.
        self._unlink(_LOCK)
        self._lock.close()
        if set(_names(self.path)) <= {MARK, BOOT} and MARK not in self._before:
            self._unlink(MARK)
            self._unlink(BOOT)
            if self._made:
                with contextlib.suppress(OSError):
                    self.path.rmdir()

    def _unlink(self, name: str) -> None:
        with contextlib.suppress(OSError):
            (self.path / name).unlink()


def remove_state(path: Path, *, forget: bool) -> None:
    """Remove our own files that do not outlive a stop, and our own taints; with `forget` the history too."""
    _remove(path, _names(path), _ended(forget))
    if (path / TAINTS).is_file():
        TaintFile(path).remove_ours()


def removed_names(path: Path, *, forget: bool) -> list[str]:
    """The names that `remove_state` would remove."""
    return [name for name, is_folder in _kinds(path, _names(path)) if _goes(name, _ended(forget), is_folder=is_folder)]


def remove_what_was_learned(path: Path) -> None:
    """Remove what goes with an installation on a cluster's node; the history of evictions and pods stays."""
    _remove(path, _names(path), {Until.UNINSTALLED})


def _ended(forget: bool) -> set[Until]:
    return {Until.STOP, Until.FORGOTTEN, Until.UNINSTALLED} if forget else {Until.STOP}


def _goes(name: str, until: set[Until], *, is_folder: bool) -> bool:
    own = known(name)
    # The lock's own file stays until `release`: without it a second start could come in the middle.
    return own is not None and own.until in until and own.folder is is_folder and name != _LOCK


def _names(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []


def _names_before(path: Path) -> frozenset[str]:
    """What lies in the folder.

    Raises:
        Unfit: it carries no mark, and is not empty or holds more than our own files.
    """
    names = frozenset(_names(path))
    if MARK in names:
        # A mark that anybody else could have made proves nothing.
        facts = (path / MARK).lstat()
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid():
            raise Unfit(f"state folder {path}: its mark {MARK} was not made by this user; {ANOTHER}")
        return names
    if PODS_OF_A_CLUSTER in names:
        raise Unfit(
            f"state folder {path}: the agent of a Kubernetes cluster keeps its state there; name another folder for "
            f"this run: SUBLET_STATE_DIR={path}-host"
        )
    foreign = [name for name in sorted(names) if known(name) is None or (path / name).lstat().st_uid != os.geteuid()]
    if foreign or not (names <= PREPARED or names & WITNESSES):
        shown = foreign or sorted(names)
        more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
        raise Unfit(
            f"state folder {path}: it holds {', '.join(shown[:_SHOWN])}{more} and not our mark ({MARK}): a folder that "
            f"Sublet did not make is not used; {ANOTHER}"
        )
    return names


def _mark(path: Path) -> None:
    handle = os.open(path / MARK, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640)
    with os.fdopen(handle, "w") as file:
        file.write(_WORD)


def _locked(path: Path) -> IO[str]:
    """The lock file, held; it holds the process id of its owner.

    Raises:
        Conflict: another process holds it.
        OSError: it cannot be opened.
    """
    held = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o640), "r+")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not path.exists() or not os.path.samestat(os.fstat(held.fileno()), path.lstat()):
            raise BlockingIOError  # its owner has just let go, and somebody may have made the next one already
    except BlockingIOError as error:
        owner = held.read().strip() or "?"
        held.close()
        raise Conflict(
            f"Sublet is already up here (process {owner}, {path}); stop it before starting another"
        ) from error
    # Only once it is locked: until then the process id in it is the owner's, and is told.
    held.truncate(0)
    held.write(str(os.getpid()))
    held.flush()
    return held


def _remove(path: Path, names: Iterable[str], until: set[Until]) -> None:
    """Remove those of the names that are ours, of the kind that we make, and not meant to stay longer."""
    for name, is_folder in _kinds(path, names):
        if not _goes(name, until, is_folder=is_folder):
            continue
        if is_folder:
            shutil.rmtree(path / name, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                (path / name).unlink()


def _kinds(path: Path, names: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Names with whether they are folders; links, sockets and devices are not ours."""
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            mode = (path / name).lstat().st_mode
            if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
                yield name, stat.S_ISDIR(mode)
