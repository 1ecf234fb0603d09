"""The gate to the API server: every central may read, only the leader may write."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from services.central.leadership.leader import Leader
from shared.core.api_kind import ApiKind
from shared.ports import ObjectMirror, Objects

T = TypeVar("T")


class LeaderObjects:
    """Objects whose writes ask the leader first."""

    def __init__(self, objects: Objects, leader: Leader) -> None:
        self._objects, self._leader = objects, leader
        self._shared: dict[tuple[object, ...], tuple[ObjectMirror[Any], list[Callable[[], None]]]] = {}

    def mirror(
        self,
        kind: ApiKind,
        keep: Callable[[Mapping[str, Any]], T | None],
        changed: Callable[[], None],
        *,
        labels: str = "",
        namespace: str = "",
    ) -> ObjectMirror[T]:
        """Every central may. Users of the same objects share one mirror, because pods are many, and are sent once."""
        key = (kind, keep, labels, namespace)
        if key not in self._shared:
            told: list[Callable[[], None]] = []
            made = self._objects.mirror(kind, keep, lambda: _tell(told), labels=labels, namespace=namespace)
            self._shared[key] = made, told
        shared, listeners = self._shared[key]
        listeners.append(changed)
        return shared

    def mirror_each(
        self,
        kind: ApiKind,
        keep: Callable[[Mapping[str, Any]], T | None],
        each: Callable[[str, T | None], None],
    ) -> ObjectMirror[T]:
        """Anybody may."""
        return self._objects.mirror_each(kind, keep, each)

    def mirror_one(
        self,
        kind: ApiKind,
        name: str,
        keep: Callable[[Mapping[str, Any]], T | None],
        changed: Callable[[], None],
        *,
        namespace: str = "",
    ) -> ObjectMirror[T]:
        """Anybody may."""
        return self._objects.mirror_one(kind, name, keep, changed, namespace=namespace)

    async def list(self, kind: ApiKind, *, fields: str = "") -> Sequence[Mapping[str, Any]]:
        """Anybody may."""
        return await self._objects.list(kind, fields=fields)

    async def get(self, kind: ApiKind, name: str, namespace: str = "") -> Mapping[str, Any] | None:
        """Anybody may."""
        return await self._objects.get(kind, name, namespace)

    async def create(self, kind: ApiKind, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """Only the leader."""
        self._leader.require()
        return await self._objects.create(kind, document)

    async def patch(
        self, kind: ApiKind, document: Mapping[str, Any], *, status: bool = False
    ) -> Mapping[str, Any] | None:
        """Only the leader."""
        self._leader.require()
        return await self._objects.patch(kind, document, status=status)

    async def apply(
        self, kind: ApiKind, document: Mapping[str, Any], *, manager: str, status: bool = False
    ) -> Mapping[str, Any]:
        """Only the leader."""
        self._leader.require()
        return await self._objects.apply(kind, document, manager=manager, status=status)

    async def delete(self, kind: ApiKind, name: str, namespace: str = "", *, uid: str) -> None:
        """Only the leader."""
        self._leader.require()
        await self._objects.delete(kind, name, namespace, uid=uid)


def _tell(listeners: Sequence[Callable[[], None]]) -> None:
    for changed in listeners:
        changed()
