"""Whom an HTTPS server of central lets in by a certificate, and under which name, as authorities change."""

import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
from client_authority import ClientAuthority

from services.central.adapters.https.certificate import renewed
from services.central.adapters.https.server import HttpsServer
from services.central.ports.https import HttpRequest, Reply, Route
from shared.errors import Unavailable

NOW = datetime.now(UTC)
NAME = "server.test.svc"
PAIR = renewed(None, (NAME,), NOW)


@pytest.fixture
async def server() -> AsyncIterator[HttpsServer]:
    """Answers with the name under which the sender came."""

    async def answer(request: HttpRequest) -> Reply:
        return Reply(200, (request.client or "nobody").encode())

    listening = HttpsServer([Route("GET", "/{rest:.*}", 0, answer, lambda _: None)], host="127.0.0.1", port=0)
    yield listening
    await listening.close()


async def use(server: HttpsServer, authority: ClientAuthority) -> None:
    assert PAIR is not None
    server.ask_for(authority.pem)
    await server.use(PAIR.certificate, PAIR.key)


async def who(server: HttpsServer, shown: Path | None) -> str:
    """Under which name the server sees who shows this certificate; "refused" where it does not let him in."""
    assert PAIR is not None
    trusted = ssl.create_default_context(cadata=PAIR.authorities.decode())
    if shown is not None:
        trusted.load_cert_chain(shown)
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://127.0.0.1:{server.port}/", ssl=trusted, server_hostname=NAME) as response,
        ):
            return await response.text()
    except aiohttp.ClientError:
        return "refused"


async def test_who_comes_is_named_by_a_certificate_of_the_authority_alone(server: HttpsServer, tmp_path: Path) -> None:
    proxy, stranger = ClientAuthority("proxy"), ClientAuthority("stranger")
    await use(server, proxy)
    assert await who(server, proxy.client(tmp_path, "front-proxy-client")) == "front-proxy-client"
    assert await who(server, stranger.client(tmp_path, "front-proxy-client")) == "refused"
    assert await who(server, None) == "nobody"


async def test_the_next_authority_takes_the_place_of_the_one_before(server: HttpsServer, tmp_path: Path) -> None:
    before, after = ClientAuthority("before"), ClientAuthority("after")
    await use(server, before)
    port = server.port
    await use(server, after)
    assert server.port == port
    assert await who(server, before.client(tmp_path, "old")) == "refused"
    assert await who(server, after.client(tmp_path, "new")) == "new"


async def test_authorities_that_cannot_be_read_change_nothing(server: HttpsServer, tmp_path: Path) -> None:
    assert PAIR is not None
    proxy = ClientAuthority("proxy")
    await use(server, proxy)
    for junk in (b"junk", b"\xff", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"):
        server.ask_for(junk)
        with pytest.raises(Unavailable, match="cannot be used"):
            await server.use(PAIR.certificate, PAIR.key)
        assert await who(server, proxy.client(tmp_path, "still")) == "still"


async def test_without_authorities_nobody_is_asked_for_a_name(server: HttpsServer, tmp_path: Path) -> None:
    assert PAIR is not None
    await server.use(PAIR.certificate, PAIR.key)
    assert await who(server, ClientAuthority("any").client(tmp_path, "any")) == "nobody"
