"""Whoever reaches the port of an agent asks as often, as slowly and as lengthily as he can."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import aiohttp
import pytest
from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily, Metric

from shared.adapters.health_http import MOST_CONNECTIONS, MOST_SCRAPES_A_SECOND, HealthServer
from shared.contracts.readiness import ServiceHealth

Until = Callable[[Callable[[], object]], Awaitable[None]]
WELL = [ServiceHealth(service="qrm", ok=True)]


class Counted:
    """How often the figures were put together."""

    def __init__(self) -> None:
        self.collections = 0

    def collect(self) -> Iterator[Metric]:
        self.collections += 1
        yield GaugeMetricFamily("attack_collections", "Of this test.", value=self.collections)


@pytest.fixture
async def server() -> AsyncIterator[HealthServer]:
    server = HealthServer(healths=lambda: WELL, connected=lambda: True)
    await server.start("127.0.0.1", 0)
    yield server
    await server.close()


@pytest.fixture
def counted() -> Iterator[Counted]:
    counted = Counted()
    REGISTRY.register(counted)
    counted.collections = 0
    yield counted
    REGISTRY.unregister(counted)


async def statuses(server: HealthServer, path: str, count: int, **options: Any) -> list[int]:
    async with aiohttp.ClientSession() as session:

        async def one() -> int:
            async with session.get(f"http://127.0.0.1:{server.port}{path}", **options) as response:
                await response.read()
                return response.status

        return [await one() for _ in range(count)]


async def test_however_often_the_figures_are_asked_for_they_are_put_together_once_a_second(
    server: HealthServer, counted: Counted
) -> None:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    found = await statuses(server, "/metrics", 300)
    seconds = loop.time() - began_s
    assert counted.collections <= seconds + 1
    assert set(found) <= {200, 429}
    assert found.count(200) <= MOST_SCRAPES_A_SECOND * (int(seconds) + 2)
    assert await statuses(server, "/livez", 5) == [200] * 5
    assert await statuses(server, "/readyz", 5) == [200] * 5


async def test_connections_that_say_nothing_keep_no_probe_out(server: HealthServer, until: Until) -> None:
    silent = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(3 * MOST_CONNECTIONS)]
    try:
        for _, writer in silent:
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
        assert await statuses(server, "/livez", 3) == [200] * 3
        await until(lambda: sum(reader.at_eof() for reader, _ in silent) >= 2 * MOST_CONNECTIONS)
    finally:
        for _, writer in silent:
            writer.close()


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("/metrics?" + "x" * 100_000, {}),
        ("/livez", {"headers": {"X-Long": "x" * 100_000}}),
    ],
)
async def test_a_request_has_a_bound(server: HealthServer, path: str, options: dict[str, Any]) -> None:
    assert await statuses(server, path, 1, **options) == [400]
    assert await statuses(server, "/livez", 1) == [200]
