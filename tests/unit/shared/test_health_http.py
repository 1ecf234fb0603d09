"""What an orchestrator hears over HTTP."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from shared import telemetry
from shared.adapters.health_http import HealthServer
from shared.contracts.readiness import ServiceHealth
from shared.errors import Unavailable


@dataclass
class Process:
    """What the server is asked about."""

    healths: list[ServiceHealth] = field(default_factory=lambda: [ServiceHealth(service="qrm", ok=True)])
    connected: bool = True
    url: str = ""

    async def get(self, path: str) -> tuple[int, str]:
        async with aiohttp.ClientSession() as session, session.get(self.url + path) as response:
            return response.status, await response.text()

    async def ready(self) -> tuple[int, dict[str, Any]]:
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/readyz") as response:
            return response.status, await response.json()


@pytest.fixture
async def process() -> AsyncIterator[Process]:
    process = Process()
    server = HealthServer(healths=lambda: process.healths, connected=lambda: process.connected)
    await server.start("127.0.0.1", 0)
    process.url = f"http://127.0.0.1:{server.port}"
    yield process
    await server.close()


async def test_a_living_process_says_so_whatever_its_services_say(process: Process) -> None:
    process.healths = [ServiceHealth(service="qrm", ok=False)]
    process.connected = False
    assert await process.get("/livez") == (200, "ok\n")


async def test_ready_means_every_service_is_well_and_the_bus_is_there(process: Process) -> None:
    status, document = await process.ready()
    assert (status, document["ready"], document["reasons"]) == (200, True, [])
    assert document["services"] == [{"service": "qrm", "ok": True, "why": "", "input_age_s": None}]


@pytest.mark.parametrize(
    ("healths", "connected", "reasons"),
    [
        ([ServiceHealth(service="qrm", ok=True)], False, ["bus: not connected"]),
        ([ServiceHealth(service="qrm", ok=False, why="no fresh advice")], True, ["qrm: no fresh advice"]),
        ([ServiceHealth(service="qrm", ok=False)], True, ["qrm: not ok"]),
        ([], True, ["services: none built yet"]),
        (
            [ServiceHealth(service="a", ok=False, why="x"), ServiceHealth(service="b", ok=True)],
            False,
            ["bus: not connected", "a: x"],
        ),
    ],
    ids=["bus away", "service unwell", "no reason given", "still starting", "both"],
)
async def test_not_ready_is_503_with_the_reasons(
    process: Process, healths: list[ServiceHealth], connected: bool, reasons: list[str]
) -> None:
    process.healths, process.connected = healths, connected
    status, document = await process.ready()
    assert (status, document["ready"], document["reasons"]) == (503, False, reasons)


async def test_metrics_are_in_the_text_format_of_prometheus(process: Process) -> None:
    telemetry.TAKEN.labels("test_http", "advice").inc()
    status, text = await process.get("/metrics")
    assert status == 200
    assert 'sublet_messages_taken_total{message="advice",service="test_http"} 1.0' in text
    assert "_created" not in text


async def test_a_port_that_is_taken_is_named_with_the_way_out(process: Process) -> None:
    port = int(process.url.rpartition(":")[2])
    second = HealthServer(healths=list, connected=lambda: True)
    with pytest.raises(Unavailable, match=f"http_port {port}: .*; choose another port, or 0 for none"):
        await second.start("127.0.0.1", port)
