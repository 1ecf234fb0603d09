"""The envelope of a file for qrm's next life has a schema version and a checksum; what is damaged is set aside."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.core.pydantic_words import first_fault
from shared.errors import Refused

LARGEST_BYTES = 16 << 20
"""Some 200 bytes a value: a node has a few thousand of them."""
_SET_ASIDE = ".refused"
Body = TypeVar("Body")


class _Envelope(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = Field(1, alias="schema")
    checksum: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    body: str


def sealed(body: str) -> bytes:
    """The file's text for a body."""
    return json.dumps({"schema": 1, "checksum": _checksum(body), "body": body}).encode()


def read_sealed(path: Path, read_body: Callable[[str], Body], *, instead: str) -> Body | None:
    """Return the body of a file; None if there is no file. `instead` describes what happens without it.

    Raises:
        Refused: it is damaged, of another version or another node's; it has been set aside under another name.
        OSError: it cannot be read, or not be set aside.
    """
    try:
        with path.open("rb") as file:
            # One byte more than allowed: a file that is too large is refused as such, and not cut off and parsed.
            text = file.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        return None
    try:
        return read_body(_unsealed(text))
    except ValueError as error:
        aside = set_aside(path)
        # Kept for inspection; left in place it would be refused again at each start.
        path.replace(aside)
        raise Refused(
            f"{path.stem} {path} set aside as {aside.name}: {_in_words(error)}; {instead}", reason="bad_checkpoint"
        ) from error


def set_aside(path: Path) -> Path:
    """The name under which a damaged file is kept."""
    return path.with_name(path.name + _SET_ASIDE)


def _unsealed(text: bytes) -> str:
    if len(text) > LARGEST_BYTES:
        raise ValueError(f"it has more than {LARGEST_BYTES} bytes")
    envelope = _Envelope.model_validate_json(text)
    # Over the text of the body, not over its parsed form: a checksum must not depend on how JSON is written.
    if envelope.checksum != _checksum(envelope.body):
        raise ValueError("the checksum is not that of its body")
    return envelope.body


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _in_words(error: ValueError) -> str:
    return first_fault(error, whole="file") if isinstance(error, ValidationError) else str(error)
