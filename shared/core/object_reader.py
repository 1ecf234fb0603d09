"""`ObjectReader` reads API objects one by one: whatever one of them says, all the others are still read."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MAX_WHY = 200
"""Characters of what is said of an object that cannot be read."""


class ObjectReader(Generic[T]):
    """Makes of a document what is kept of it; of one that cannot be read the last good state stays."""

    def __init__(self, keep: Callable[[Mapping[str, Any]], T | None]) -> None:
        self._keep = keep
        self.unread: dict[str, str] = {}
        """Objects that cannot be read as they are now, by UID, and why."""

    def read(self, uid: str, document: Any, before: T | None) -> T | None:
        """What is kept; `before`, what was kept until now, where it cannot be read."""
        try:
            thing = self._keep(document)
        except Exception as error:  # noqa: BLE001 - whatever a reader does not expect is the object's doing
            self.unread[uid] = f"{type(error).__name__}: {error}"[:MAX_WHY]
            return before
        self.unread.pop(uid, None)
        return thing

    def forget(self, uid: str) -> None:
        """Forget what was said of one that is gone."""
        self.unread.pop(uid, None)

    def retain(self, uids: Collection[str]) -> None:
        """Forget what was said of all others: they are gone."""
        for gone in self.unread.keys() - set(uids):
            del self.unread[gone]


def uid_of(document: Any) -> str:
    """An object's UID; empty where it has none, which no API server gives."""
    meta = document.get("metadata") if isinstance(document, Mapping) else None
    uid = meta.get("uid") if isinstance(meta, Mapping) else None
    return uid if isinstance(uid, str) else ""
