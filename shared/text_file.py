"""Files that a person names: read as text, bounded, and whatever is wrong is one error in plain words."""

from pathlib import Path

from shared.core.text.yaml_text import YamlDocument, read_yaml
from shared.errors import Refused

MAX_FILE_BYTES = 1 << 20


def read_text(path: Path, *, what: str, max_bytes: int = MAX_FILE_BYTES) -> str:
    """The text of a file, a pipe or a terminal; `what` says in the error what it was to be.

    Raises:
        Refused: `unreadable`, it cannot be opened or is no UTF-8; `too_large`.
    """
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        why = getattr(error, "strerror", None) or "no name of a file"
        raise Refused(f"{what} {path}: {why}", reason="unreadable") from None
    return decoded(content, what=f"{what} {path}", max_bytes=max_bytes)


def decoded(content: bytes, *, what: str, max_bytes: int = MAX_FILE_BYTES) -> str:
    """Bytes as text.

    Raises:
        Refused: more than that, or no UTF-8.
    """
    if len(content) > max_bytes:
        raise Refused(f"{what}: more than {max_bytes} bytes, at most so many are read", reason="too_large")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{what}: byte {error.start} is no UTF-8; want a text file", reason="unreadable") from None


def read_yaml_file(path: Path, *, what: str, max_bytes: int = MAX_FILE_BYTES) -> YamlDocument:
    """The one document of a file.

    Raises:
        Refused: as `read_text` and `shared.core.text.yaml_text.read_yaml`.
    """
    return read_yaml(read_text(path, what=what, max_bytes=max_bytes), what=f"{what} {path}", max_bytes=max_bytes)
