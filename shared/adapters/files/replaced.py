"""A file is replaced as a whole: a reader, or a crash, sees the last text or the new one, never half of one."""

import os
from pathlib import Path

from shared.errors import Unavailable

MODE = 0o640
"""The owner's to write, the group's to read: pods' labels, annotations and addresses are not for others."""
_PRIVATE = 0o600
"""Until it is whole."""


def replace_file(path: Path, text: bytes, *, what: str, mode: int = MODE) -> None:
    """Write a text under a name atomically; create the folder if necessary.

    Raises:
        Unavailable: it cannot be written; the last text stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text, mode=mode)
    except OSError as error:
        raise Unavailable(
            f"{what} {path}: cannot be written ({error.strerror}); the last one stays", reason="write"
        ) from error


def write_whole(path: Path, text: bytes, *, mode: int = MODE, durable: bool = False) -> None:
    """Write a text under a name in a folder that exists; with `durable` it outlives a power cut from then on.

    Raises:
        OSError: it cannot be written; the last text stays.
    """
    # An unpredictable name, created now or not at all: an existing link or file belongs to another process.
    fresh = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE)
    try:
        with os.fdopen(handle, "wb") as file:
            # By descriptor and after the umask, so the mode is the requested one, whatever the process's umask removes.
            os.fchmod(handle, mode)
            file.write(text)
            file.flush()
            if durable:
                os.fsync(handle)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    # The new name is an entry of the folder: without this a power cut may bring the old file back.
    if durable:
        _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    """Put the renaming itself on the disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
