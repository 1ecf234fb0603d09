"""Files that a user names on the command line, where "-" is standard input; `shared.text_file` reads them."""

import sys

from shared.errors import Refused
from shared.text_file import decoded, os_reason, read_text

MAX_GIVEN_BYTES = 16 << 20
STDIN = "-"


def read_given_text(name: str, *, what: str, max_bytes: int = MAX_GIVEN_BYTES) -> str:
    """The text of a file, or of standard input for "-".

    Raises:
        Refused: it is not there, cannot be read, is larger, or is not UTF-8 text.
    """
    if name != STDIN:
        return read_text(name, what=what, max_bytes=max_bytes)
    title = f"{what} standard input"
    try:
        data = sys.stdin.buffer.read(max_bytes + 1)
    except OSError as error:
        raise Refused(f"{title}: {os_reason(error)}", reason="unreadable") from error
    except (AttributeError, ValueError):  # Python has none where the shell closed it
        raise Refused(f"{title}: is closed; name a file", reason="unreadable") from None
    return decoded(data, title=title, max_bytes=max_bytes)


def os_words(error: OSError) -> str:
    """What the system said, without its number, with the file: `x.yaml: no such file or directory`."""
    return f"{error.filename}: {os_reason(error)}" if error.filename is not None else os_reason(error)
