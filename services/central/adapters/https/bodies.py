"""Bodies of requests, read side by side within a common bound of bytes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from aiohttp import StreamReader

from shared.errors import SubletError

OWN_BYTES = 128 << 10
"""What each body may hold without a reservation: a usual pod has a tenth of it, so senders of large bodies do not
delay it."""
SHARED_BYTES = 64 << 20
"""Bytes beyond that in all bodies together: eight of the largest."""


class BodyRefused(SubletError):
    """A body that is not read, with its HTTP status."""

    def __init__(self, message: str, status: HTTPStatus) -> None:
        super().__init__(message, reason="body")
        self.status = status


class BodyBudget:
    """Counts the bytes of all bodies that are being read or answered."""

    def __init__(self) -> None:
        self.shared_bytes = 0
        """Held now, of what is beyond each body's own."""

    @asynccontextmanager
    async def body(self, content: StreamReader, within_s: float, most_bytes: int) -> AsyncIterator[bytes]:
        """Return the whole body, which counts until the caller is done with it.

        Raises:
            BodyRefused: too large, too slow, or the large ones together hold too much.
        """
        parts, size, beyond = list[bytes](), 0, 0
        try:
            try:
                async with asyncio.timeout(within_s):
                    # Count received bytes, not announced ones, so a client that announces much and sends nothing
                    # reserves nothing.
                    async for part in content.iter_any():
                        size += len(part)
                        more = max(0, size - OWN_BYTES) - beyond
                        if size > most_bytes:
                            why = f"more than {most_bytes} bytes; no request of this kind has so many"
                            raise BodyRefused(why, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
                        if self.shared_bytes + more > SHARED_BYTES:
                            why = f"large bodies hold {SHARED_BYTES} bytes together already; send it again"
                            raise BodyRefused(why, HTTPStatus.SERVICE_UNAVAILABLE)
                        self.shared_bytes, beyond = self.shared_bytes + more, beyond + more
                        parts.append(part)
            except TimeoutError as error:
                why = f"{size} bytes came within {within_s:g} s, and not the last one"
                raise BodyRefused(why, HTTPStatus.REQUEST_TIMEOUT) from error
            yield b"".join(parts)
        finally:
            self.shared_bytes -= beyond
