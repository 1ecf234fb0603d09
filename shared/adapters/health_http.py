"""An HTTP server answers orchestrators and Prometheus: /livez, /readyz, /metrics.

Everybody who reaches the port may ask, and the event loop of the services answers. Therefore figures are put together
once a second at most, a request has a bound, and the oldest of too many connections ends, so that a probe gets through.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web
from prometheus_client import disable_created_metrics, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from shared.contracts.readiness import ServiceHealth
from shared.errors import Unavailable

SCRAPE_S = 1.0
"""The greatest age of the figures; a scrape that comes sooner gets the same ones again."""
MOST_CONNECTIONS = 32
MOST_SCRAPES_A_SECOND = 20
"""Further scrapes within the second are refused; probes are always answered."""
MOST_LINE_BYTES = 2048
"""The longest request line, and the longest header."""
MOST_BODY_BYTES = 1024
KEEP_OPEN_S = 75.0

# Otherwise each counter and histogram has a second series, the time at which it was made, which no query here reads.
disable_created_metrics()  # type: ignore[no-untyped-call]


class HealthServer:
    """Answers for one process. `port` is the real one, also where 0 was asked for."""

    def __init__(self, *, healths: Callable[[], Sequence[ServiceHealth]], connected: Callable[[], bool]) -> None:
        self._healths, self._connected = healths, connected
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self._figures, self._figures_at_s = b"", float("-inf")
        self._scrapes, self._second = 0, 0
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises:
            Unavailable: the address cannot be had.
        """
        application = web.Application(client_max_size=MOST_BODY_BYTES)
        application.router.add_get("/livez", self._livez)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(
            application, access_log=None, max_line_size=MOST_LINE_BYTES, max_field_size=MOST_LINE_BYTES,
            keepalive_timeout=KEEP_OPEN_S, lingering_time=0.0,
        )  # fmt: skip
        await self._runner.setup()
        try:
            self._server = await asyncio.get_running_loop().create_server(self._connection, host, port)
        except OSError as error:
            await self.close()
            raise Unavailable(
                f"http_host {host}, http_port {port}: {error.strerror or error}; choose another port, or 0 for none",
                reason="http_port",
            ) from error
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
        if self._runner is not None:
            await self._runner.cleanup()

    def _connection(self) -> asyncio.Protocol:
        """Return the protocol of a new connection; with too many connections, it replaces the oldest."""
        server = self._runner.server if self._runner else None
        if server is None:  # pragma: no cover - nobody listens before the runner is set up
            raise Unavailable("not listening")
        for oldest in server.connections[: max(0, len(server.connections) - MOST_CONNECTIONS + 1)]:
            oldest.force_close()
        return server()

    def _one_too_many(self) -> bool:
        """Whether the figures have been asked for too often in this second."""
        second = int(asyncio.get_running_loop().time())
        self._scrapes = self._scrapes + 1 if second == self._second else 1
        self._second = second
        return self._scrapes > MOST_SCRAPES_A_SECOND

    async def _livez(self, _request: web.Request) -> web.Response:
        """Answer: this shows that the event loop runs."""
        return web.Response(text="ok\n")

    async def _readyz(self, _request: web.Request) -> web.Response:
        document = readiness(self._healths(), connected=self._connected())
        return web.json_response(document, status=200 if document["ready"] else 503)

    async def _metrics(self, _request: web.Request) -> web.Response:
        if self._one_too_many():
            return web.Response(
                status=429, text="too many scrapes: ask again in a second\n", headers={"Retry-After": "1"}
            )
        now_s = asyncio.get_running_loop().time()
        if now_s - self._figures_at_s >= SCRAPE_S:
            self._figures, self._figures_at_s = generate_latest(), now_s
        return web.Response(body=self._figures, headers={"Content-Type": CONTENT_TYPE_LATEST})


def readiness(healths: Sequence[ServiceHealth], *, connected: bool) -> dict[str, Any]:
    """Return ready if the bus is connected and every service reports that it is well; `reasons` names the failures."""
    reasons = [] if connected else ["bus: not connected"]
    if not healths:
        reasons.append("services: none built yet")
    reasons += [f"{health.service}: {health.why or 'not ok'}" for health in healths if not health.ok]
    return {"ready": not reasons, "reasons": reasons, "services": [health.model_dump() for health in healths]}
