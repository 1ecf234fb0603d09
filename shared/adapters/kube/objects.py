"""`shared.ports.Objects` over the API server: its client and its watches."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from shared.adapters.kube.client import Document, Kube, KubeError
from shared.adapters.kube.watch import Collection, Mirror
from shared.core.api_kind import ApiKind
from shared.errors import Conflict, Refused, SubletError, Unavailable
from shared.ports import Clock

T = TypeVar("T")

DEFAULT = "default"
"""The namespace of what names none."""
NOT_FOUND, CONFLICT, TOO_MANY, SERVER_ERROR = 404, 409, 429, 500


class KubeObjects:
    """The Objects of one API server."""

    def __init__(self, kube: Kube, clock: Clock, *, manager: str) -> None:
        """`manager`: the field manager of what is created and patched; what is applied names its own."""
        self._kube, self._clock, self._manager = kube, clock, manager

    def mirror(
        self,
        kind: ApiKind,
        keep: Callable[[Mapping[str, Any]], T | None],
        changed: Callable[[], None],
        *,
        labels: str = "",
        namespace: str = "",
    ) -> Mirror[T]:
        """List, watch, and list again."""
        query = {"labelSelector": labels} if labels else {}
        collection = Collection(self._kube, kind.collection(namespace), **query)
        return Mirror(collection, keep, self._clock, changed=changed)

    def mirror_each(
        self,
        kind: ApiKind,
        keep: Callable[[Mapping[str, Any]], T | None],
        each: Callable[[str, T | None], None],
    ) -> Mirror[T]:
        """List, watch, and list again."""
        mirror = Mirror(Collection(self._kube, kind.collection()), keep, self._clock)
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
    ) -> Mirror[T]:
        """List, watch, and list again, selected by the name."""
        path = kind.collection((namespace or DEFAULT) if kind.namespaced else "")
        collection = Collection(self._kube, path, fieldSelector=f"metadata.name={name}")
        return Mirror(collection, keep, self._clock, changed=changed)

    async def list(self, kind: ApiKind, *, fields: str = "") -> Sequence[Document]:
        """Read by the server itself, not from a cache."""
        query = {"fieldSelector": fields} if fields else {}
        try:
            found = await self._kube.list(kind.collection(), **query)
        except KubeError as error:
            raise _told(error) from error
        return list(found.get("items") or ())

    async def get(self, kind: ApiKind, name: str, namespace: str = "") -> Document | None:
        """Read by the server itself, not from a cache."""
        try:
            return await self._kube.get(kind.path(name, namespace or DEFAULT))
        except KubeError as error:
            if error.status == NOT_FOUND:
                return None
            raise _told(error) from error

    async def create(self, kind: ApiKind, document: Mapping[str, Any]) -> Document:
        """POST."""
        path = kind.collection(_namespace(kind, document))
        try:
            return await self._kube.create(path, {**kind.head, **document}, manager=self._manager)
        except KubeError as error:
            raise _told(error) from error

    async def patch(self, kind: ApiKind, document: Mapping[str, Any], *, status: bool = False) -> Document | None:
        """A JSON merge patch."""
        path = kind.path(document["metadata"]["name"], _namespace(kind, document))
        try:
            return await self._kube.merge(
                f"{path}/status" if status else path, {**kind.head, **document}, manager=self._manager
            )
        except KubeError as error:
            if error.status == NOT_FOUND:
                return None
            raise _told(error) from error

    async def apply(
        self, kind: ApiKind, document: Mapping[str, Any], *, manager: str, status: bool = False
    ) -> Document:
        """Server-side apply."""
        path = kind.path(document["metadata"]["name"], _namespace(kind, document))
        try:
            return await self._kube.apply(
                f"{path}/status" if status else path, {**kind.head, **document}, manager=manager
            )
        except KubeError as error:
            raise _told(error) from error

    async def delete(self, kind: ApiKind, name: str, namespace: str = "", *, uid: str) -> None:
        """DELETE with the UID as precondition."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        try:
            await self._kube.delete(kind.path(name, namespace or DEFAULT), options)
        except KubeError as error:
            # 409 is another UID under this name: the object that was meant is gone, which is what was wanted.
            if error.status not in (NOT_FOUND, CONFLICT):
                raise _told(error) from error


def _namespace(kind: ApiKind, document: Mapping[str, Any]) -> str:
    return str(document["metadata"].get("namespace") or DEFAULT) if kind.namespaced else ""


def _told(error: KubeError) -> SubletError:
    """Return the port's error for the server's answer."""
    if error.status == CONFLICT:
        return Conflict(str(error), reason=error.reason)
    # 429 is the server's priority and fairness: it is busy, and the same call may work later.
    if error.status == TOO_MANY or error.status >= SERVER_ERROR:
        return Unavailable(str(error), reason=error.reason)
    return Refused(str(error), reason=error.reason)
