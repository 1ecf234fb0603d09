"""`ApiObjects` keeps the documents of an API server by path, in versions, and tells watches of each change."""

import asyncio
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

Document = dict[str, Any]
MOST_WAITING = 100_000
"""Events of one watch that nobody has read yet; a reader that lags behind further is cut off, as by a real server."""


class NotThere(Exception):
    """Nothing is at that path."""


class InTheWay(Exception):
    """What was asked for does not go with what is there."""


class ApiObjects:
    """Documents of collections; `name` within its collection is the last part of a path."""

    def __init__(self) -> None:
        self._collections: defaultdict[str, dict[str, Document]] = defaultdict(dict)
        self._versions = itertools.count(2)
        self.version = 1
        self._watches: defaultdict[str, set[asyncio.Queue[bytes | None]]] = defaultdict(set)
        self.writes = 0
        """Changes that came by request."""

    def put(self, collection: str, document: Document) -> Document:
        """A whole document, in a new version."""
        there, name = self._collections[collection], document["metadata"]["name"]
        known = name in there
        self.version = next(self._versions)
        document["metadata"]["resourceVersion"] = str(self.version)
        there[name] = document
        self._tell(collection, "MODIFIED" if known else "ADDED", document)
        return document

    def touch(self, collection: str, name: str, **spec: str) -> None:
        """The same document in a new version, with these fields of its spec."""
        document = self._collections[collection][name]
        if spec:
            document["spec"].update(spec)
        self.put(collection, document)

    def get(self, path: str) -> Document:
        """The document at a path.

        Raises:
            NotThere: there is none.
        """
        collection, _, name = path.rpartition("/")
        document = self._collections[collection].get(name) if collection in self._collections else None
        if document is None:
            raise NotThere(path)
        return document

    def create(self, collection: str, document: Document) -> Document:
        """A new document.

        Raises:
            InTheWay: there is one of this name.
        """
        if document["metadata"]["name"] in self._collections[collection]:
            raise InTheWay(f"{document['metadata']['name']} is already there")
        self.writes += 1
        document["metadata"].setdefault("uid", f"uid-{self.version}")
        return self.put(collection, document)

    def change(self, path: str, change: Mapping[str, Any], *, status: bool) -> Document:
        """What a merge patch or an apply of these fields makes of a document; conditions are replaced by type.

        Raises:
            NotThere: there is none.
            InTheWay: the change names a version that is not the newest.
        """
        document = self.get(path)
        wanted = (change.get("metadata") or {}).get("resourceVersion")
        if wanted not in (None, document["metadata"]["resourceVersion"]):
            raise InTheWay("the object has been modified; please apply your changes to the latest version")
        self.writes += 1
        fields = ("status",) if status else ("metadata", "spec")
        changed = {**document, "metadata": dict(document["metadata"])}
        for field in fields:
            if field in change:
                changed[field] = _merged(document.get(field) or {}, change[field])
        return self.put(path.rpartition("/")[0], changed)

    def delete(self, path: str) -> Document:
        """Take a document away.

        Raises:
            NotThere: there is none.
        """
        document, (collection, _, name) = self.get(path), path.rpartition("/")
        self.writes += 1
        self.version = next(self._versions)
        del self._collections[collection][name]
        self._tell(collection, "DELETED", document)
        return document

    def page(self, collection: str, first: int, size: int) -> tuple[list[Document], int]:
        """So many documents of a collection from a place on, and how many come behind them."""
        there = self._collections.get(collection, {})
        found = list(itertools.islice(there.values(), first, first + size))
        return found, max(0, len(there) - first - len(found))

    def watch(self, collection: str) -> "asyncio.Queue[bytes | None]":
        """Every change of a collection from now on, a line each; None is the end."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._watches[collection].add(queue)
        return queue

    def unwatch(self, collection: str, queue: "asyncio.Queue[bytes | None]") -> None:
        """Nobody listens any more."""
        self._watches[collection].discard(queue)

    def _tell(self, collection: str, kind: str, document: Document) -> None:
        watches = self._watches.get(collection)
        if not watches:
            return
        line = json.dumps({"type": kind, "object": document}, separators=(",", ":")).encode() + b"\n"
        for queue in list(watches):
            if queue.qsize() >= MOST_WAITING:
                watches.discard(queue)
                queue.put_nowait(None)
            else:
                queue.put_nowait(line)


def turns(count: int, every_s: float, tick_s: float) -> Iterator[range]:
    """Places of what is due in each tick, so that each of `count` comes once in `every_s`."""
    at, due = 0, 0.0
    while True:
        due += count * tick_s / every_s
        many, due = int(due), due - int(due)
        yield range(at, at + many)
        at = (at + many) % max(1, count)


def _merged(standing: Any, change: Any) -> Any:
    """A JSON merge patch, but of lists whose items have a type: those are merged by it, as central applies them."""
    if isinstance(change, Mapping):
        result = dict(standing) if isinstance(standing, Mapping) else {}
        for key, value in change.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = _merged(result.get(key), value)
        return result
    if isinstance(change, list) and isinstance(standing, list) and all("type" in one for one in [*change, *standing]):
        return list({one["type"]: one for one in [*standing, *change]}.values())
    return change
