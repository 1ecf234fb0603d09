"""The node's object as a file, where there is no API server: replaced as a whole, readable by everybody."""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from shared.errors import Unavailable

MODE = 0o644


class NodeFile:
    """A NodeWriter over one JSON file. A reader sees the last object or the new one, never half of one."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def write(self, document: Mapping[str, object]) -> None:
        """Replace the file.

        Raises:
            Unavailable: the folder cannot be made or written; the last object stays.
        """
        text = json.dumps(document, indent=2, sort_keys=True) + "\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._replace(text)
        except OSError as error:
            raise Unavailable(
                f"node object {self.path}: cannot be written ({error.strerror}); the last one stays", reason="write"
            ) from error

    def _replace(self, text: str) -> None:
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        fresh = Path(name)
        try:
            with os.fdopen(handle, "w") as file:
                file.write(text)
            fresh.chmod(MODE)
            fresh.replace(self.path)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
