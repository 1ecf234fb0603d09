"""Reads the configuration file, again only when it has changed."""

from pathlib import Path

from shared.errors import BadConfig


class WatchedFile:
    """A text file, known by its modification time, size and inode."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None

    @property
    def name(self) -> str:
        """Its path."""
        return str(self.path)

    def changed(self) -> str | None:
        """Return the text if the file has changed since the last call; None if it has not, or does not exist.

        Raises:
            BadConfig: the file exists and cannot be read as text; raised once for each change of it.
        """
        try:
            there = self.path.stat()
            signature = (there.st_mtime_ns, there.st_size, there.st_ino)
            if signature == self._seen:
                return None
            # Set before reading: an unreadable file is reported once, and read again when it has changed.
            self._seen = signature
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            self._seen = None
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise BadConfig(f"configuration file {self.path}: cannot be read: {error}", reason="unreadable") from error
