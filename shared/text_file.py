"""The only reader of files that a user names in settings or on the command line: bounded, as text, with uniform
errors."""

import os
import stat
from pathlib import Path

from shared.core.text.yaml_text import YamlDocument, read_yaml
from shared.errors import Refused

MAX_FILE_BYTES = 1 << 20


def read_text(name: str | Path, *, what: str, max_bytes: int = MAX_FILE_BYTES) -> str:
    """Return the text of a file, a pipe or a terminal; `what` describes it in the error.

    Raises:
        Refused: `unreadable`, it is missing or cannot be read; `too_large`; `malformed`, it is not UTF-8.
    """
    # An empty name would not be seen in a message.
    title = f"{what} {str(name) or repr(name)}"
    try:
        data = _read(Path(name), max_bytes)
    except OSError as error:
        raise Refused(f"{title}: {os_reason(error)}", reason="unreadable") from error
    except ValueError as error:  # a zero byte in the name
        raise Refused(f"{title}: no file has such a name", reason="unreadable") from error
    return decoded(data, title=title, max_bytes=max_bytes)


def _read(path: Path, max_bytes: int) -> bytes:
    """At most one byte more than the bound; pipes are files too (`-f <(make-pods)`)."""
    with path.open("rb") as file:
        if stat.S_ISBLK(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "a device, not a file", str(path))
        return file.read(max_bytes + 1)


def decoded(data: bytes, *, title: str, max_bytes: int = MAX_FILE_BYTES) -> str:
    """Bytes that were read, as text.

    Raises:
        Refused: `too_large`, more than that; `malformed`, no UTF-8.
    """
    if len(data) > max_bytes:
        raise Refused(f"{title}: larger than {max_bytes} bytes, which is the most that is read", reason="too_large")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refused(
            f"{title}: not UTF-8 text (byte {error.start}); is it another kind of file?", reason="malformed"
        ) from error


def os_reason(error: OSError) -> str:
    """Return the system's message, without its number and the file: `no such file or directory`."""
    said = (error.strerror or type(error).__name__).lower()
    return f"{said}; try it as root" if isinstance(error, PermissionError) and os.geteuid() != 0 else said


def read_yaml_file(path: Path, *, what: str, max_bytes: int = MAX_FILE_BYTES) -> YamlDocument:
    """The one document of a file.

    Raises:
        Refused: as `read_text` and `shared.core.text.yaml_text.read_yaml`.
    """
    return read_yaml(read_text(path, what=what, max_bytes=max_bytes), what=f"{what} {path}", max_bytes=max_bytes)
