"""The live page over HTTP: who is let in, what a browser is told, and files that agree with the code."""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path

import aiohttp
import pytest

from services.central.adapters.live_page import server as of_server
from services.central.adapters.live_page.login import FILE, PageLogin
from services.central.adapters.live_page.server import FILES, LivePageServer
from services.central.core.heartbeats.readiness import NODE_STATES
from services.central.core.live_page.fleet import CLASSES, COLUMNS
from shared.errors import Refused, Unavailable
from sublet.pages.colours import variables

WEB = resources.files(of_server.__package__) / "web"


async def two_frames(node: str | None) -> AsyncGenerator[bytes, None]:
    yield json.dumps({"node": node}).encode()
    yield b"{}"


async def refused(node: str | None) -> AsyncGenerator[bytes, None]:
    if node is None:
        raise Refused("too many viewers", reason="too_many")
    yield b"{}"


@asynccontextmanager
async def served(login: PageLogin | None) -> AsyncIterator[LivePageServer]:
    server = LivePageServer(0, login)
    await server.start(two_frames)
    try:
        yield server
    finally:
        await server.close()


async def test_the_address_in_the_file_lets_in_once_and_the_cookie_from_then_on(tmp_path: Path) -> None:
    async with served(PageLogin.made(tmp_path)) as server:
        url = json.loads((tmp_path / FILE).read_text())["url"]
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as browser:
            async with browser.get(url) as page:
                assert (page.status, str(page.url)) == (200, server.url)
                assert "default-src 'none'" in page.headers["Content-Security-Policy"]
            async with browser.get(f"{server.url}v1/frames?node=n1") as stream:
                assert await stream.text() == 'data: {"node": "n1"}\n\ndata: {}\n\n'
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("path", [*FILES, "/v1/frames"])
@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ("", {}, 403),
        ("?token=", {}, 403),
        ("?token=%00", {}, 403),
        ("", {"Cookie": "sublet-page=guess"}, 403),
        ("", {"Host": "evil.example"}, 421),
        ("", {"Host": "127.0.0.1.evil.example"}, 421),
        ("", {"Host": "[::1"}, 421),
    ],
)
async def test_nothing_is_shown_without_the_login_or_under_another_name(
    tmp_path: Path, path: str, query: str, headers: dict[str, str], status: int
) -> None:
    async with (
        served(PageLogin.made(tmp_path)) as server,
        aiohttp.ClientSession() as session,
        session.get(f"{server.url.rstrip('/')}{path}{query}", headers=headers) as answer,
    ):
        assert answer.status == status


async def test_without_a_login_the_name_is_checked_all_the_same() -> None:
    async with served(None) as server, aiohttp.ClientSession() as session:
        async with session.get(server.url) as page:
            assert page.status == 200
        async with session.get(server.url, headers={"Host": "evil.example"}) as page:
            assert page.status == 421


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
async def test_it_reads_only(method: str) -> None:
    async with (
        served(None) as server,
        aiohttp.ClientSession() as session,
        session.request(method, server.url) as answer,
    ):
        assert answer.status == 405


@pytest.mark.parametrize("node", ["../x", "A", "a" * 300, "a%0ab", "%ff"])
async def test_a_name_that_no_node_has_is_refused(node: str) -> None:
    async with (
        served(None) as server,
        aiohttp.ClientSession() as session,
        session.get(f"{server.url}v1/frames?node={node}") as answer,
    ):
        assert (answer.status, await answer.text()) == (400, "node: want the name of a node\n")


async def test_one_viewer_too_many_is_told_so() -> None:
    server = LivePageServer(0, None)
    await server.start(refused)
    try:
        async with aiohttp.ClientSession() as session, session.get(f"{server.url}v1/frames") as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "10")
    finally:
        await server.close()


async def test_a_taken_port_is_named() -> None:
    async with served(None) as server:
        port = int(server.url.rstrip("/").rpartition(":")[2])
        with pytest.raises(Unavailable, match=f"central.page.port {port}"):
            await LivePageServer(port, None).start(two_frames)


def test_the_files_are_those_that_are_served() -> None:
    assert sorted(path.name for path in WEB.iterdir()) == sorted(name for name, _ in FILES.values())


def test_the_page_has_the_colours_of_the_other_pages_and_asks_nobody_else() -> None:
    css = (WEB / "page.css").read_text()
    assert css.count(f"color-scheme:light;{variables(dark=False)}") == 1
    assert css.count(f"color-scheme:dark;{variables(dark=True)}") == 2
    for name, _ in FILES.values():
        text = (WEB / name).read_text()
        assert not re.search(r"https?://|innerHTML|outerHTML|insertAdjacentHTML|eval\(|document\.write", text), name


def test_the_page_knows_the_columns_states_and_classes() -> None:
    text = "".join((WEB / name).read_text() for name, _ in FILES.values())
    used = set(re.findall(r"\bnode\.(\w+)", text)) - {"name"}
    assert used <= set(COLUMNS)
    for state in NODE_STATES:
        assert re.search(rf"\b{state}\b", text), state
    assert re.search(r'CLASS_COLOURS = \["system", "dedicated", "shared", "reclaimed"\]', text)
    assert [name.removesuffix("_cores") for name in CLASSES] == ["system", "dedicated", "shared", "reclaimed"]
