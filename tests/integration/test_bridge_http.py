"""The bridge's POST over real HTTP on loopback: what arrives, and how trouble looks."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest
from aiohttp import web

from shared.adapters.clock import SystemClock
from shared.contracts.eviction import EvictionEvent
from shared.contracts.ids import intent_id
from sublet.bridge.http import posting
from sublet.bridge.request import HttpAnswer

EVENT = EvictionEvent(
    node="n", boot_id="0" * 8, seq=1, sent_at=datetime(2026, 1, 1, tzinfo=UTC), pod="p", namespace="default",
    intent_id=intent_id("n", "aa", "p", 1), pod_uid="aa", qos="reclaimed_cores", plugin="p", scope="memory",
    phase="intended",
)  # fmt: skip


async def serve(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> tuple[web.AppRunner, str]:
    app = web.Application()
    app.router.add_post("/hook", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    return runner, f"http://{host}:{port}/hook"


async def test_body_and_headers_arrive_as_they_are() -> None:
    got = []

    async def take(request: web.Request) -> web.Response:
        got.append((await request.read(), request.headers["ce-id"], request.headers["content-type"]))
        return web.Response(status=202)

    runner, url = await serve(take)
    try:
        async with posting(url, None, SystemClock()) as post:
            answer = await post(EVENT, {})
    finally:
        await runner.cleanup()
    assert answer == HttpAnswer(202)
    assert got == [(EVENT.encode(), EVENT.event_id, "application/json")]


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        (web.Response(status=429, headers={"Retry-After": "9"}), HttpAnswer(429, 9.0)),
        (web.Response(status=302, headers={"Location": "http://127.0.0.1:9/"}), HttpAnswer(302)),
    ],
    ids=["too many", "a redirect is not followed"],
)
async def test_the_status_is_passed_on(response: web.Response, answer: HttpAnswer) -> None:
    async def take(_request: web.Request) -> web.Response:
        return response

    runner, url = await serve(take)
    try:
        async with posting(url, None, SystemClock()) as post:
            assert await post(EVENT, {}) == answer
    finally:
        await runner.cleanup()


async def test_nobody_there_is_no_answer_and_it_is_said_who_and_why_without_a_secret() -> None:
    async with posting("http://me:word@127.0.0.1:9/hook?key=word", None, SystemClock()) as post:
        answer = await post(EVENT, {})
    assert (answer.status, answer.words) == (0, "no answer from http://127.0.0.1:9: connection refused")


async def test_a_receiver_that_closes_the_connection_is_no_answer() -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.close()

    async with await asyncio.start_server(close, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with posting(f"http://127.0.0.1:{port}/", None, SystemClock()) as post:
            answer = await post(EVENT, {})
    assert answer.words == f"no answer from http://127.0.0.1:{port}: the connection was closed"
