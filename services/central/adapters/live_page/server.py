"""`LivePageServer` serves the live page on loopback: its files, and a stream of frames to each viewer."""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable
from importlib import resources
from urllib.parse import urlsplit

from aiohttp import web

from services.central.adapters.live_page.login import PageLogin
from services.central.ports.live_page import Frames
from shared.contracts.ids import NAME_PATTERN
from shared.errors import Refused, Unavailable

HOST = "127.0.0.1"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
COOKIE = "sublet-page"
MOST_LINE_BYTES = 2048
SEND_S = 30.0
"""A frame that a viewer has not taken after so long is its last."""
FILES = {"/": ("index.html", "text/html"), "/page.css": ("page.css", "text/css"),
         "/page.js": ("page.js", "text/javascript"), "/heat_map.js": ("heat_map.js", "text/javascript"),
         "/cpu_map.js": ("cpu_map.js", "text/javascript")}  # fmt: skip
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class LivePageServer:
    """Answers GET alone. `login` None: whoever reaches this loopback sees the page."""

    def __init__(self, port: int, login: PageLogin | None) -> None:
        self._port, self._login = port, login
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where the page is, without its login."""
        return f"http://{HOST}:{self._port}/"

    async def start(self, frames: Frames) -> None:
        """Listen.

        Raises:
            Unavailable: the port is taken, or the file with the address cannot be written.
        """
        self._frames = frames
        application = web.Application(client_max_size=1024, middlewares=[self._checked])
        for path in FILES:
            application.router.add_get(path, self._file)
        application.router.add_get("/v1/frames", self._stream)
        self._runner = web.AppRunner(
            application, access_log=None, max_line_size=MOST_LINE_BYTES, max_field_size=MOST_LINE_BYTES,
            shutdown_timeout=1.0,
        )  # fmt: skip
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, self._port)
        try:
            await site.start()
        except OSError as error:
            await self.close()
            raise Unavailable(
                f"central.page.port {self._port}: {error.strerror or error}; choose another port", reason="page_port"
            ) from error
        self._port = self._runner.addresses[0][1]
        if self._login is not None:
            self._login.publish(self.url)

    async def close(self) -> None:
        """Stop listening; open streams end."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @web.middleware
    async def _checked(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Let in who comes by a name of loopback with the login; every answer has the headers of a page of its own.

        A page of somebody else can make a browser send requests here under a name that leads to loopback: its Host is
        that name (DNS rebinding).
        """
        response = self._refusal(request) or await handler(request)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    def _refusal(self, request: web.Request) -> web.Response | None:
        """The answer to who is not let in, or comes with the login for the first time; None: go on."""
        if _host(request.headers.get("Host", "")) not in LOOPBACK:
            return web.Response(status=421, text="this page answers on loopback alone: use 127.0.0.1\n")
        if self._login is None:
            return None
        if request.path == "/" and self._login.lets_in(request.query.get("token", "")):
            # Out of the address bar and the history at once.
            response = web.Response(status=303, headers={"Location": "/"})
            response.set_cookie(COOKIE, self._login.token, httponly=True, samesite="Strict", path="/")
            return response
        if self._login.lets_in(request.cookies.get(COOKIE, "")):
            return None
        return web.Response(status=403, text="no login: open the address that `sublet up --page` printed\n")

    async def _file(self, request: web.Request) -> web.Response:
        name, content_type = FILES[request.path]
        body = (resources.files(__package__) / "web" / name).read_bytes()
        return web.Response(body=body, content_type=content_type, charset="utf-8")

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        """Frames as server-sent events, until the viewer goes."""
        node = request.query.get("node") or None
        if node is not None and not re.fullmatch(NAME_PATTERN, node):
            return web.Response(status=400, text="node: want the name of a node\n")
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        frames = self._frames(node)
        try:
            first = await anext(frames)
        except Refused as refusal:
            return web.Response(status=503, text=f"{refusal}\n", headers={"Retry-After": "10"})
        async with contextlib.aclosing(frames):
            await response.prepare(request)
            # A viewer that has gone, or reads nothing any more, leaves its place to others.
            with contextlib.suppress(ConnectionError, TimeoutError):
                await _send(response, first)
                async for frame in frames:
                    await _send(response, frame)
        return response


async def _send(response: web.StreamResponse, frame: bytes) -> None:
    async with asyncio.timeout(SEND_S):
        await response.write(b"data: " + frame + b"\n\n")


def _host(header: str) -> str | None:
    """The name in a Host header, without its port; None: there is none that can be read."""
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None
