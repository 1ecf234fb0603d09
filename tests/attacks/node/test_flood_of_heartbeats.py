"""One node sends heartbeats as fast as it can, true ones, broken ones and large ones: central hears all others."""

import asyncio
import contextlib
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from central_rig import central_on
from flood import flooding

from services.central.core.heartbeats.heartbeat_rate import HEARTBEAT_BURST, HEARTBEATS_PER_S
from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.readiness import Readiness
from shared.wire import Wire

pytestmark = pytest.mark.timeout(120)

HONEST = [f"honest-{number}" for number in range(200)]
SENT = 100_000
TRUE = b'{"v":1,"node":"hostile","boot_id":"0123456789abcdef","seq":%d,"sent_at":"2026-01-01T00:00:00Z","ready":true}'
KINDS = [TRUE, b"not a heartbeat %d", b'{"node":"honest-1","seq":%d}', b"%d" + b"x" * 60_000]


@pytest.fixture
def flood(nats_server: NatsServer, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that sends so many, and ends."""
    with flooding(tmp_path, nats_server.url, SENT, subject="sublet.cluster.v1.ready.hostile", kinds=KINDS) as process:
        yield process


async def test_central_hears_every_other_node(
    nats_server: NatsServer,
    flood: subprocess.Popen[bytes],
    until: Callable[[Callable[[], object]], Awaitable[None]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = SystemClock()
    bus, others = [await connect(nats_server.url, name=name, connect_timeout_s=20, clock=clock) for name in "ab"]
    wire = Wire(bus, clock, node="hub", service="central")
    app = central_on(wire, clock, {"central": {"rules": {"late_s": 30}}})
    work = asyncio.create_task(app.run())
    began_s, taken = clock.monotonic(), telemetry.TAKEN.labels("central", Readiness.kind)
    before = taken._value.get()
    try:
        senders = {name: Wire(others, clock, node=name, service="reporter") for name in HONEST}
        while flood.poll() is None:
            for name, sender in senders.items():
                await others.publish(f"sublet.cluster.v1.ready.{name}", sender.stamp(Readiness, ready=True).encode())
            await clock.sleep(0.2)  # what honest nodes leave between two heartbeats, for as long as the flood lasts
        await until(lambda: app.state()["nodes"]["ready"] == len(HONEST) + 1)
        too_often = telemetry.REFUSED.labels("central", Readiness.kind, "too_often")

        def of_hostile() -> float:
            """How many of its messages may have been looked at by now."""
            return HEARTBEAT_BURST + HEARTBEATS_PER_S * (clock.monotonic() - began_s) + 1

        await until(lambda: too_often._value.get() >= SENT - of_hostile())
        assert taken._value.get() - before >= len(HONEST)
        lines = [line for line in capsys.readouterr().out.splitlines() if "refused" in line]
        assert len(lines) <= of_hostile()
    finally:
        work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await work
        await app.close()
        await asyncio.gather(bus.drain(), others.drain())
