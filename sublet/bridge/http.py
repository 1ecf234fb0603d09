"""POST over HTTP, with a time limit and without following a redirect to somewhere else."""

import contextlib
import email.utils
import os
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime

import aiohttp

from shared.contracts.eviction import EvictionEvent
from shared.ports import Clock
from sublet.bridge.address import shown_address
from sublet.bridge.bridge import Post
from sublet.bridge.request import HttpAnswer, request_headers

TIMEOUT_S = 15.0


@contextlib.asynccontextmanager
async def posting(url: str, key: bytes | None, clock: Clock) -> AsyncIterator[Post]:
    """A `Post` to one address, on one connection pool; signed with a key."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)) as session:

        async def post(event: EvictionEvent, trace: Mapping[str, str]) -> HttpAnswer:
            body = event.encode()  # what was checked, and no second meaning of the same bytes
            headers = request_headers(event, body, trace, key, int(clock.wall().timestamp()))
            try:
                # A redirect could lead the events, and their signature, to an address that the operator has not named.
                async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                    return HttpAnswer(response.status, retry_after_s(response.headers.get("retry-after")))
            except (aiohttp.ClientError, TimeoutError) as error:
                return HttpAnswer(0, why=f"no answer from {shown_address(url)}: {_reason(error)}")

        yield post


def _reason(error: Exception) -> str:
    """Why there was no answer; never the library's own words, in which the whole address may stand."""
    if isinstance(error, TimeoutError):
        return f"nothing within {TIMEOUT_S:g} s"
    if isinstance(error, aiohttp.ClientSSLError):
        return "its certificate is not accepted"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "no such host"
    if isinstance(error, aiohttp.ClientConnectorError):
        number = error.os_error.errno
        return os.strerror(number).lower() if number else "it cannot be reached"
    return "the connection was closed"


def retry_after_s(text: str | None, now: datetime | None = None) -> float | None:
    """The header in either of its forms, seconds or a date; None where it is missing or cannot be read."""
    if text is None:
        return None
    with contextlib.suppress(ValueError):
        return float(text)
    with contextlib.suppress(ValueError, TypeError):
        return (email.utils.parsedate_to_datetime(text) - (now or datetime.now(UTC))).total_seconds()
    return None
