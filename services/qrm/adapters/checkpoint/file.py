"""The checkpoint's file has a schema version and a checksum, and is replaced atomically."""

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.qrm.core.checkpoint import Checkpoint, same_after_restart
from shared.adapters.files.replaced import write_whole
from shared.contracts.advice import PoolAdvice
from shared.core.cgroups.knobs import Knob
from shared.core.pydantic_words import first_fault
from shared.errors import Refused

FILE = "checkpoint.json"
_SET_ASIDE = ".refused"


class _Envelope(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = Field(1, alias="schema")
    checksum: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    body: str


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


class CheckpointFile:
    """The checkpoint of one node, in its state directory."""

    def __init__(self, state_dir: Path, node: str) -> None:
        self._path, self._node = state_dir / FILE, node
        self._last: Checkpoint | None = None

    def save(
        self,
        advice: PoolAdvice,
        pools: Mapping[str, str],
        pods: Mapping[str, str] | None = None,
        knobs: Collection[Knob] = (),
    ) -> None:
        """Replace the checkpoint, if something in it has changed.

        Raises:
            OSError: it could not be written; the old one stays.
        """
        last = self._last
        fresh = Checkpoint(
            node=self._node, advice=advice, pools=dict(pools), pods=dict(pods or {}), knobs=tuple(sorted(knobs))
        )
        # Advice repeats with each sample, and each save waits for the disk.
        same = last is not None and last == fresh.model_copy(update={"advice": last.advice})
        if last is not None and same and same_after_restart(last.advice, advice):
            return
        # An older release reads no field that it does not know.
        body = fresh.model_dump_json(exclude=None if fresh.knobs else {"knobs"})
        text = json.dumps({"schema": 1, "checksum": _checksum(body), "body": body})
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Synced before it is renamed: after a power cut there is the old checkpoint or the new one, never half of one.
        write_whole(self._path, text.encode(), durable=True)
        self._last = fresh

    def load(self) -> Checkpoint | None:
        """The checkpoint; None where there is none.

        Raises:
            Refused: it is damaged, of another version, or another node's; it has been set aside under another name.
            OSError: it cannot be read, or not be set aside.
        """
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            self._last = self._checked(text)
        except ValueError as error:
            aside = self._path.with_name(self._path.name + _SET_ASIDE)
            # Kept for whoever wants to know; left in place it would be refused again at each start.
            self._path.replace(aside)
            raise Refused(
                f"checkpoint {self._path} set aside as {aside.name}: {_in_words(error)}; rebuilt from the kernel",
                reason="bad_checkpoint",
            ) from error
        return self._last

    def _checked(self, text: bytes) -> Checkpoint:
        envelope = _Envelope.model_validate_json(text)
        # Over the text of the body, not over its parsed form: a checksum must not depend on how JSON is written.
        if envelope.checksum != _checksum(envelope.body):
            raise ValueError("the checksum is not that of its body")
        checkpoint = Checkpoint.model_validate_json(envelope.body)
        # A state folder that was copied from another machine names CPUs that mean something else here.
        if checkpoint.node != self._node:
            raise ValueError(f"it belongs to node {checkpoint.node!r}, this is {self._node!r}")
        return checkpoint


def _in_words(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        return first_fault(error, whole="file")
    return str(error)
