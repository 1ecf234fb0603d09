"""A tenant's pod shows a page of metrics that is endless, slow, packed, elsewhere or junk: it costs that pod alone."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from services.central.adapters.metrics_api import page_reader
from services.central.adapters.metrics_api.page_reader import MOST_BYTES, read_page
from services.central.core.custom_metrics.cluster_objects import MeteredSeen
from services.central.core.custom_metrics.series import MeteredObject, MetricTable
from services.central.core.custom_metrics.store import MetricStore, StoreBounds
from services.central.custom_metrics.mirrors import MetricsMirrors
from services.central.custom_metrics.pages import PodPages
from shared.adapters.clock import SystemClock
from shared.errors import Unavailable
from shared.fakes.memory_objects import MemoryObjects

Page = Callable[[web.Request], Awaitable[web.StreamResponse]]
SECRET = "# TYPE secret gauge\nsecret 1\n"
BOUNDS = StoreBounds(series=1000, samples=10_000, series_of_object=8)


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    while True:
        await response.write(b"a" * 65536)


async def silent(request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def elsewhere(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("/secret")


async def packed(request: web.Request) -> web.StreamResponse:
    body = gzip.compress(b"# TYPE q gauge\n" + b"q 1\n" * (64 << 20 >> 2))
    return web.Response(body=body[:MOST_BYTES], headers={"Content-Encoding": "gzip"})


async def junk(request: web.Request) -> web.StreamResponse:
    return web.Response(body=b"\xff\x00# TYPE q gauge\nq{{{ \nq 1e999\n" + b'q{a="' * 5000)


async def many(request: web.Request) -> web.StreamResponse:
    lines = "".join(f'q{{selector_n="{number}"}} 1\n' for number in range(2000))
    return web.Response(text=f"# TYPE q gauge\n{lines}")


async def secret(request: web.Request) -> web.StreamResponse:
    return web.Response(text=SECRET)


@asynccontextmanager
async def pod(page: Page) -> AsyncIterator[str]:
    """A pod's own server, and where its page is."""
    application = web.Application()
    application.router.add_get("/metrics", page)
    application.router.add_get("/secret", secret)
    runner = web.AppRunner(application, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/metrics"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("page", [endless, silent, elsewhere], ids=lambda page: str(page.__name__))
async def test_such_a_page_is_not_read(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_reader, "WITHIN_S", 0.5)
    async with pod(page) as address:
        with pytest.raises(Unavailable):
            await read_page(address)


@pytest.mark.parametrize("page", [packed, junk], ids=lambda page: str(page.__name__))
async def test_such_a_page_says_nothing(page: Page) -> None:
    async with pod(page) as address:
        assert (await looked_at(address)).series == 0


async def test_a_page_of_many_series_takes_no_room_of_others() -> None:
    async with pod(many) as address:
        store = await looked_at(address)
    assert store.series == BOUNDS.series_of_object
    assert len(store.index.objects(MetricTable("q", None, "d"))[None]) == BOUNDS.series_of_object


async def looked_at(address: str) -> MetricStore:
    mirrors = MetricsMirrors(MemoryObjects(SystemClock()))
    mirrors._index("1", MeteredSeen(MeteredObject("pods", "d", "web"), "n1", {}, address))
    store = MetricStore(bounds=BOUNDS)
    await PodPages(store, mirrors, read_page, SystemClock(), keep_s=300).read_all()
    return store
