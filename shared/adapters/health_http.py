"""What an orchestrator and Prometheus ask a process over HTTP: /livez, /readyz, /metrics."""

from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web
from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from shared.contracts.readiness import ServiceHealth
from shared.errors import Unavailable


class HealthServer:
    """Answers for one process. `port` is the real one, also where 0 was asked for."""

    def __init__(self, *, healths: Callable[[], Sequence[ServiceHealth]], connected: Callable[[], bool]) -> None:
        self._healths, self._connected = healths, connected
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Listen.

        Raises:
            Unavailable: the address cannot be had.
        """
        application = web.Application()
        application.router.add_get("/livez", self._livez)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host, port).start()
        except OSError as error:
            await self.close()
            raise Unavailable(
                f"http_host {host}, http_port {port}: {error.strerror or error}; choose another port, or 0 for none",
                reason="http_port",
            ) from error
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _livez(self, _request: web.Request) -> web.Response:
        """That this is answered at all says that the event loop turns."""
        return web.Response(text="ok\n")

    async def _readyz(self, _request: web.Request) -> web.Response:
        document = readiness(self._healths(), connected=self._connected())
        return web.json_response(document, status=200 if document["ready"] else 503)

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def readiness(healths: Sequence[ServiceHealth], *, connected: bool) -> dict[str, Any]:
    """Ready means: the bus is there and every service says that it is well; `reasons` names what is not."""
    reasons = [] if connected else ["bus: not connected"]
    if not healths:
        reasons.append("services: none built yet")
    reasons += [f"{health.service}: {health.why or 'not ok'}" for health in healths if not health.ok]
    return {"ready": not reasons, "reasons": reasons, "services": [health.model_dump() for health in healths]}
