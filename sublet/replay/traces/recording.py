"""Recordings: gzip-compressed JSON lines, a head, one line a frame, and an end line when the recorder ended well.

    {"sublet": "recording", "v": 1, "node": "node1", "cpus": 48, "smt": true, "topology": [[0, 0, 0, 0, 0], …]}
    {"t": 0.0, "sample": {"window_s": 2.0, "node_reading": {…}, …}, "pods": [pod, …], "use": {uid: [container, …]}}
    {"t": 2.0, …}                            without "pods" while they are the same
    {"end": true, "frames": 2}

A row of the topology is CPU, NUMA node, socket, core and L3 cache. A frame holds the fields of
`shared.contracts.sample.NodeSample` without the envelope, fractions to four decimals (a ten-thousandth of a core). Pods
are said again every `PODS_EVERY` frames, so that one bad line costs little. `sublet.replay.traces.reading` reads them.
"""

from typing import Any, BinaryIO

from shared.contracts.envelope import Message, MessagePart
from shared.contracts.pod import Pod
from shared.contracts.sample import NodeSample
from shared.core.cpus.topology import Topology
from sublet.replay.traces.packed import PackedLines

VERSION = 1
PODS_EVERY = 300
FLUSH_EVERY_S = 5.0
"""At most this much of a recording is lost with a recorder that is killed."""
DECIMALS = 4
_NOT_IN_SAMPLE = {"pods", *Message.model_fields}


class Writer:
    """Writes one recording to a stream; it takes no more frames once `max_bytes` of it are written."""

    def __init__(self, out: BinaryIO, node: str, topology: Topology, *, max_bytes: int | None = None) -> None:
        self._lines, self._max_bytes = PackedLines(out), max_bytes
        self._pods: tuple[Pod, ...] | None = None
        self._flushed_s = 0.0
        self.frames = 0
        head = {"sublet": "recording", "v": VERSION, "node": node, "cpus": len(topology.all), "smt": topology.smt}
        self._lines.line(head | {"topology": [[c.id, c.numa, c.socket, c.core, c.l3] for c in topology.cpus]})
        self._lines.flush()

    @property
    def bytes(self) -> int:
        """How long the recording is so far."""
        return self._lines.bytes

    def write(self, at_s: float, sample: NodeSample) -> bool:
        """Add a frame; False, and nothing is written, when the bound is reached."""
        if self._max_bytes is not None and self.bytes >= self._max_bytes:
            return False
        pods = tuple(reading.pod for reading in sample.pods)
        line: dict[str, Any] = {"t": round(at_s, 3), "sample": _figures(sample, exclude=_NOT_IN_SAMPLE)}
        if pods != self._pods or self.frames % PODS_EVERY == 0:
            line["pods"] = [pod.model_dump(mode="json", exclude_defaults=True) for pod in pods]
            self._pods = pods
        line["use"] = {reading.pod.uid: [_figures(c) for c in reading.containers] for reading in sample.pods}
        self._lines.line(line)
        self.frames += 1
        if at_s >= self._flushed_s + FLUSH_EVERY_S:
            self._lines.flush()
            self._flushed_s = at_s
        return True

    def close(self) -> None:
        """Say that this is all."""
        self._lines.line({"end": True, "frames": self.frames})
        self._lines.close()


def _figures(part: MessagePart, exclude: set[str] | None = None) -> Any:
    """What is known of a reading."""
    return _rounded(part.model_dump(mode="json", exclude_none=True, exclude_defaults=True, exclude=exclude))


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return round(value, DECIMALS) if isinstance(value, float) else value
