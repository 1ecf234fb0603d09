"""The API server as a recording knows it: collections that change frame by frame, and writes that go nowhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from shared.core.api_kind import ApiKind
from shared.core.object_reader import ObjectReader
from shared.errors import Refused
from shared.ports import Keep

T = TypeVar("T")
Document = Mapping[str, Any]
MAX_OBJECTS = 200_000
"""Of one recording at a time; a cluster of 5 000 nodes has 150 000 pods."""


@dataclass(slots=True)
class ReplayClock:
    """The time of the newest frame, on both clocks."""

    now: datetime
    at_s: float = 0.0

    def monotonic(self) -> float:
        """Seconds since the start of the recording."""
        return self.at_s

    def wall(self) -> datetime:
        """The recorder's clock."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Nobody waits: time passes by frames alone."""
        del seconds


class RecordedMirror(Generic[T]):
    """One collection as a part of central keeps it; what cannot be read stays as it was known before."""

    def __init__(self, keep: Keep[T], changed: Callable[[str, T | None], None]) -> None:
        self._reader, self._changed = ObjectReader(keep), changed
        self._objects: dict[str, T] = {}
        self.age_s: float | None = 0.0
        self.why = ""

    @property
    def objects(self) -> Mapping[str, T]:
        """What is kept of each object, by UID."""
        return self._objects

    @property
    def unread(self) -> Mapping[str, str]:
        """Objects that cannot be read, and why."""
        return self._reader.unread

    async def run(self) -> None:
        """Nothing is asked of anybody."""

    def put(self, uid: str, document: Document | None) -> None:
        """An object is as given, or gone; a change of fields that are not kept is none."""
        before = self._objects.get(uid)
        kept = None if document is None else self._reader.read(uid, document, before)
        if kept == before:
            return
        if kept is None:
            del self._objects[uid]
            self._reader.forget(uid)
        else:
            self._objects[uid] = kept
        self._changed(uid, kept)


class RecordedObjects:
    """The `Objects` of a recording, for the parts of central that decide. What they write goes nowhere."""

    def __init__(self) -> None:
        self._documents: dict[str, dict[str, Document]] = {}
        self._mirrors: dict[str, list[RecordedMirror[Any]]] = {}

    def put(self, kind: str, uid: str, document: Document | None) -> None:
        """An object is as given, or gone.

        Raises:
            Refused: there are more objects than any cluster has.
        """
        there = self._documents.setdefault(kind, {})
        if document is None:
            there.pop(uid, None)
        elif uid not in there and sum(map(len, self._documents.values())) >= MAX_OBJECTS:
            raise Refused(f"{kind} {uid[:40]}: more than {MAX_OBJECTS} objects at a time", reason="too_many")
        else:
            there[uid] = document
        for mirror in self._mirrors.get(kind, ()):
            mirror.put(uid, document)

    def of(self, kind: ApiKind) -> Mapping[str, Document]:
        """The documents of a kind by UID."""
        return self._documents.get(kind.kind, {})

    def mirror(
        self, kind: ApiKind, keep: Keep[T], changed: Callable[[], None], *, labels: str = "", namespace: str = ""
    ) -> RecordedMirror[T]:
        """A mirror of a whole collection: no part of central that is replayed selects."""
        if labels or namespace:
            raise Refused(f"{kind.plural}: a recording selects nothing", reason="recording")
        return self.mirror_each(kind, keep, lambda _uid, _thing: changed())

    def mirror_each(self, kind: ApiKind, keep: Keep[T], each: Callable[[str, T | None], None]) -> RecordedMirror[T]:
        """As `mirror`, which is told of every change by UID."""
        mirror = RecordedMirror(keep, each)
        self._mirrors.setdefault(kind.kind, []).append(mirror)
        return mirror

    def mirror_one(
        self, kind: ApiKind, name: str, keep: Keep[T], changed: Callable[[], None], *, namespace: str = ""
    ) -> RecordedMirror[T]:
        """The one object of a name."""

        def named(document: Document) -> T | None:
            meta = document["metadata"]
            return keep(document) if (meta.get("name"), meta.get("namespace") or "") == (name, namespace) else None

        return self.mirror(kind, named, changed)

    async def list(self, kind: ApiKind, *, fields: str = "") -> Sequence[Document]:
        """As it is now; `fields` selects by one path."""
        path, _, value = fields.partition("=")
        return [one for one in self.of(kind).values() if not fields or _at(one, path) == value]

    async def get(self, kind: ApiKind, name: str, namespace: str = "") -> Document | None:
        """As it is now."""
        return next(
            (
                one
                for one in self.of(kind).values()
                if one["metadata"].get("name") == name
                and (not kind.namespaced or one["metadata"].get("namespace") == (namespace or "default"))
            ),
            None,
        )

    async def create(self, kind: ApiKind, document: Document) -> Document:
        """Goes nowhere."""
        del kind
        return document

    async def patch(self, kind: ApiKind, document: Document, *, status: bool = False) -> Document | None:
        """Goes nowhere: what became of it is in a later frame."""
        del kind, status
        return document

    async def apply(self, kind: ApiKind, document: Document, *, manager: str, status: bool = False) -> Document:
        """Goes nowhere."""
        del kind, manager, status
        return document

    async def delete(self, kind: ApiKind, name: str, namespace: str = "", *, uid: str) -> None:
        """Goes nowhere."""
        del kind, name, namespace, uid


def _at(document: Document, path: str) -> object:
    found: object = document
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
