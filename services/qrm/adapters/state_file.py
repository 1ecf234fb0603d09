"""A small state file is replaced as a whole: a reader, or a crash, sees the old text or the new one."""

import os
from pathlib import Path

MODE = 0o640


def replace_file(path: Path, text: str, *, durable: bool = True) -> None:
    """Write a file atomically: new file, rename; with `durable` also through to the disk before and after.

    Raises:
        OSError: it could not be written; the old one stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(fresh, flags, MODE), "w") as file:
        os.fchmod(file.fileno(), MODE)
        file.write(text)
        file.flush()
        if durable:
            os.fsync(file.fileno())
    fresh.replace(path)
    if not durable:
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
