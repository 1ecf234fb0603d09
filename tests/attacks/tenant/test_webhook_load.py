"""Whoever reaches the webhook's port sends slowly, at length, compressed, on many connections, or nothing at all."""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import aiohttp
import pytest
from prometheus_client import REGISTRY
from slow_machines import patience_s

from services.central.adapters.https import bodies
from services.central.adapters.https.certificate import renewed
from services.central.adapters.https.server import HttpsServer, ServerBounds
from services.central.core.profiles.review import MAX_REVIEW_BYTES, MAX_SLO_REVIEW_BYTES
from services.central.ports.https import HttpRequest, Reply
from services.central.profiles.answers import ProfileAnswers
from services.central.profiles.mirrors import ProfileMirrors
from services.central.slo.answers import SloConfigAnswers
from shared.adapters.clock import SystemClock
from shared.fakes.memory_objects import MemoryObjects

Until = Callable[[Callable[[], object]], Awaitable[None]]
NAME = "sublet-webhook.sublet-system.svc"
PATIENCE_S = patience_s(20.0)
"""Less than a handshake may take where nobody says how long."""
HEAD = b"POST /mutate HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"
Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Listening:
    """A server that answers with what it was sent, and whom it trusts."""

    server: HttpsServer
    trusted: ssl.SSLContext
    pipes: list[Pipe]

    async def connect(self, sent: bytes) -> Pipe:
        """A connection on which so much was sent."""
        pipe = await asyncio.open_connection(
            "127.0.0.1", self.server.port, ssl=self.trusted, server_hostname=NAME, limit=1 << 24
        )
        self.pipes.append(pipe)
        pipe[1].write(sent)
        await pipe[1].drain()
        return pipe

    async def posted(self, body: bytes, **headers: str) -> bytes:
        """The answer to a whole request."""
        url = f"https://127.0.0.1:{self.server.port}/mutate"
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=body, ssl=self.trusted, server_hostname=NAME, headers=headers) as response,
        ):
            assert response.status == 200
            return await response.read()


@asynccontextmanager
async def listening(bounds: ServerBounds | None = None) -> AsyncIterator[Listening]:
    async def echo(request: HttpRequest) -> Reply:
        return Reply(200, request.body)

    pair = renewed(None, [NAME], datetime.now(UTC))
    assert pair is not None
    api, clock = MemoryObjects(SystemClock()), SystemClock()
    answers = ProfileAnswers(ProfileMirrors(api, asyncio.Event()), api, clock)
    routes = [replace(route, answer=echo) for route in (*answers.routes, SloConfigAnswers(clock).route)]
    server = HttpsServer(routes, host="127.0.0.1", port=0, bounds=bounds)
    await server.use(pair.certificate, pair.key)
    one = Listening(server, ssl.create_default_context(cadata=pair.authorities.decode()), [])
    try:
        yield one
    finally:
        for _, writer in one.pipes:
            writer.transport.abort()
        await server.close()


def not_read() -> float:
    labels = {"kind": "mutate", "outcome": "not_read"}
    return REGISTRY.get_sample_value("sublet_central_pod_reviews_total", labels) or 0.0


@pytest.mark.parametrize("sent", [HEAD % 1000 + b"{", HEAD[:30], b""], ids=["body", "head", "nothing"])
async def test_sixty_four_who_send_slowly_hold_nobody_up(sent: bytes) -> None:
    async with listening() as one:
        for _ in range(64):
            await one.connect(sent)
        assert await one.posted(b"{}") == b"{}"


async def test_a_body_that_does_not_end_is_given_up() -> None:
    async with listening(ServerBounds(body_s=0.05)) as one:
        before = not_read()
        reader, _ = await one.connect(HEAD % 1000 + b"{")
        assert b" 408 " in await reader.readline()
        assert not_read() == before + 1


async def test_who_says_nothing_is_sent_away() -> None:
    async with listening(ServerBounds(handshake_s=0.05, idle_s=0.05)) as one:
        reader, _ = await one.connect(b"")
        assert await reader.read() == b""
        plain, writer = await asyncio.open_connection("127.0.0.1", one.server.port)
        async with asyncio.timeout(PATIENCE_S):
            assert await plain.read() == b""
        writer.transport.abort()


async def test_of_too_many_connections_those_that_nobody_asks_on_end() -> None:
    """The one that is used stays, though it is the oldest."""
    async with listening(ServerBounds(connections=8)) as one:
        reader, writer = await one.connect(HEAD % 2 + b"{}")
        assert await reader.readuntil(b"{}")
        first, _ = await one.connect(HEAD[:30])
        for _ in range(40):
            await one.connect(HEAD[:30])
        assert await first.read() == b""
        writer.write(HEAD % 2 + b"{}")
        assert b" 200 " in await reader.readuntil(b"{}")


async def test_who_sends_large_bodies_leaves_room_for_usual_ones(monkeypatch: pytest.MonkeyPatch, until: Until) -> None:
    monkeypatch.setattr(bodies, "SHARED_BYTES", 1 << 20)
    large = b" " * (bodies.OWN_BYTES + (1 << 19))
    async with listening() as one:
        holding = [await one.connect(HEAD % MAX_REVIEW_BYTES + large) for _ in range(2)]
        await until(lambda: one.server.large_bytes == 1 << 20)
        reader, _ = await one.connect(HEAD % len(large) + large)
        assert b" 503 " in await reader.readline()
        assert await one.posted(b" " * bodies.OWN_BYTES) == b" " * bodies.OWN_BYTES
        for _, writer in holding:
            writer.transport.abort()
        await until(lambda: one.server.large_bytes == 0)
        assert await one.posted(large) == large


async def test_a_body_that_would_become_large_is_not_unpacked() -> None:
    async with listening() as one:
        packed = gzip.compress(b" " * (100 << 20))
        assert await one.posted(packed, **{"Content-Encoding": "gzip"}) == packed


async def test_a_review_of_a_config_map_is_smaller_than_those_of_pods() -> None:
    """Its answer costs more memory by the byte."""
    body = b" " * (MAX_SLO_REVIEW_BYTES + 1)
    async with listening() as one:
        reader, _ = await one.connect(HEAD % len(body) + body)
        assert b" 200 " in await reader.readline()
        reader, _ = await one.connect(HEAD.replace(b"/mutate", b"/validate-slo-config") % len(body) + body)
        assert b" 413 " in await reader.readline()
