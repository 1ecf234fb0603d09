"""`ConfigStore` keeps configuration in a JetStream bucket: one service writes it, all watch it.

A watch of single keys needs no consumer, which a leaf may not have: it receives a notification of a change and then
reads the key. The key is part of the subject of both, so a server can allow a node its own keys and refuse those of
others.
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence

import structlog
from nats.js.api import StorageType
from nats.js.errors import NotFoundError

from shared.adapters.nats.link import Link, unavailable
from shared.adapters.nats.reader import not_found_or_unavailable
from shared.adapters.nats.tail import tail
from shared.contracts.bus.subjects import MAX_CONFIG_BYTES, NODE_KV
from shared.errors import SubletError, Unavailable
from shared.ports import Entry, Received

log = structlog.get_logger()

HISTORY = 10
REREAD_S = 60.0
"""Seconds after which a key is read again, in case a notification was lost."""
SOON_S = (0.1, 0.4, 2.0, 5.0)
"""A notification arrives before every server has stored the change, so the key is read again after each of these."""
AGAIN_S = 0.5
"""Pause after no answer (the bucket may not exist yet), or after the answer of a server that lags behind."""
DELETED_BY = ("KV-Operation", "Nats-Marker-Reason")
"""Headers of a marker for a deleted key: set by a client, or by the server."""


def _stream(bucket: str) -> str:
    return f"KV_{bucket}"


def _subject(bucket: str, key: str) -> str:
    return f"$KV.{bucket}.{key}"


class BucketWatch:
    """A running watch; `stop` ends it."""

    def __init__(self, work: "asyncio.Task[None]") -> None:
        self._work = work

    async def stop(self) -> None:
        """No further call to the handler after this returns."""
        self._work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._work


class _Newest:
    """Tracks the newest revision of a key, because servers that lag behind may answer as well."""

    def __init__(self) -> None:
        self._revision = 0
        self._older: int | None = None

    @property
    def behind(self) -> bool:
        """Whether the last answer was older than one before."""
        return self._older is not None

    def advance(self, revision: int) -> bool:
        """Return whether a revision is news: a newer one, or an older one that is repeated (the bucket was
        recreated)."""
        if revision >= self._revision:
            news, self._older = revision > self._revision, None
        else:
            news = revision == self._older
            self._older = None if news else revision
        if news:
            self._revision = revision
        return news


class ConfigStore:
    """The bus's operations on buckets, on one connection."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._watches: set[BucketWatch] = set()

    async def ensure(self, bucket: str, replicas: int | None = None) -> None:
        """Create the bucket if it is missing; of an existing one only replicas and direct reads are set."""
        with unavailable(f"bucket {bucket}"):
            try:
                config = (await self._link.js.stream_info(_stream(bucket))).config
            except NotFoundError:
                await self._link.js.create_key_value(
                    bucket=bucket,
                    history=HISTORY,
                    max_value_size=MAX_CONFIG_BYTES,
                    storage=StorageType.FILE,
                    replicas=replicas or 1,
                    direct=True,
                )
                log.info("bucket.created", bucket=bucket)
                return
            # Other properties stay as an operator set them. Direct reads are what a leaf without consumers watches by.
            wanted = {"allow_direct": True, "num_replicas": replicas or config.num_replicas}
            if any(getattr(config, name) != value for name, value in wanted.items()):
                await self._link.js.update_stream(config, **wanted)
                log.info("bucket.reconciled", bucket=bucket, **wanted)

    async def put(self, bucket: str, key: str, value: bytes, headers: Mapping[str, str] | None = None) -> int:
        """Write a value; returns its revision."""
        with unavailable(f"key {bucket}/{key}"):
            own = dict(headers) if headers else None
            ack = await self._link.js.publish(_subject(bucket, key), value, stream=_stream(bucket), headers=own)
        return ack.seq

    async def get(self, bucket: str, key: str) -> Entry | None:
        """Read a value from the bucket's leader, so that a writer reads what it wrote."""
        with unavailable(f"key {bucket}/{key}"):
            try:
                raw = await self._link.js.get_msg(_stream(bucket), subject=_subject(bucket, key))
            except NotFoundError:
                return None
        if any(name in (raw.headers or {}) for name in DELETED_BY):
            return None
        return Entry(key, raw.data or b"", raw.seq or 0)

    async def watch(
        self, bucket: str, handler: Callable[[Entry], None], keys: Sequence[str] | None = None
    ) -> BucketWatch:
        """Current values, then every change, of all keys or of these, for as long as the connection lives."""
        work = self._run(bucket, handler) if keys is None else self._run_keys(bucket, handler, keys)
        watch = BucketWatch(asyncio.create_task(work, name=f"watch-{bucket}"))
        self._watches.add(watch)
        return watch

    async def _run_keys(self, bucket: str, handler: Callable[[Entry], None], keys: Sequence[str]) -> None:
        async with asyncio.TaskGroup() as group:
            for key in keys:
                group.create_task(self._follow_key(bucket, key, handler), name=f"watch-{bucket}-{key}")

    async def _follow_key(self, bucket: str, key: str, handler: Callable[[Entry], None]) -> None:
        changed = asyncio.Event()

        async def hear(_message: object) -> None:
            changed.set()

        with contextlib.suppress(SubletError), unavailable(f"key {bucket}/{key}"):
            # No leaf lets its hub's `$KV` pass: a node receives its keys under the name that the hub's accounts give
            # them.
            subject = f"{NODE_KV}.{bucket}.{key}" if self._link.at_leaf else _subject(bucket, key)
            # Subscribed before the first read, so that a change in between is received.
            hearing = await self._link.client.subscribe(subject, cb=hear)
            forget = self._link.on_reconnect(changed.set)
            try:
                await self._reread(bucket, key, handler, changed)
            finally:
                forget()
                await hearing.unsubscribe()

    async def _reread(self, bucket: str, key: str, handler: Callable[[Entry], None], changed: asyncio.Event) -> None:
        newest, soon = _Newest(), list(SOON_S)
        while not self._link.closed:
            if changed.is_set():
                soon = list(SOON_S)
            # Before the read, not after, so that a change during the read causes another one.
            changed.clear()
            again = False
            try:
                if self._link.connected:
                    found = await self._read(bucket, key)
                    if newest.advance(found.sequence):
                        self._hand_over(found, _subject(bucket, ""), handler)
                    # An older answer may come from a server that lags, or from a recreated bucket: asking again tells
                    # which.
                    again = newest.behind
            except NotFoundError:
                # A key that was never written: most nodes have none of their own. No reason to ask more often.
                log.debug("config.no_key", key=key)
            except Unavailable as error:
                log.debug("config.awaited", key=key, why=str(error))
                again = True
            wait_s = AGAIN_S if again else soon.pop(0) if soon else REREAD_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await changed.wait()

    async def _read(self, bucket: str, key: str) -> Received:
        """Return the key's newest message, from any server that stores the bucket.

        Raises:
            NotFoundError: there is none.
            Unavailable: no answer.
        """
        with not_found_or_unavailable(f"key {bucket}/{key}"):
            raw = await self._link.js.get_msg(_stream(bucket), subject=_subject(bucket, key), direct=True)
        return Received(raw.subject or "", raw.data or b"", raw.headers or {}, raw.seq or 0)

    async def _run(self, bucket: str, handler: Callable[[Entry], None]) -> None:
        prefix = _subject(bucket, "")
        with contextlib.suppress(SubletError):  # the client is closed, and the process about to end
            async with contextlib.aclosing(  # type: ignore[type-var]  # an async generator, typed as the port says
                tail(self._link, _stream(bucket), f"{prefix}>", last_per_subject=True)
            ) as changes:
                async for received in changes:
                    self._hand_over(received, prefix, handler)

    def _hand_over(self, received: Received, prefix: str, handler: Callable[[Entry], None]) -> None:
        deleted = any(name in received.headers for name in DELETED_BY)
        key = received.subject.removeprefix(prefix)
        try:
            handler(Entry(key, None if deleted else received.data, received.sequence))
        except Exception:  # one bad value must not end the watch
            log.exception("bus.handler_failed", key=key)

    async def stop(self) -> None:
        """End all watches."""
        for watch in self._watches:
            await watch.stop()
        self._watches.clear()
