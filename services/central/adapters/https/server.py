"""An HTTPS server with bounded connections and bodies, and a certificate that may change.

Anyone who reaches the port may send. A sender that is slow or silent delays no other: bodies are read in parallel, and
with too many connections the one that was answered longest ago is closed.
"""

import asyncio
import ssl
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from aiohttp import web

from services.central.adapters.https.bodies import BodyBudget, BodyRefused
from services.central.ports.https import HttpRequest, Route
from shared.errors import Unavailable

MOST_LINE_BYTES = 2048
LINGER_S = 1.0
"""Seconds for the rest of a body that is no longer wanted."""
WAITING = 128


@dataclass(frozen=True, slots=True)
class ServerBounds:
    """How many connections there may be, and how long each may take."""

    connections: int = 512
    """More requests than an API server has in flight; TLS alone takes 0.3 MiB per connection."""
    handshake_s: float = 5.0
    body_s: float = 5.0
    """From the head of a request to its last byte."""
    idle_s: float = 120.0
    """Without a request; the API server itself closes connections that it did not use for 90 s."""


class HttpsServer:
    """Listens once it has a certificate. `port` is the real one, even if 0 was requested."""

    def __init__(self, routes: Sequence[Route], *, host: str, port: int, bounds: ServerBounds | None = None) -> None:
        self._routes, self._host, self.port = tuple(routes), host, port
        self._bounds, self._bodies = bounds or ServerBounds(), BodyBudget()
        self._context: ssl.SSLContext | None = None
        self._runner: web.AppRunner | None = None
        self._listening: asyncio.Server | None = None
        self._shown: tuple[bytes, bytes] | None = None
        self._clients, self._asked_for = b"", b""
        self._turns, self._answered = count(1), dict[object, int]()

    @property
    def large_bytes(self) -> int:
        """Return the bytes that large bodies hold now beyond their own share."""
        return self._bodies.shared_bytes

    def ask_for(self, authorities: bytes) -> None:
        """Request client certificates of these authorities, in PEM; clients with a certificate of others are
        refused.

        Takes effect with the next `use`. Clients without a certificate are answered as well, without a name.
        """
        self._clients = authorities

    async def use(self, certificate: bytes, key: bytes) -> None:
        """Begin to listen with this certificate, or show it to who comes from now on.

        Raises:
            Unavailable: it cannot be used, or the address cannot be had.
        """
        same = self._asked_for == self._clients
        if same and self._shown == (certificate, key):
            return
        # Authorities can be added to a context, and never taken away: other ones need a context of their own.
        context = (self._context if same else None) or ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            _load(context, certificate, key)
            if self._clients:
                context.verify_mode = ssl.CERT_OPTIONAL
                context.load_verify_locations(cadata=self._clients.decode())
        except (ssl.SSLError, OSError, ValueError) as error:
            raise Unavailable(f"the certificate cannot be used: {error}", reason="certificate") from error
        if not same:
            await self._stop_listening()
        if self._listening is None:
            await self._listen(context)
        self._context, self._shown, self._asked_for = context, (certificate, key), self._clients

    async def close(self) -> None:
        """Stop listening."""
        await self._stop_listening()

    async def _stop_listening(self) -> None:
        """Close all connections, including those admitted by a previous authority."""
        if self._listening is not None:
            self._listening.close()
        if self._runner is not None:
            await self._runner.cleanup()
        self._listening = self._runner = self._context = self._shown = None

    async def _listen(self, context: ssl.SSLContext) -> None:
        application = web.Application()
        for route in self._routes:
            application.router.add_route(route.method, route.path, self._handler(route))
        # Refuse compressed bodies: no client needs them, and a small one could expand to a large one.
        runner = web.AppRunner(
            application, access_log=None, max_line_size=MOST_LINE_BYTES, max_field_size=MOST_LINE_BYTES,
            keepalive_timeout=self._bounds.idle_s, lingering_time=LINGER_S, auto_decompress=False,
        )  # fmt: skip
        await runner.setup()
        try:
            self._listening = await asyncio.get_running_loop().create_server(
                self._connection, self._host, self.port, ssl=context, backlog=WAITING,
                ssl_handshake_timeout=self._bounds.handshake_s,
            )  # fmt: skip
        except OSError as error:
            await runner.cleanup()
            raise Unavailable(
                f"HTTPS, {self._host} port {self.port}: {error.strerror or error}; choose another port",
                reason="https_port",
            ) from error
        self._runner = runner
        self.port = self._listening.sockets[0].getsockname()[1]

    def _connection(self) -> asyncio.Protocol:
        """Return the protocol of a new connection; with too many connections, those that were answered longest ago
        are closed."""
        server = self._runner.server if self._runner else None
        if server is None:  # pragma: no cover - nobody comes before there is one
            raise Unavailable("not listening")
        there = server.connections
        self._answered = {one: self._answered[one] for one in there if one in self._answered}
        one_too_many = max(0, len(there) - self._bounds.connections + 1)
        # Connections that were never answered come first, the oldest first: the API server is answered all the time.
        for longest_ago in sorted(there, key=lambda one: self._answered.get(one, 0))[:one_too_many]:
            longest_ago.force_close()
        return server()

    def _handler(self, route: Route) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            return await self._reply(route, request)

        return handle

    async def _reply(self, route: Route, request: web.Request) -> web.Response:
        try:
            async with self._bodies.body(request.content, self._bounds.body_s, route.most_bytes) as text:
                reply = await route.answer(_read(request, text))
        except BodyRefused as refusal:
            route.lost("not_read")
            return web.Response(status=refusal.status, text=f"{refusal}\n")
        except Exception:
            # The client learns that it failed, and continues without an answer.
            route.lost("failed")
            raise
        self._answered[request.protocol] = next(self._turns)
        return web.Response(status=reply.status, body=reply.body, content_type="application/json")


def _read(request: web.Request, text: bytes) -> HttpRequest:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return HttpRequest(request.rel_url.raw_path, text, dict(request.query), headers, _client(request))


def _client(request: web.Request) -> str | None:
    """The first common name of the certificate that was shown, and found good."""
    shown = request.transport.get_extra_info("peercert") if request.transport is not None else None
    subject = (shown or {}).get("subject", ())
    return next((value for part in subject for name, value in part if name == "commonName"), None)


def _load(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a certificate. Python reads certificates only from files, so they exist briefly, readable only by their
    owner."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("tls.crt", "tls.key")]
        for path, content in zip(paths, (certificate, key), strict=True):
            path.touch(mode=0o600)
            path.write_bytes(content)
        context.load_cert_chain(str(paths[0]), str(paths[1]))
