"""A JSON file in the state folder holds the node's taints if there is no API server."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from shared.adapters.files.replaced import replace_file
from shared.contracts.envelope import MessagePart
from shared.contracts.kube.taint import TAINT_PREFIX, Taint, in_order
from shared.errors import Refused, Unavailable

NAME = "taints.json"


class _Document(MessagePart):
    taints: list[dict[str, Any]]


class TaintFile:
    """A NodeTaints over `{"taints": […]}`. There is no file before the first taint: then nothing is tainted.

    An operator may add taints with keys of their own; they keep reclaimed pods away as well, and stay.
    """

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / NAME

    def standing(self) -> tuple[Taint, ...]:
        """Return all taints, including those of others, ascending by key and effect.

        Raises:
            Unavailable: the file exists but cannot be read, or does not contain taints.
        """
        return in_order(taint for _, taint in self._entries())

    async def read(self) -> tuple[Taint, ...]:
        """Ours.

        Raises:
            Unavailable: as `standing`.
        """
        return tuple(taint for taint in self.standing() if taint.ours)

    async def write(self, taints: Sequence[Taint]) -> None:
        """Replace ours.

        Raises:
            Unavailable: the file cannot be written, or what others have in it cannot be read.
            Refused: a key that is not under our prefix.
        """
        for taint in taints:
            if not taint.ours:
                raise Refused(f"taint {taint.key}: want a key under {TAINT_PREFIX}; not written", reason="foreign")
        others = [entry for entry, taint in self._entries() if not taint.ours]
        self._replace([*others, *(taint.document() for taint in in_order(taints))])

    def remove_ours(self) -> None:
        """Leave only the taints of others in the file, and delete it without any. An unreadable file stays."""
        with contextlib.suppress(Unavailable, OSError):
            entries = self._entries()
            others = [entry for entry, taint in entries if not taint.ours]
            if not others:
                self.path.unlink()
            elif len(others) < len(entries):
                # Without our taints the file belongs to others and is not touched.
                self._replace(others)

    async def show(self, taints: Sequence[Taint]) -> None:
        """Do nothing: readers use the file."""

    def _replace(self, entries: Sequence[Mapping[str, Any]]) -> None:
        text = json.dumps({"taints": entries}, indent=2) + "\n"
        replace_file(self.path, text.encode(), what="node taints")

    def _entries(self) -> list[tuple[Any, Taint]]:
        """Return each entry as it is in the file, and parsed."""
        try:
            entries = _Document.model_validate_json(self.path.read_bytes()).taints
            return [(entry, Taint.model_validate(entry)) for entry in entries]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Unavailable(f"node taints {self.path}: cannot be read ({error.strerror})", reason="read") from error
        except ValidationError as error:
            raise Unavailable(
                f'node taints {self.path}: want {{"taints": [{{"key", "effect", "timeAdded"}}]}}, it holds something '
                "else; repair it, or remove it to have no taints",
                reason="malformed",
            ) from error
