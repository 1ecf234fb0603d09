"""deploy/compose/nats.conf on the real server: who may do what, without a container engine."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import cast

import nats
import nats.errors
import pytest
from bus_rights_rig import ComposeServer
from durable_counts import until_counted
from fixture_types import Until
from nats.js.errors import NotFoundError
from slow_machines import patience_s

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.contracts.bus.subjects import EVENTS_STREAM, STREAMS
from shared.core.bus.durable import EventFilter, wanted_durable
from shared.ports import DurableMessage, Received

EVENT = "sublet.cluster.v1.event.eviction.created.default.node-a"


@pytest.fixture
async def compose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ComposeServer]:
    monkeypatch.setitem(os.environ, "SUBLET_BUS_PASSWORD", "bus-word")
    monkeypatch.setitem(os.environ, "SUBLET_TEAM_PASSWORD", "team-word")
    server = ComposeServer(store_dir=tmp_path)
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def bus(compose: ComposeServer) -> AsyncIterator[NatsBus]:
    bus = await connect(
        compose.url_of("sublet:bus-word"), name="central/central", connect_timeout_s=5, clock=SystemClock()
    )
    for spec in STREAMS:
        await bus.ensure_stream(spec)
    await bus.ensure_bucket("sublet-config")
    await bus.durables.put(wanted_durable("team-a", EventFilter(namespaces=["default"])))
    await bus.publish_durable(DurableMessage(EVENT, b"1", msg_id="1"))
    yield bus
    await bus.drain()


async def test_the_team_pulls_from_its_durable(compose: ComposeServer, bus: NatsBus) -> None:
    client = await nats.connect(compose.url_of("team-a:team-word"))
    durable = await client.jetstream().pull_subscribe("", durable="team-a", stream=EVENTS_STREAM)
    [message] = await durable.fetch(1, timeout=patience_s(10))
    await message.ack_sync(timeout=patience_s(10))
    assert message.data == b"1"
    await until_counted(bus, "team-a", pending=0)
    await client.close()


async def test_who_comes_without_a_name_reads_and_cannot_publish(
    compose: ComposeServer, bus: NatsBus, until: Until
) -> None:
    refused: list[str] = []

    async def note(error: Exception) -> None:
        refused.append(str(error))

    client = await nats.connect(compose.url, error_cb=note)
    message = await client.jetstream().get_msg(EVENTS_STREAM, seq=1, direct=True)
    assert message.data == b"1"
    await client.publish(EVENT, b"2")
    await until(lambda: refused)
    assert "permissions violation for publish" in refused[0]
    with contextlib.suppress(NotFoundError):
        found: object = await client.jetstream().get_msg(EVENTS_STREAM, seq=2, direct=True)
        assert not found
    await client.close()


async def test_a_reader_follows_as_the_subscriber_of_the_deployment_does(compose: ComposeServer, bus: NatsBus) -> None:
    reader = await connect(compose.url, name="cli/subscriber", connect_timeout_s=5, clock=SystemClock())
    async with (
        asyncio.timeout(patience_s(10)),
        contextlib.aclosing(cast("AsyncGenerator[Received, None]", reader.follow(EVENTS_STREAM, ">"))) as events,
    ):
        assert (await anext(events)).data == b"1"
    await reader.drain()
