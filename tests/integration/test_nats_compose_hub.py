"""hub3.env of deploy/compose, its very files on real servers: three that vote, and a leaf that a node works through."""

import contextlib
import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from bus_rights_rig import free_port
from until_met import until_met

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.embedded.server import find_binary
from shared.contracts.bus.subjects import EVENTS_STREAM, STREAMS
from shared.errors import Unavailable
from shared.ports import DurableMessage

COMPOSE = Path(__file__).parents[2] / "deploy/compose"
EVENT = "sublet.cluster.v1.event.eviction.created.default.node-a"
HUB, LEAF = ("nats", "nats-2", "nats-3"), "leaf-a"
PORTS = ("4222", "8222", "7422", "6222")
"""Of clients, monitoring, leaves and routes."""
LIMIT_S = 60.0


class Hub:
    """The servers, each with ports of its own in place of the addresses of containers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = {(name, port): free_port() for name in (*HUB, LEAF) for port in PORTS}
        self._servers: dict[str, subprocess.Popen[bytes]] = {}

    def url(self, name: str, login: str = "") -> str:
        """Where a server's clients come."""
        return f"nats://{login}127.0.0.1:{self._ports[name, '4222']}"

    def start(self, name: str) -> None:
        """Start a server on the files of the deployment."""
        own = self._folder / name
        own.mkdir(exist_ok=True)
        for file in ("nats.conf", "hub-of-three.conf", "leaf.conf"):
            text = (COMPOSE / file).read_text().replace("/var/lib/nats", str(own / "store"))
            (own / file).write_text(re.sub(r'"0\.0\.0\.0:(\d+)"', lambda found: self._at(name, found[1]), text))
        routes = {f"ROUTE_{n}": self._way("nats-route://routes", hub, "6222") for n, hub in enumerate(HUB, 1)}
        leaves = {f"HUB_{n}": self._way("nats-leaf://leaf", hub, "7422") for n, hub in enumerate(HUB, 1)}
        words = {"SUBLET_BUS_PASSWORD": "bus-word", "SUBLET_TEAM_PASSWORD": "team-word", "NATS_NAME": name}
        config = own / ("leaf.conf" if name == LEAF else "hub-of-three.conf")
        with (own / "log").open("ab") as log:
            self._servers[name] = subprocess.Popen(
                [find_binary(), "--config", config],
                env={**os.environ, **words, **routes, **leaves},
                stdout=log,
                stderr=log,
            )

    def kill(self, name: str) -> None:
        """End a server as a crash would."""
        server = self._servers.pop(name)
        server.kill()
        server.wait()

    def stop(self) -> None:
        """End what runs."""
        for name in list(self._servers):
            self.kill(name)

    def _at(self, name: str, port: str) -> str:
        return f'"127.0.0.1:{self._ports[name, port]}"'

    def _way(self, login: str, name: str, port: str) -> str:
        return f"{login}:bus-word@127.0.0.1:{self._ports[name, port]}"


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    hub = Hub(tmp_path)
    try:
        for name in (*HUB, LEAF):
            hub.start(name)
        yield hub
    finally:
        hub.stop()


async def connected(url: str, name: str) -> NatsBus:
    return await connect(url, name=name, connect_timeout_s=20, clock=SystemClock())


@pytest.fixture
async def central(hub: Hub) -> AsyncIterator[NatsBus]:
    """With every stream on three servers, as STREAM_REPLICAS says."""
    urls = [hub.url(name, "sublet:bus-word@") for name in HUB]
    bus = await connected(",".join(urls), "central/central")

    async def made() -> bool:
        with contextlib.suppress(Unavailable):  # until the three have chosen who leads
            for spec in STREAMS:
                await bus.ensure_stream(replace(spec, replicas=3))
            await bus.ensure_bucket("sublet-config", replicas=3)
            return True
        return False

    await until_met(made, LIMIT_S)
    yield bus
    await bus.drain()


async def test_a_node_works_through_its_leaf_and_goes_on_without_one_of_the_three(hub: Hub, central: NatsBus) -> None:
    node = await connected(hub.url(LEAF, "sublet:bus-word@"), "evictor/node-a")
    reader = await connected(hub.url("nats"), "cli/subscriber")
    try:
        await node.publish_durable(DurableMessage(EVENT, b"1", msg_id="1"))
        assert [one.data for one in await node.replay(EVENTS_STREAM, EVENT)] == [b"1"]
        assert [one.data for one in await reader.replay(EVENTS_STREAM, EVENT)] == [b"1"]
        hub.kill("nats-2")

        async def told() -> bool:
            with contextlib.suppress(Unavailable):  # until another one leads, should that one have led
                await node.publish_durable(DurableMessage(EVENT, b"2", msg_id="2"))
                return True
            return False

        await until_met(told, LIMIT_S)
        await until_met(lambda: reader_has(reader), LIMIT_S)
    finally:
        await node.drain()
        await reader.drain()


async def reader_has(reader: NatsBus) -> bool:
    with contextlib.suppress(Unavailable):
        return [one.data for one in await reader.replay(EVENTS_STREAM, EVENT)] == [b"1", b"2"]
    return False
