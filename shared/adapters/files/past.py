"""`PastFile` keeps the text of a service's past for its next life; without it that begins with none."""

from pathlib import Path

from shared.adapters.files.replaced import replace_file
from shared.errors import Unavailable


class PastFile:
    """One file in the state folder."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path, self._most_bytes = path, most_bytes

    def read(self) -> bytes | None:
        """The text of the life before; None where there was none.

        Raises:
            Unavailable: it cannot be read.
        """
        try:
            with self._path.open("rb") as file:
                # One byte more than is taken: the reader refuses what is larger.
                return file.read(self._most_bytes + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise Unavailable(f"{self._path}: cannot be read ({error.strerror})", reason="unreadable") from error

    def write(self, text: bytes) -> None:
        """Replace it.

        Raises:
            Unavailable: the folder cannot be written; the last text stays.
        """
        replace_file(self._path, text, what="past")
