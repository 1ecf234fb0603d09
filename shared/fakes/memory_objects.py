"""Objects in memory, with what Sublet relies on of an API server: UIDs, resource versions, generations, a separate
status, merge patches, conflicts, mirrors, and an outage on demand."""

import asyncio
import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from shared.core.api_kind import ApiKind
from shared.core.object_reader import ObjectReader, uid_of
from shared.errors import Conflict, Refused, Unavailable
from shared.fakes.server_side_apply import Appliers
from shared.ports import Clock

T = TypeVar("T")

Document = dict[str, Any]
AWAY = "the API server is away"


@dataclass
class MemoryObjects:
    """The Objects of a test."""

    clock: Clock
    documents: dict[tuple[ApiKind, str, str], Document] = field(default_factory=dict)
    """By kind, namespace and name."""
    writes: list[tuple[str, str, str]] = field(default_factory=list)
    """Verb, plural and name of every change that was made through the port, in order."""
    asked: int = 0
    """How many changes were asked for through the port, also those that changed nothing."""
    online: bool = True
    _numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    mirrors: "list[MemoryMirror[Any]]" = field(default_factory=list)
    _appliers: "dict[str, Appliers]" = field(default_factory=dict)
    """By UID."""

    def go_offline(self) -> None:
        """Stop answering; mirrors keep what they have and age."""
        self.online = False
        for mirror in self.mirrors:
            mirror.freeze()

    def go_online(self) -> None:
        """Answer again; mirrors list again."""
        self.online = True
        for mirror in self.mirrors:
            mirror.relist()

    def put(self, kind: ApiKind, document: Mapping[str, Any]) -> Document:
        """Write a whole document including its status, as another client."""
        key = _key(kind, document)
        before = self.documents.get(key)
        after = copy.deepcopy({**kind.head, **document})
        after["metadata"] = {**(before or {}).get("metadata", {}), **after["metadata"]}
        return self._store(key, before, after)

    def drop(self, kind: ApiKind, name: str, namespace: str = "") -> None:
        """Delete an object, as another client."""
        self.documents.pop((kind, namespace or ("default" if kind.namespaced else ""), name), None)
        if self.online:
            for mirror in self.mirrors:
                if mirror.kind == kind:
                    mirror.relist()

    def mirror(
        self,
        kind: ApiKind,
        keep: Callable[[Mapping[str, Any]], T | None],
        changed: Callable[[], None],
        *,
        labels: str = "",
        namespace: str = "",
    ) -> "MemoryMirror[T]":
        """Kept current while it runs."""
        mirror = MemoryMirror(self, kind, keep, changed, lambda d: _selected(d, labels, namespace))
        self.mirrors.append(mirror)
        return mirror

    def mirror_each(
        self,
        kind: ApiKind,
        keep: Callable[[Mapping[str, Any]], T | None],
        each: Callable[[str, T | None], None],
    ) -> "MemoryMirror[T]":
        """Kept current while it runs."""
        mirror = self.mirror(kind, keep, lambda: None)
        mirror.each = each
        return mirror

    def mirror_one(
        self,
        kind: ApiKind,
        name: str,
        keep: Callable[[Mapping[str, Any]], T | None],
        changed: Callable[[], None],
        *,
        namespace: str = "",
    ) -> "MemoryMirror[T]":
        """Kept current while it runs."""
        key = (kind, (namespace or "default") if kind.namespaced else "", name)
        mirror = MemoryMirror(self, kind, keep, changed, lambda d: _key(kind, d) == key)
        self.mirrors.append(mirror)
        return mirror

    async def list(self, kind: ApiKind, *, fields: str = "") -> Sequence[Document]:
        """As it is now."""
        self._answer()
        name, _, value = fields.partition("=")
        return [copy.deepcopy(d) for d in self.of(kind) if not fields or _at(d, name) == value]

    async def get(self, kind: ApiKind, name: str, namespace: str = "") -> Document | None:
        """As it is now."""
        self._answer()
        found = self.documents.get((kind, (namespace or "default") if kind.namespaced else "", name))
        return copy.deepcopy(found)

    async def create(self, kind: ApiKind, document: Mapping[str, Any]) -> Document:
        """A new object."""
        self._answer()
        self.asked += 1
        key = _key(kind, document)
        if key in self.documents:
            raise Conflict(f"{kind.plural} {key[2]!r} already exists", reason="AlreadyExists")
        after = copy.deepcopy({**kind.head, **document})
        if kind.status:
            after.pop("status", None)
        self.writes.append(("create", kind.plural, key[2]))
        return copy.deepcopy(self._store(key, None, after))

    async def patch(self, kind: ApiKind, document: Mapping[str, Any], *, status: bool = False) -> Document | None:
        """A JSON merge patch."""
        self._answer()
        self.asked += 1
        key = _key(kind, document)
        before = self.documents.get(key)
        if before is None:
            return None
        wanted = document["metadata"].get("resourceVersion")
        if wanted is not None and wanted != before["metadata"]["resourceVersion"]:
            raise Conflict(f"{kind.plural} {key[2]!r}: the object has been modified", reason="Conflict")
        if document["metadata"].get("uid", before["metadata"]["uid"]) != before["metadata"]["uid"]:
            raise Refused(f"{kind.plural} {key[2]!r} is invalid: metadata.uid: field is immutable", reason="Invalid")
        said = {k: v for k, v in document.items() if not kind.status or (k == "status") == status}
        if said.get("metadata"):
            said["metadata"] = {k: v for k, v in said["metadata"].items() if k != "resourceVersion"}
        after = _merged(before, said)
        if after != before:
            self.writes.append(("patch-status" if status else "patch", kind.plural, key[2]))
            self._store(key, before, after)
        return copy.deepcopy(self.documents[key])

    async def apply(
        self, kind: ApiKind, document: Mapping[str, Any], *, manager: str, status: bool = False
    ) -> Document:
        """Server-side apply."""
        self._answer()
        self.asked += 1
        key = _key(kind, document)
        before = self.documents.get(key)
        if before is None and status:
            raise Refused(f"{kind.plural} {key[2]!r} not found", reason="NotFound")
        if before is None:
            self.writes.append(("create", kind.plural, key[2]))
            before = self._store(key, None, {**kind.head, "metadata": {"name": key[2]}})
        said = {k: v for k, v in document.items() if not kind.status or (k == "status") == status}
        appliers = self._appliers.setdefault(before["metadata"]["uid"], Appliers())
        after = appliers.apply(before, said, f"{manager}/status" if status else manager)
        if after != before:
            self.writes.append(("apply-status" if status else "apply", kind.plural, key[2]))
            self._store(key, before, after)
        return copy.deepcopy(self.documents[key])

    async def delete(self, kind: ApiKind, name: str, namespace: str = "", *, uid: str) -> None:
        """Delete the object of this UID."""
        self._answer()
        self.asked += 1
        key = (kind, (namespace or "default") if kind.namespaced else "", name)
        there = self.documents.get(key)
        if there is not None and there["metadata"]["uid"] == uid:
            self.writes.append(("delete", kind.plural, name))
            self.drop(kind, name, namespace)

    def of(self, kind: ApiKind) -> Sequence[Document]:
        """All documents of a kind, ascending by namespace and name."""
        return [d for _, d in sorted(((k[1:], d) for k, d in self.documents.items() if k[0] == kind), key=_first)]

    def _answer(self) -> None:
        if not self.online:
            raise Unavailable(AWAY)

    def _store(self, key: tuple[ApiKind, str, str], before: Document | None, after: Document) -> Document:
        number = str(next(self._numbers))
        meta = after["metadata"] = dict(after["metadata"])
        meta.setdefault("uid", f"{int(number):08x}-0000-4000-8000-000000000000")
        meta.setdefault("creationTimestamp", self.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ"))
        changed = before is None or before.get("spec") != after.get("spec")
        meta["generation"] = (before or {}).get("metadata", {}).get("generation", 0) + changed
        if key[0].namespaced:
            meta["namespace"] = key[1]
        meta["resourceVersion"] = number
        self.documents[key] = after
        if self.online:
            for mirror in self.mirrors:
                if mirror.kind == key[0]:
                    mirror.apply(after)
        return after


class MemoryMirror(Generic[T]):
    """A mirror that is notified of every change at once."""

    def __init__(
        self,
        server: MemoryObjects,
        kind: ApiKind,
        keep: Callable[[Mapping[str, Any]], T | None],
        changed: Callable[[], None],
        selected: Callable[[Document], bool],
    ) -> None:
        self.kind, self.why = kind, "not listed yet"
        self._server, self._reader, self._changed, self._selected = server, ObjectReader(keep), changed, selected
        self.each: Callable[[str, T | None], None] = lambda _uid, _thing: None
        self._running = False
        self._objects: dict[str, T] | None = None
        self._frozen_at_s: float | None = None
        self.quiet_since_s: float | None = None
        """Since when nothing is heard, though the watch stands; None: bookmarks come all the time."""

    @property
    def objects(self) -> Mapping[str, T]:
        """What is kept, by UID."""
        if self._objects is None:
            raise Unavailable(f"{self.kind.plural}: {self.why}", reason="not_listed")
        return self._objects

    @property
    def unread(self) -> Mapping[str, str]:
        """Objects that cannot be read."""
        return self._reader.unread

    @property
    def age_s(self) -> float | None:
        """0 while the server is there."""
        if self._objects is None:
            return None
        since_s = self.quiet_since_s if self._frozen_at_s is None else self._frozen_at_s
        return 0.0 if since_s is None else self._server.clock.monotonic() - since_s

    async def run(self) -> None:
        """Until cancelled."""
        self._running = True
        if self._server.online:
            self.relist()
        await asyncio.Event().wait()

    def freeze(self) -> None:
        """The server has gone."""
        self.why, self._frozen_at_s = AWAY, self._server.clock.monotonic()

    def apply(self, document: Document) -> None:
        """Apply one change."""
        if self._objects is None or not self._running:
            return
        uid = document["metadata"]["uid"]
        read = self._reader.read(uid, copy.deepcopy(document), self._objects.get(uid))
        thing = read if self._selected(document) else None
        if thing == self._objects.get(uid):
            return
        self._objects = {**self._objects, uid: thing} if thing is not None else _without(self._objects, uid)
        self.each(uid, thing)
        self._changed()

    def relist(self) -> None:
        """Take what is there now."""
        if not self._running:
            return
        there = [d for d in self._server.of(self.kind) if self._selected(d)]
        before = self._objects
        self._reader.retain([uid_of(d) for d in there])
        kept = {
            uid: self._reader.read(uid, copy.deepcopy(d), (before or {}).get(uid)) for d in there if (uid := uid_of(d))
        }
        self._objects = {uid: thing for uid, thing in kept.items() if thing is not None}
        self.why, self._frozen_at_s = "", None
        if before != self._objects:
            for uid in {**(before or {}), **self._objects}:
                if (before or {}).get(uid) != self._objects.get(uid):
                    self.each(uid, self._objects.get(uid))
            self._changed()


def _key(kind: ApiKind, document: Mapping[str, Any]) -> tuple[ApiKind, str, str]:
    meta = document["metadata"]
    return kind.whole, (meta.get("namespace") or "default") if kind.namespaced else "", meta["name"]


def _first(row: tuple[tuple[str, str], Document]) -> tuple[str, str]:
    return row[0]


def _at(document: Mapping[str, Any], path: str) -> Any:
    here: Any = document
    for part in path.split("."):
        here = (here or {}).get(part)
    return here


def _without(objects: dict[str, T], uid: str) -> dict[str, T]:
    return {key: thing for key, thing in objects.items() if key != uid}


def _selected(document: Mapping[str, Any], labels: str, namespace: str) -> bool:
    said = document["metadata"].get("labels") or {}
    if namespace and document["metadata"].get("namespace") != namespace:
        return False
    return all(said.get(k) == v for k, _, v in (part.partition("=") for part in labels.split(",") if part))


def _merged(base: Any, over: Any) -> Any:
    """RFC 7396."""
    if not isinstance(over, Mapping):
        return copy.deepcopy(over)
    merged = dict(base) if isinstance(base, Mapping) else {}
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged
