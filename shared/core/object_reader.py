"""`ObjectReader` reads API objects one by one, so that a bad one does not affect the others."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MAX_WHY = 200
"""Most characters about an unreadable object."""


class ObjectReader(Generic[T]):
    """Makes of a document what is kept of it; of one that cannot be read the last good state stays."""

    def __init__(self, keep: Callable[[Mapping[str, Any]], T | None]) -> None:
        self._keep = keep
        self.unread: dict[str, str] = {}
        """Objects that cannot be read as they are now, by UID, and why."""

    def read(self, uid: str, document: Any, before: T | None) -> T | None:
        """Return what is kept of an object; if it is unreadable, `before`, what was kept until now."""
        try:
            thing = self._keep(document)
        except Exception as error:  # noqa: BLE001 - whatever a reader does not expect is the object's doing
            self.unread[uid] = f"{type(error).__name__}: {error}"[:MAX_WHY]
            return before
        self.unread.pop(uid, None)
        return thing

    def forget(self, uid: str) -> None:
        """Forget the message about a deleted object."""
        self.unread.pop(uid, None)

    def retain(self, uids: Collection[str]) -> None:
        """Forget the messages about all others, which were deleted."""
        for gone in self.unread.keys() - set(uids):
            del self.unread[gone]


def uid_of(document: Any) -> str:
    """Return an object's UID; empty if it has none, which no API server sends."""
    meta = document.get("metadata") if isinstance(document, Mapping) else None
    uid = meta.get("uid") if isinstance(meta, Mapping) else None
    return uid if isinstance(uid, str) else ""
