"""How far a bridge has come, and what it could not deliver, on disk."""

import json
import re
from pathlib import Path

from shared.errors import Refused, Unavailable

_NAME = re.compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")


class Place:
    """`<folder>/<name>.json` with the sequence of the last event done with, `<name>.dead.jsonl` with those refused."""

    def __init__(self, folder: Path, name: str) -> None:
        if not _NAME.match(name):
            raise Refused(f"bridge name {name!r}: want small letters, digits and dashes", reason="name")
        self._path, self.dead = folder / f"{name}.json", folder / f"{name}.dead.jsonl"

    def sequence(self) -> int:
        """The last one done with; 0 at the beginning.

        Raises:
            Unavailable: the file is there and cannot be read; beginning anew would deliver everything again.
        """
        try:
            return int(json.loads(self._path.read_text())["sequence"])
        except FileNotFoundError:
            return 0
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Unavailable(
                f"{self._path}: {error!r}; remove it to deliver all events again, or use another --name"
            ) from error

    def done(self, sequence: int) -> None:
        """Everything up to here is done with.

        Raises:
            OSError: it cannot be written; the event will be delivered again after a restart.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        aside = self._path.with_suffix(".new")
        aside.write_text(json.dumps({"sequence": sequence}))
        aside.replace(self._path)

    def bury(self, sequence: int, headers: dict[str, str], body: bytes, status: int) -> None:
        """Keep an event that the receiver refuses for good, one JSON line.

        Raises:
            OSError: it cannot be written; then the event is not passed over.
        """
        self.dead.parent.mkdir(parents=True, exist_ok=True)
        line = {"sequence": sequence, "status": status, "headers": headers, "body": body.decode(errors="replace")}
        with self.dead.open("a") as file:
            file.write(json.dumps(line) + "\n")
