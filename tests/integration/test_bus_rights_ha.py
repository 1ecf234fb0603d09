"""Three hubs as the overlay `ha` configures them: streams and configuration on all three, and leaves at any of them."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import nats
import pytest
from bus_rights_rig import PASSWORD, ChartServer, Hub, Leaf, at_the_hub, divided, free_port, hub_server, running
from central_rig import central_on
from fixture_types import Until
from present import present
from slow_machines import patience_s
from until_met import until_met

from shared.adapters.clock import SystemClock
from shared.contracts.bus.subjects import CONFIG_BUCKET, STREAMS, shard_of
from shared.contracts.readiness import Readiness
from shared.errors import Unavailable
from shared.ports import DurableMessage, Entry, Received
from shared.wire import Wire

ALL = {spec.name for spec in STREAMS} | {f"KV_{CONFIG_BUCKET}"}


def three(tmp_path: Path, replaced: Mapping[str, str] | None = None) -> Iterator[ChartServer]:
    ports = [free_port() for _ in range(3)]
    routes = ",".join(f"127.0.0.1:{port}" for port in ports)
    for n, port in enumerate(ports):
        env = {"POD_NAME": f"hub-{n}", "ROUTES_PASSWORD": "r", "ROUTES": routes}
        server = hub_server(tmp_path / f"hub-{n}", env, {"0.0.0.0:6222": f"127.0.0.1:{port}", **(replaced or {})})
        server.overlay = "ha"
        yield server


async def replicas(url: str) -> dict[str, int]:
    client = await nats.connect(url)
    try:
        found = await client.jetstream(timeout=patience_s(20)).streams_info()
        return {present(info.config.name): present(info.config.num_replicas) for info in found}
    finally:
        await client.close()


async def _until_all_have(url: str, wanted: int) -> None:
    async def have() -> bool:
        with contextlib.suppress(nats.errors.Error):
            return await replicas(url) == dict.fromkeys(ALL, wanted)
        return False

    await until_met(have, 60)


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_an_upgrade_to_three_servers_keeps_everything_on_all_of_them(tmp_path: Path) -> None:
    servers = list(three(tmp_path))
    hub = Hub(servers[0])
    with running(*servers):
        bus = await hub.client(f"central:{PASSWORD}", "central/c")
        url = hub.url(f"central:{PASSWORD}")
        for wanted in (1, 3):
            settings = {"central": {"stream_replicas": wanted, "retry_s": 0.1, "reconcile_s": 0.1}}
            wire = Wire(bus, SystemClock(), node="c", service="central")
            app = central_on(wire, SystemClock(), settings)
            work = asyncio.create_task(app.run())
            await _until_all_have(url, wanted)
            if wanted == 1:
                await bus.put(CONFIG_BUCKET, "global", b"kept")
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            await app.close()
        leaf = Leaf(tmp_path / "leaf", Hub(servers[2]), "a")
        leaf.log_in_with(hub.reviews.issue("a"))
        async with hub.central_answers():  # asked by the third, answered at the first
            with running(leaf.server):
                agent = await at_the_hub(leaf)
                got: list[Entry] = []
                await agent.watch(CONFIG_BUCKET, got.append, keys=("global",))
                await agent.publish_durable(DurableMessage("sublet.cluster.v1.intent.a.0a-1", b"1", msg_id="1"))
                while not got:
                    await asyncio.sleep(0.01)
                assert got[0].value == b"kept"
                await agent.drain()
        await bus.drain()


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_heartbeat_that_comes_in_at_one_of_three_hubs_is_in_one_shard_at_each(
    tmp_path: Path, until: Until
) -> None:
    servers = list(three(tmp_path, divided(4)))
    hubs = [Hub(server) for server in servers]
    heard: list[list[str]] = []

    def note(subjects: list[str], received: Received) -> None:
        subjects.append(received.subject)

    with running(*servers):
        central = await hubs[0].client(f"central:{PASSWORD}", "central/c")

        async def configured() -> bool:
            with contextlib.suppress(Unavailable):  # until the servers agree on who leads
                await central.ensure_bucket(CONFIG_BUCKET)
                return bool(await central.put(CONFIG_BUCKET, "global", b"{}"))
            return False

        await until_met(configured, 60)
        for hub in hubs:
            heard.append([])
            bus = await hub.client(f"central:{PASSWORD}", "central/hears")
            await bus.subscribe("sublet.cluster.v1.ready.>", partial(note, heard[-1]))
        leaf = Leaf(tmp_path / "leaf", hubs[2], "a")
        leaf.log_in_with(hubs[0].reviews.issue("a"))
        async with hubs[0].central_answers():
            with running(leaf.server):
                agent = await at_the_hub(leaf)
                wire = Wire(agent, SystemClock(), node="a", service="reporter")
                await wire.publish(wire.stamp(Readiness, ready=True))
                await until(lambda: all(heard))
                await agent.drain()
        assert heard == [heard[0]] * 3
        assert [shard_of(subject) is not None for subject in heard[0]] == [True]
        for hub in hubs:
            await hub.close()
