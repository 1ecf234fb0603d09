"""A watch mirrors a collection of the API server: it lists, watches, and lists again when it may have missed some.

Memory is bounded by what the caller keeps of an object (`keep`), not by what the server sends.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import structlog

from shared.adapters.kube.client import Document, Gone, Kube, KubeError
from shared.core.backoff import delay_s
from shared.core.object_reader import ObjectReader, uid_of
from shared.errors import Unavailable
from shared.ports import Clock

log = structlog.get_logger()

T = TypeVar("T")

WATCH_S = 540
"""Duration of a watch; the list that follows repairs what a watch may have lost silently."""
AGAIN_BASE_S, AGAIN_CAP_S = 0.2, 10.0


class Collection:
    """A collection of one API server, and the query that selects of it."""

    def __init__(self, kube: Kube, path: str, **query: object) -> None:
        self.kube, self.path, self.query = kube, path, query


class Mirror(Generic[T]):
    """Objects by UID. `keep` makes of a document what is kept; None leaves it out."""

    def __init__(
        self,
        collection: Collection,
        keep: Callable[[Mapping[str, Any]], T | None],
        clock: Clock,
        *,
        changed: Callable[[], None] = lambda: None,
        roll: Callable[[], float] = random.random,
    ) -> None:
        self._kube, self._path, self._query = collection.kube, collection.path, collection.query
        self._clock = clock
        self._reader = ObjectReader(keep)
        self._changed, self._roll = changed, roll
        self.each: Callable[[str, T | None], None] | None = None
        """Told of every change by UID, None: it is gone."""
        self._objects: dict[str, T] | None = None
        self._confirmed_at_s: float | None = None
        self.why = "not listed yet"
        """Why the newest try failed; "" while the watch runs."""

    @property
    def objects(self) -> Mapping[str, T]:
        """Return the server's objects, by UID.

        Raises:
            Unavailable: they were never listed (absent is not zero).
        """
        if self._objects is None:
            raise Unavailable(f"{self._path}: {self.why}", reason="not_listed")
        return self._objects

    @property
    def unread(self) -> Mapping[str, str]:
        """Objects that cannot be read, by UID, and why; what was known of them before stays."""
        return self._reader.unread

    @property
    def age_s(self) -> float | None:
        """Return the seconds since the server's last message about this collection, including bookmarks; None before
        that."""
        return None if self._confirmed_at_s is None else self._clock.monotonic() - self._confirmed_at_s

    async def run(self) -> None:
        """Run until cancelled; errors are waited out, and what is known stays."""
        tries = 0
        while True:
            try:
                await self._follow(await self._list())
                tries = 0
            except Gone:
                log.info("watch.relist", path=self._path)
                tries = 0
            except (KubeError, Unavailable) as error:
                if self.why != str(error):
                    log.warning("watch.broken", path=self._path, why=str(error))
                self.why = str(error)
                tries = 0 if self._fresh() else tries + 1
            # Also after a watch that has ended well: an API server that is stopped ends those of all nodes in the same
            # moment.
            await self._clock.sleep(delay_s(tries, base_s=AGAIN_BASE_S, cap_s=AGAIN_CAP_S, roll=self._roll()))

    def _fresh(self) -> bool:
        return self.age_s is not None and self.age_s < AGAIN_CAP_S

    async def _list(self) -> str:
        before, version = self._objects, ""
        kept: dict[str, T | None] = {}
        async with contextlib.aclosing(self._kube.pages(self._path, **self._query)) as pages:
            async for page in pages:  # of a page nothing stays but what is kept: pods may be large, and many
                # The first page's version: a watch from there repeats what changed while the others were read, and
                # misses nothing.
                version = version or str(page["metadata"]["resourceVersion"])
                for item in page.get("items") or ():
                    uid = uid_of(item)
                    kept[uid] = self._reader.read(uid, item, (before or {}).get(uid))
        self._reader.retain(kept)
        # Replaced at once, at the end of the list: half a list must not look like pods that are gone.
        self._objects = {uid: thing for uid, thing in kept.items() if thing is not None}
        self._confirm()
        # Most lists only confirm the watch, and need to wake no one.
        if before != self._objects:
            self._tell(before or {}, self._objects)
            self._changed()
        return version

    def _tell(self, before: Mapping[str, T], now: Mapping[str, T]) -> None:
        if self.each is None:
            return
        for uid in before.keys() - now.keys():
            self.each(uid, None)
        for uid, thing in now.items():
            if before.get(uid) != thing:
                self.each(uid, thing)

    async def _follow(self, version: str) -> None:
        events = self._kube.watch(self._path, version, timeoutSeconds=WATCH_S, **self._query)
        async with contextlib.aclosing(events):
            async for event in events:
                self._take(event)

    def _take(self, event: Document) -> None:
        self._confirm()
        kind, document = event.get("type"), event.get("object")
        if kind == "BOOKMARK":
            return
        uid, objects = uid_of(document), self._objects
        if objects is None:  # pragma: no cover - a watch follows its list
            return
        thing = None if kind == "DELETED" else self._reader.read(uid, document, objects.get(uid))
        # A change of unused fields wakes no one.
        if objects.get(uid) == thing:
            return
        if thing is None:
            objects.pop(uid, None)
            self._reader.forget(uid)
        else:
            objects[uid] = thing
        if self.each is not None:
            self.each(uid, thing)
        self._changed()

    def _confirm(self) -> None:
        self._confirmed_at_s, self.why = self._clock.monotonic(), ""


async def listed(mirror: Mirror[Any], clock: Clock, *, timeout_s: float) -> None:
    """Wait for the first list.

    Raises:
        Unavailable: there was none in time; says why.
    """
    try:
        async with asyncio.timeout(timeout_s):
            while mirror.age_s is None:
                await clock.sleep(0.05)
    except TimeoutError:
        raise Unavailable(mirror.why) from None
