"""Reads a pod's page of metrics over HTTP: bounded in time and size, and never sent on to another address."""

import aiohttp

from shared.errors import Unavailable

MOST_BYTES = 128 << 10
WITHIN_S = 3.0
OK = 200


async def read_page(address: str) -> str:
    """Return the text of a page.

    Raises:
        Unavailable: no answer in time, or not a page of at most `MOST_BYTES`.
    """
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=WITHIN_S), auto_decompress=False) as session,
            session.get(address, allow_redirects=False, headers={"Accept-Encoding": "identity"}) as response,
        ):
            if response.status != OK:
                raise Unavailable(f"{address}: status {response.status}, want {OK}", reason="page")
            found = bytearray()
            async for part in response.content.iter_any():
                found += part
                if len(found) > MOST_BYTES:
                    raise Unavailable(f"{address}: more than {MOST_BYTES} bytes; show fewer series", reason="page")
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        raise Unavailable(f"{address}: {type(error).__name__} {error}", reason="page") from error
    return found.decode("utf-8", "replace")
