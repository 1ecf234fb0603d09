"""A file that is replaced as a whole: a reader sees the last text or the new one, never half of one."""

import os
import tempfile
from pathlib import Path

from shared.errors import Unavailable

MODE = 0o640
"""The owner's to write, the group's to read: labels, annotations and addresses are nobody else's matter."""


def replace_file(path: Path, text: bytes, *, what: str, mode: int = MODE) -> None:
    """Write a text under a name; the folder is made where it is missing.

    Raises:
        Unavailable: it cannot be written; the last text stays.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, text, mode)
    except OSError as error:
        raise Unavailable(
            f"{what} {path}: cannot be written ({error.strerror}); the last one stays", reason="write"
        ) from error


def _replace(path: Path, text: bytes, mode: int) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text)
        fresh.chmod(mode)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
