"""An HTTPS server for AdmissionReviews: bounded bodies, so many at a time, and a certificate that may change."""

import asyncio
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from services.central.core.profiles.review import MAX_REVIEW_BYTES
from services.central.profiles.answers import Asked, Reply
from shared.errors import Unavailable

AT_A_TIME = 16
"""Bodies that are read and answered at a time; others wait. All of them at their largest are 128 MiB."""
READ_S = 5.0
"""A body that has not come by then is given up: the API server waits no longer."""
MOST_LINE_BYTES = 2048
WAITING = 128

Answer = Callable[[Asked, bytes], Awaitable[Reply]]


class WebhookServer:
    """Listens once it has a certificate. `port` is the real one, also where 0 was asked for."""

    def __init__(self, answer: Answer, *, host: str, port: int) -> None:
        self._answer, self._host, self.port = answer, host, port
        self._free = asyncio.Semaphore(AT_A_TIME)
        self._context: ssl.SSLContext | None = None
        self._runner: web.AppRunner | None = None
        self._shown: tuple[bytes, bytes] | None = None

    async def use(self, certificate: bytes, key: bytes) -> None:
        """Begin to listen with this certificate, or show it to who comes from now on.

        Raises:
            Unavailable: it cannot be used, or the address cannot be had.
        """
        if self._shown == (certificate, key):
            return
        context = self._context or ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            _load(context, certificate, key)
        except (ssl.SSLError, OSError) as error:
            raise Unavailable(f"the webhook's certificate cannot be used: {error}", reason="certificate") from error
        if self._context is None:
            await self._listen(context)
        self._context, self._shown = context, (certificate, key)

    async def close(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _listen(self, context: ssl.SSLContext) -> None:
        application = web.Application(client_max_size=MAX_REVIEW_BYTES)
        application.router.add_post("/mutate", self._mutate)
        application.router.add_post("/validate", self._validate)
        runner = web.AppRunner(
            application, access_log=None, max_line_size=MOST_LINE_BYTES, max_field_size=MOST_LINE_BYTES
        )
        await runner.setup()
        site = web.TCPSite(runner, self._host, self.port, ssl_context=context, backlog=WAITING)
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            raise Unavailable(
                f"webhook, {self._host} port {self.port}: {error.strerror or error}; choose another port",
                reason="webhook_port",
            ) from error
        self._runner = runner
        self.port = runner.addresses[0][1]

    async def _mutate(self, request: web.Request) -> web.Response:
        return await self._reply("mutate", request)

    async def _validate(self, request: web.Request) -> web.Response:
        return await self._reply("validate", request)

    async def _reply(self, asked: Asked, request: web.Request) -> web.Response:
        async with self._free:
            try:
                async with asyncio.timeout(READ_S):
                    text = await request.read()
            except TimeoutError:
                return web.Response(status=408, text="the body did not come in time\n")
            reply = await self._answer(asked, text)
        return web.Response(status=reply.status, body=reply.body, content_type="application/json")


def _load(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Python reads certificates from files alone: these are there for its owner, for a moment."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("tls.crt", "tls.key")]
        for path, content in zip(paths, (certificate, key), strict=True):
            path.touch(mode=0o600)
            path.write_bytes(content)
        context.load_cert_chain(str(paths[0]), str(paths[1]))
