"""Stores on disk how far a bridge has come, and what it could not deliver."""

import json
import re
from pathlib import Path

from shared.adapters.files.replaced import write_whole
from shared.contracts.bus.subjects import MAX_FACT_BYTES
from shared.errors import Refused, Unavailable
from shared.ports import Received

DEAD_BYTES = 4 << 20
"""Longest file of what was put aside. One older file is kept: any publisher can add to them without end."""
_NAME = re.compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")


class BridgePosition:
    """`<folder>/<name>.json` with the sequence up to which all is done, `<name>.dead.jsonl` with what was put aside."""

    def __init__(self, folder: Path, name: str) -> None:
        if not _NAME.match(name):
            raise Refused(f"bridge name {name!r}: want small letters, digits and dashes", reason="name")
        self._path, self.dead = folder / f"{name}.json", folder / f"{name}.dead.jsonl"
        self._dead_before = folder / f"{name}.dead.1.jsonl"

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
        # Not durable: a place that is lost in a power cut costs some events that are delivered twice, which receivers
        # must expect anyway.
        write_whole(self._path, json.dumps({"sequence": sequence}).encode())

    def bury(self, received: Received, *, status: int, why: str) -> None:
        """Keep a message that was put aside, one JSON line; the stream has it too, for as long as its limits are.

        Raises:
            OSError: it cannot be written.
        """
        self.dead.parent.mkdir(parents=True, exist_ok=True)
        # Headers are a stranger's as well, and all of them together are bounded.
        left, headers = MAX_FACT_BYTES, {}
        for name, value in received.headers.items():
            headers[name], left = value[:left], max(0, left - len(value))
        line = {
            "sequence": received.sequence,
            "subject": received.subject,
            "status": status,
            "why": why,
            "headers": headers,
            "body": received.data[:MAX_FACT_BYTES].decode(errors="replace"),
        }
        if self.dead.exists() and self.dead.stat().st_size > DEAD_BYTES:
            self.dead.replace(self._dead_before)
        with self.dead.open("a") as file:
            file.write(json.dumps(line) + "\n")
