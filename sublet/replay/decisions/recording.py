"""Recordings of a cluster: gzip-compressed JSON lines, a head, one line a frame, an end line.

    {"sublet": "cluster recording", "v": 1, "at": "2026-01-30T12:00:00+00:00"}
    {"t": 0.0, "kind": "Node", "uid": "…", "object": {…}}      an object as it is from now on; null: it is gone
    {"t": 3.1, "message": "offer", "body": {…}}                a message of a node: offer or figures
    {"t": 3.2, "message": "decision", "body": {…}}             what was decided
    {"end": true, "frames": 3}

`t` is seconds on the recorder's monotonic clock, `at` its wall clock at 0. Of an object only what decisions are made by
is kept: neither environment nor commands of containers, nor what somebody last applied, in which both stand.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO

from shared.contracts.envelope import Message
from sublet.replay.traces.packed import PackedLines
from sublet.replay.traces.recording import FLUSH_EVERY_S

HEAD = "cluster recording"
VERSION = 1
Document = Mapping[str, Any]
_META = (
    "name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp", "labels",
    "annotations", "ownerReferences", "finalizers",
)  # fmt: skip
"""Not the version: with it every change would be one, also of what is left out here."""
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_OF_SPEC = {"HorizontalPodAutoscaler": ("minReplicas", "maxReplicas")}
_OF_STATUS = {
    "HorizontalPodAutoscaler": (),
    "ServiceProfileDescriptor": ("conditions",),
    "VerticalPodAutoscaler": ("recommendation",),
}
"""Of kinds whose other figures change all the time, and decide nothing."""
_CONTAINER = ("name", "resources", "resizePolicy", "restartPolicy")
_POD_SPEC = (
    "nodeName", "schedulerName", "priority", "priorityClassName", "tolerations", "schedulingGates", "nodeSelector",
    "affinity", "overhead",
)  # fmt: skip


class ClusterWriter:
    """Writes one recording to a stream; it takes no more frames once `max_bytes` of it are written."""

    def __init__(self, out: BinaryIO, at: datetime, *, max_bytes: int | None = None) -> None:
        self._lines, self._max_bytes = PackedLines(out), max_bytes
        self._flushed_s = 0.0
        self.frames = 0
        self._lines.line({"sublet": HEAD, "v": VERSION, "at": at.astimezone(UTC).isoformat()})
        self._lines.flush()

    @property
    def bytes(self) -> int:
        """How long the recording is so far."""
        return self._lines.bytes

    def see(self, at_s: float, kind: str, uid: str, document: Document | None) -> bool:
        """Add an object, or that it is gone; False, and nothing is written, when the bound is reached."""
        kept = None if document is None else relevant(kind, document)
        return self._write(at_s, {"kind": kind, "uid": uid, "object": kept})

    def hear(self, at_s: float, message: Message) -> bool:
        """Add a message; False as in `see`."""
        body = message.model_dump(mode="json", exclude_none=True)
        return self._write(at_s, {"message": message.kind, "body": body})

    def _write(self, at_s: float, fields: dict[str, Any]) -> bool:
        if self._max_bytes is not None and self.bytes >= self._max_bytes:
            return False
        self._lines.line({"t": round(at_s, 3), **fields})
        self.frames += 1
        if at_s >= self._flushed_s + FLUSH_EVERY_S:
            self._lines.flush()
            self._flushed_s = at_s
        return True

    def close(self) -> None:
        """Say that this is all."""
        self._lines.line({"end": True, "frames": self.frames})
        self._lines.close()


def relevant(kind: str, document: Document) -> dict[str, Any]:
    """What decisions are made by."""
    meta, spec = _map(document.get("metadata")), _map(document.get("spec"))
    found: dict[str, Any] = {"metadata": _relevant_meta(meta)}
    if kind == "Pod":
        found["spec"] = _pod_spec(spec)
    elif kind == "Deployment":
        template = _map(spec.get("template"))
        of_pods = {
            "metadata": _relevant_meta(_map(template.get("metadata"))),
            "spec": _pod_spec(_map(template.get("spec"))),
        }
        found["spec"] = {"replicas": spec.get("replicas"), "selector": spec.get("selector"), "template": of_pods}
    else:
        found["spec"] = _only(spec, _OF_SPEC.get(kind, tuple(spec)))
    status = _map(document.get("status"))
    # Of a Node's images there are many kilobytes, which no rule looks at.
    names = _OF_STATUS.get(kind, tuple(name for name in status if name != "images"))
    return found | {"status": _only(status, names)}


def _relevant_meta(meta: Document) -> dict[str, Any]:
    found = _only(meta, _META)
    if isinstance(annotations := found.get("annotations"), Mapping):
        found["annotations"] = {key: value for key, value in annotations.items() if key != _APPLIED}
    return found


def _pod_spec(spec: Document) -> dict[str, Any]:
    containers = {
        name: [_only(_map(one), _CONTAINER) for one in rows]
        for name in ("containers", "initContainers")
        if isinstance(rows := spec.get(name), list)
    }
    return {**_only(spec, _POD_SPEC), **containers}


def _only(given: Document, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}


def _map(given: object) -> Document:
    return given if isinstance(given, Mapping) else {}
