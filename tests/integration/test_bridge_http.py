"""The bridge's POST over real HTTP on loopback: what arrives, and how trouble looks."""

import pytest
from aiohttp import web

from sublet.bridge.http import posting
from sublet.bridge.request import Answer


async def serve(handler) -> tuple[web.AppRunner, str]:
    app = web.Application()
    app.router.add_post("/hook", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    return runner, f"http://{host}:{port}/hook"


async def test_body_and_headers_arrive_as_they_are():
    got = []

    async def take(request: web.Request) -> web.Response:
        got.append((await request.read(), request.headers["ce-id"], request.headers["content-type"]))
        return web.Response(status=202)

    runner, url = await serve(take)
    try:
        async with posting(url) as post:
            answer = await post(b'{"a": 1}', {"ce-id": "x/1", "content-type": "application/json"})
    finally:
        await runner.cleanup()
    assert answer == Answer(202)
    assert got == [(b'{"a": 1}', "x/1", "application/json")]


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (web.Response(status=429, headers={"Retry-After": "9"}), Answer(429, 9.0)),
        (web.Response(status=302, headers={"Location": "http://127.0.0.1:9/"}), Answer(302)),
    ],
    ids=["too many", "a redirect is not followed"],
)
async def test_the_status_is_passed_on(response, answer):
    async def take(_request: web.Request) -> web.Response:
        return response

    runner, url = await serve(take)
    try:
        async with posting(url) as post:
            assert await post(b"", {}) == answer
    finally:
        await runner.cleanup()


async def test_nobody_there_is_no_answer():
    async with posting("http://127.0.0.1:9/hook") as post:
        assert await post(b"", {}) == Answer(0)
