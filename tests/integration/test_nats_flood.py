"""A flood into a stream is refused by the server itself before it makes everybody else wait for the disk."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import nats
import pytest
from bus_rights_rig import configuration
from nats.aio.client import Client

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.bus.subjects import EVENTS_STREAM, STREAMS
from shared.ports import DurableMessage

EVENT = "sublet.cluster.v1.event.eviction.created.team-a"
COMPOSE = Path(__file__).parents[2] / "deploy/compose/nats.conf"
FLOOD, BOUND = 5_000, "max_buffered_msgs:"
"""Fewer than a server buffers by itself: without the bound it would keep all of them."""


class ShortQueueServer(NatsServer):
    """One that buffers next to nothing for a stream, so that any disk is a slow one."""

    def _config(self) -> str:
        return super()._config().replace("sync_interval: always", f"sync_interval: always, {BOUND} 4")


@pytest.fixture
def short(tmp_path: Path) -> Iterator[NatsServer]:
    server = ShortQueueServer(store_dir=tmp_path / "nats")
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def bus(short: NatsServer) -> AsyncIterator[NatsBus]:
    bus = await connect(short.url, name="test/node-a", connect_timeout_s=5, clock=SystemClock())
    await bus.ensure_stream(next(spec for spec in STREAMS if spec.name == EVENTS_STREAM))
    yield bus
    await bus.drain()


@pytest.fixture
async def hostile(short: NatsServer) -> AsyncIterator[Client]:
    client = await nats.connect(short.url)
    yield client
    await client.close()


async def flood(client: Client) -> None:
    """As fast as a connection carries it, and without waiting for any answer."""
    for number in range(FLOOD):
        await client.publish(f"{EVENT}.hostile", b"%d" % number * 100)
    await client.flush(60)


async def test_a_flood_is_refused_and_what_another_node_tells_meanwhile_is_stored(
    bus: NatsBus, hostile: Client
) -> None:
    flooding = asyncio.create_task(flood(hostile))
    stored = [
        await bus.publish_durable(DurableMessage(f"{EVENT}.good", b"%d" % number, msg_id=f"good {number}"), budget_s=60)
        for number in range(10)
    ]
    await flooding
    # The server stores in order: what it has not refused of the flood is there once this is.
    last = DurableMessage(f"{EVENT}.behind", b"last", msg_id="last")
    await bus.publish_durable(last, budget_s=60)
    assert [one.duplicate for one in stored] == [False] * 10
    kept = await bus.replay(EVENTS_STREAM, ">")
    assert [one.data for one in kept if one.subject.endswith(".good")] == [b"%d" % number for number in range(10)]
    assert len(kept) < FLOOD


@pytest.mark.parametrize("text", [configuration("hub.conf"), COMPOSE.read_text()], ids=["chart", "compose"])
def test_the_hubs_of_an_installation_have_such_a_bound(text: str) -> None:
    (line,) = (line.strip() for line in text.splitlines() if BOUND in line)
    assert 100 <= int(line.removeprefix(BOUND).split("#")[0]) <= 1000
