"""`NodeFile` writes the node's object to a file if there is no API server."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from shared.adapters.files.replaced import replace_file


class NodeFile:
    """A NodeWriter over one JSON file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def write(
        self, document: Mapping[str, object], _latest: Callable[[], Mapping[str, object]] | None = None
    ) -> None:
        """Replace the file, in one step: nothing newer can come in between.

        Raises:
            Unavailable: the folder cannot be made or written; the last object stays.
        """
        text = json.dumps(document, indent=2, sort_keys=True) + "\n"
        replace_file(self.path, text.encode(), what="node object")
