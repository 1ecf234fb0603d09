"""Configuration buckets (JetStream key-value): written by one, watched by all."""

import asyncio
import contextlib
from collections.abc import Callable

import structlog
from nats.js.api import StorageType
from nats.js.errors import NotFoundError

from shared.adapters.nats_link import Link, unavailable
from shared.adapters.nats_reader import tail
from shared.errors import SubletError
from shared.ports import Entry, Received

log = structlog.get_logger()

HISTORY = 10
MAX_VALUE_BYTES = 64 << 10
DELETED_BY = ("KV-Operation", "Nats-Marker-Reason")
"""Headers of a marker that stands for a deleted key: set by a client, or by the server."""


def _stream(bucket: str) -> str:
    return f"KV_{bucket}"


def _subject(bucket: str, key: str) -> str:
    return f"$KV.{bucket}.{key}"


class Watch:
    """A running watch; `stop` ends it."""

    def __init__(self, work: "asyncio.Task[None]") -> None:
        self._work = work

    async def stop(self) -> None:
        """No further call to the handler after this returns."""
        self._work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._work


class ConfigStore:
    """What the bus offers over buckets, on one connection."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._watches: set[Watch] = set()

    async def ensure(self, bucket: str) -> None:
        """Create the bucket where it is missing; an existing one stays as it is."""
        with unavailable(f"bucket {bucket}"):
            try:
                await self._link.js.stream_info(_stream(bucket))
            except NotFoundError:
                await self._link.js.create_key_value(
                    bucket=bucket, history=HISTORY, max_value_size=MAX_VALUE_BYTES, storage=StorageType.FILE
                )
                log.info("bucket.created", bucket=bucket)

    async def put(self, bucket: str, key: str, value: bytes) -> int:
        """Write a value; returns its revision."""
        with unavailable(f"key {bucket}/{key}"):
            ack = await self._link.js.publish(_subject(bucket, key), value, stream=_stream(bucket))
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

    async def watch(self, bucket: str, handler: Callable[[Entry], None]) -> Watch:
        """Current values, then every change, for as long as the connection lives."""
        watch = Watch(asyncio.create_task(self._run(bucket, handler), name=f"watch-{bucket}"))
        self._watches.add(watch)
        return watch

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
