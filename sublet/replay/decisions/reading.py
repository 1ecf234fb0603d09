"""Recordings of a cluster read back, as far as they can be used: what is broken costs no more than itself."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO

from pydantic import ValidationError
from pydantic_core import from_json

from shared.core.pydantic_words import first_fault
from shared.errors import Refused
from sublet.replay.decisions.frames import KIND_OF, MESSAGES, ClusterFrame, Heard, RecordedObject
from sublet.replay.decisions.recording import HEAD, VERSION
from sublet.replay.traces.frames import Faults
from sublet.replay.traces.lines import whole_lines
from sublet.replay.traces.reading import MOST_S

UID_CHARACTERS = 253
EARLIEST, LATEST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
_SHOWN = 40


@dataclass(slots=True)
class ClusterRecording:
    """Frames of a cluster, oldest first, to be asked for once; `faults` are complete when they have ended."""

    name: str
    began: datetime
    frames: Iterator[ClusterFrame]
    faults: Faults = field(default_factory=Faults)


def is_cluster_recording(source: BinaryIO) -> bool:
    """Whether the first line says so."""
    head = _head(whole_lines(source, Faults()))
    return head is not None and head.get("sublet") == HEAD


def read_cluster_recording(name: str, source: BinaryIO) -> ClusterRecording:
    """The frames of a recording, compressed or not, read from `source` as they are asked for.

    Raises:
        Refused: `not_a_recording`, `unknown_version`, or `malformed`: the head cannot be used.
    """
    faults = Faults()
    lines = whole_lines(source, faults)
    head = _head(lines)
    if head is None or head.get("sublet") != HEAD:
        raise Refused(f"{name}: no recording of a cluster: the first line does not say so", reason="not_a_recording")
    if head.get("v") != VERSION:
        raise Refused(
            f"{name}: recording of version {head.get('v')!r:.{_SHOWN}}; this sublet reads version {VERSION}",
            reason="unknown_version",
        )
    try:
        began = datetime.fromisoformat(str(head.get("at")))
    except ValueError:
        began = EARLIEST.replace(tzinfo=None)
    if began.tzinfo is None or not EARLIEST <= began <= LATEST:
        raise Refused(f"{name}: the first line wants a time with its zone as `at`; record again", reason="malformed")
    return ClusterRecording(name, began, _frames(name, lines, began, faults), faults)


def _head(lines: Iterator[tuple[int, bytes]]) -> dict[str, Any] | None:
    try:
        head = from_json(next(lines)[1], allow_inf_nan=False)
    except (StopIteration, ValueError):
        return None
    return head if isinstance(head, dict) else None


def _frames(name: str, lines: Iterator[tuple[int, bytes]], began: datetime, faults: Faults) -> Iterator[ClusterFrame]:
    last_s = 0.0
    for number, line in lines:
        try:
            fields = _fields(line)
            if fields.get("end") is True:
                return
            at_s = _time(fields, last_s)
            what = _message(fields) if "message" in fields else _object(fields)
        except Refused as refusal:
            faults.refuse(f"{name}: line {number}: {refusal}")
            continue
        last_s = at_s
        yield ClusterFrame(at_s, began + timedelta(seconds=at_s), what)
    faults.notes.append(f"{name}: no end line: the recorder was killed, or the file is cut")


def _fields(line: bytes) -> dict[str, Any]:
    try:
        fields = from_json(line, allow_inf_nan=False)
    except ValueError as error:
        raise Refused(f"no JSON with finite numbers: {error}", reason="malformed") from error
    if not isinstance(fields, dict):
        raise Refused("no JSON object", reason="malformed")
    return fields


def _time(fields: Mapping[str, Any], last_s: float) -> float:
    at_s = fields.get("t")
    if isinstance(at_s, bool) or not isinstance(at_s, int | float) or not 0 <= at_s <= MOST_S:
        raise Refused(f"t: {at_s!r:.{_SHOWN}}: want seconds since the start, 0 to {MOST_S:g}", reason="malformed")
    # Many things happen in one millisecond: only what goes back is refused.
    if at_s < last_s:
        raise Refused(f"out of order: t {at_s:g} s after {last_s:g} s", reason="out_of_order")
    return float(at_s)


def _message(fields: Mapping[str, Any]) -> Heard:
    kind = fields.get("message")
    model = MESSAGES.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise Refused(f"message {kind!r:.{_SHOWN}}: want one of {', '.join(MESSAGES)}", reason="unknown_kind")
    try:
        return model.model_validate(fields.get("body"))
    except ValidationError as error:
        raise Refused(f"{kind}: {first_fault(error, whole='message')}", reason="malformed") from error


def _object(fields: Mapping[str, Any]) -> RecordedObject:
    kind, uid, document = fields.get("kind"), fields.get("uid"), fields.get("object")
    if not isinstance(kind, str) or kind not in KIND_OF:
        raise Refused(f"kind {kind!r:.{_SHOWN}}: want one of {', '.join(KIND_OF)}", reason="unknown_kind")
    if not isinstance(uid, str) or not 0 < len(uid) <= UID_CHARACTERS:
        raise Refused(f"{kind}: uid: want a text of 1 to {UID_CHARACTERS} characters", reason="malformed")
    if document is None:
        return RecordedObject(kind, uid, None)
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        raise Refused(f"{kind} {uid[:_SHOWN]}: want an object with metadata", reason="malformed")
    for part in ("spec", "status"):
        if not isinstance(document.get(part, {}), dict):
            raise Refused(f"{kind} {uid[:_SHOWN]}: {part}: want a map", reason="malformed")
    if document["metadata"].get("uid") != uid or not isinstance(document["metadata"].get("name"), str):
        raise Refused(f"{kind} {uid[:_SHOWN]}: metadata: want the same uid, and a name", reason="malformed")
    meta = {"resourceVersion": "0"} | document["metadata"]
    return RecordedObject(kind, uid, KIND_OF[kind].head | document | {"metadata": meta})
