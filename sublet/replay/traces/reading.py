"""Recordings read back, as far as they can be used: what is broken costs no more than itself."""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from pydantic import ValidationError
from pydantic_core import from_json

from shared.contracts.ids import NAME_PATTERN
from shared.contracts.pod import Pod
from shared.contracts.sample import NodeSample
from shared.core.pydantic_words import first_fault
from shared.errors import Refused
from sublet.replay.traces.frames import Faults, Frame, Trace, sample_of
from sublet.replay.traces.lines import whole_lines
from sublet.replay.traces.recording import VERSION

MAX_GAP_S = 30.0
"""Longest silence that counts: of the time in a longer one nothing is known."""
MOST_S = 1e9
"""Latest time of a frame: some thirty years."""


def read_recording(name: str, source: BinaryIO) -> Trace:
    """The trace of a recording, compressed or not; frames are read from `source` as they are asked for.

    Raises:
        Refused: `not_a_recording`, `unknown_version`, or `malformed`: the head cannot be used.
    """
    faults = Faults()
    lines = whole_lines(source, faults)
    try:
        head = from_json(next(lines)[1], allow_inf_nan=False)
    except (StopIteration, ValueError):
        head = None
    if not isinstance(head, dict) or head.get("sublet") != "recording":
        raise Refused(f"{name}: no recording: the first line does not say so", reason="not_a_recording")
    if head.get("v") != VERSION:
        raise Refused(
            f"{name}: recording of version {head.get('v')!r}; this sublet reads version {VERSION}",
            reason="unknown_version",
        )
    node, cpus, smt = head.get("node"), head.get("cpus"), head.get("smt")
    if (
        not isinstance(node, str)
        or not re.fullmatch(NAME_PATTERN, node)
        or type(cpus) is not int
        or not 1 <= cpus <= 8192
        or not isinstance(smt, bool)
    ):
        raise Refused(f"{name}: the first line wants node, cpus (1 to 8192) and smt; record again", reason="malformed")
    return Trace(node, cpus, smt, lambda: _frames(name, node, lines, faults), faults)


def _frames(name: str, node: str, lines: Iterator[tuple[int, bytes]], faults: Faults) -> Iterator[Frame]:
    """The frames that can be used; what cannot is told in `faults`."""
    reader = _Reader(node)
    last_s: float | None = None
    for number, line in lines:
        try:
            found = reader.read(line, last_s)
        except Refused as refusal:
            faults.refuse(f"{name}: line {number}: {refusal}")
            continue
        if found is None:
            return
        at_s, sample = found
        passed_s = 0.0 if last_s is None else at_s - last_s
        # The recorder or metrics was away: what the node did meanwhile is in no frame, and must not count for a policy.
        if passed_s > MAX_GAP_S:
            faults.gaps_s += passed_s
            passed_s = 0.0
        last_s = at_s
        yield Frame(at_s, passed_s, sample)
    faults.notes.append(f"{name}: no end line: the recorder was killed, or the file is cut")


class _Reader:
    """Turns lines into samples; remembers the pods that later lines only name."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._pods: dict[str, Pod] = {}
        self._seq = 0

    def read(self, line: bytes, last_s: float | None) -> tuple[float, NodeSample] | None:
        """Time and sample of a line; None at the end line.

        Raises:
            Refused: the line cannot be used.
        """
        try:
            fields = from_json(line, allow_inf_nan=False)
        except ValueError as error:
            raise Refused(f"no JSON with finite numbers: {error}", reason="malformed") from error
        if not isinstance(fields, dict):
            raise Refused("no JSON object", reason="malformed")
        if fields.get("end") is True:
            return None
        at_s = fields.get("t")
        if isinstance(at_s, bool) or not isinstance(at_s, int | float) or not 0 <= at_s <= MOST_S:
            raise Refused(f"t: {at_s!r:.40}: want seconds since the start, 0 to {MOST_S:g}", reason="malformed")
        if last_s is not None and at_s <= last_s:
            raise Refused(f"out of order: t {at_s:g} s after {last_s:g} s", reason="out_of_order")
        return float(at_s), self._sample(float(at_s), fields)

    def _sample(self, at_s: float, fields: dict[str, Any]) -> NodeSample:
        use, sample = fields.get("use", {}), fields.get("sample", {})
        if not isinstance(use, dict) or not isinstance(sample, dict):
            raise Refused("sample and use: want objects", reason="malformed")
        try:
            if "pods" in fields:
                self._pods = {pod.uid: pod for pod in map(Pod.model_validate, fields["pods"])}
            if stranger := next((uid for uid in use if uid not in self._pods), None):
                raise Refused(f"use: no line before says what pod {stranger} is", reason="malformed")
            self._seq += 1
            pods = [{"pod": self._pods[uid], "containers": containers} for uid, containers in use.items()]
            return sample_of(self._node, self._seq, at_s, {**sample, "pods": pods})
        except ValidationError as error:
            raise Refused(first_fault(error, whole="frame"), reason="malformed") from error
        except TypeError as error:
            raise Refused(f"pods: {error}", reason="malformed") from error
