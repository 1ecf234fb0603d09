"""Files that a person names on the command line are read here: bounded, as text, with one form of refusal."""

import os
import stat
import sys
from pathlib import Path

from shared.errors import Refused

MAX_GIVEN_BYTES = 16 << 20
STDIN = "-"


def os_words(error: OSError) -> str:
    """What the system said, without its number, with the file: `x.yaml: no such file or directory`."""
    return f"{error.filename}: {os_reason(error)}" if error.filename is not None else os_reason(error)


def os_reason(error: OSError) -> str:
    """What the system said, without its number and the file: `no such file or directory`."""
    said = (error.strerror or type(error).__name__).lower()
    return f"{said}; try it as root" if isinstance(error, PermissionError) and os.geteuid() != 0 else said


def read_given_text(name: str, *, what: str, max_bytes: int = MAX_GIVEN_BYTES) -> str:
    """The text of a file, or of standard input for "-".

    Raises:
        Refused: it is not there, cannot be read, is larger, or is not UTF-8 text.
    """
    title = f"{what} {'standard input' if name == STDIN else printable_name(name)}"
    try:
        data = sys.stdin.buffer.read(max_bytes + 1) if name == STDIN else _read(Path(name), max_bytes)
    except (OSError, ValueError) as error:
        said = os_reason(error) if isinstance(error, OSError) else "no file has such a name"
        raise Refused(f"{title}: {said}", reason="unreadable") from error
    if len(data) > max_bytes:
        raise Refused(f"{title}: larger than {max_bytes} bytes, which is the most that is read", reason="too_large")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refused(
            f"{title}: not UTF-8 text (byte {error.start}); is it another kind of file?", reason="malformed"
        ) from error


def _read(path: Path, max_bytes: int) -> bytes:
    """At most one byte more than the bound; pipes are files too (`-f <(make-pods)`)."""
    with path.open("rb") as file:
        if stat.S_ISBLK(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "a device, not a file", str(path))
        return file.read(max_bytes + 1)


def printable_name(name: str) -> str:
    """A file's name for a message; an empty one would not be seen."""
    return name or "''"
