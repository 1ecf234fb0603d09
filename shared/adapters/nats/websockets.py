"""Imports the NATS client without aiohttp, which it needs only for websocket addresses (ws, wss).

Loading aiohttp takes longer than the rest of the client, and every command that uses the bus would wait for it.
"""

import sys

HIDDEN = "aiohttp"


def _without_websockets() -> None:
    """Import the client's transports as if aiohttp were not installed, which they support."""
    if HIDDEN in sys.modules:
        return
    sys.modules[HIDDEN] = None  # type: ignore[assignment]
    try:
        import nats.aio.transport  # noqa: F401 - for what it keeps of its imports
    finally:
        del sys.modules[HIDDEN]


def enable_websockets() -> None:
    """Give the client what it needs for addresses of websockets."""
    import aiohttp
    import multidict
    from nats.aio import transport

    vars(transport).update(aiohttp=aiohttp, multidict=multidict)


_without_websockets()
