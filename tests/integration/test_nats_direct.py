"""Reading by direct answers, as a login reads that may have no consumer: nobody's login of the compose deployment."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import cast

import nats
import pytest
from bus_rights_rig import ComposeServer
from nats.js.api import StreamConfig
from slow_machines import patience_s

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.reader import BATCH
from shared.contracts.bus.subjects import EVENTS_STREAM, STREAMS
from shared.ports import DurableMessage, Received

EVENT = "sublet.cluster.v1.event.eviction.created.{}.node-a"
LIMIT_S = patience_s(20.0)


@pytest.fixture
async def compose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ComposeServer]:
    monkeypatch.setenv("SUBLET_BUS_PASSWORD", "bus-word")
    monkeypatch.setenv("SUBLET_TEAM_PASSWORD", "team-word")
    server = ComposeServer(store_dir=tmp_path)
    server.start()
    yield server
    server.stop()


async def opened(server: ComposeServer, login: str, name: str) -> NatsBus:
    return await connect(server.url_of(login), name=name, connect_timeout_s=5, clock=SystemClock())


@pytest.fixture
async def bus(compose: ComposeServer) -> AsyncIterator[NatsBus]:
    bus = await opened(compose, "sublet:bus-word", "central/c")
    for spec in STREAMS:
        await bus.ensure_stream(spec)
    yield bus
    await bus.drain()


@pytest.fixture
async def reader(compose: ComposeServer) -> AsyncIterator[NatsBus]:
    reader = await opened(compose, "", "cli/reader")
    yield reader
    await reader.drain()


async def tell(bus: NatsBus, first: int, last: int, namespace: str = "a") -> None:
    for number in range(first, last):
        await bus.publish_durable(
            DurableMessage(EVENT.format(namespace), b"%d" % number, msg_id=f"{namespace}/{number}")
        )


def following(reader: NatsBus, start: int = 1) -> AsyncGenerator[Received, None]:
    """What the stream of events holds, and then what comes."""
    return cast("AsyncGenerator[Received, None]", reader.follow(EVENTS_STREAM, ">", from_sequence=start))


async def taken(reader: NatsBus, count: int, *, start: int = 1) -> list[Received]:
    found: list[Received] = []
    async with asyncio.timeout(LIMIT_S):
        async with contextlib.aclosing(following(reader, start)) as events:
            while len(found) < count:
                found.append(await anext(events))
    return found


async def test_more_than_a_batch_comes_whole_in_order_and_by_its_filter(bus: NatsBus, reader: NatsBus) -> None:
    count = BATCH + 5
    await asyncio.gather(tell(bus, 0, count), tell(bus, 0, 3, "b"))
    only_a = await reader.replay(EVENTS_STREAM, EVENT.format("a"))
    assert [received.data for received in only_a] == [b"%d" % n for n in range(count)]
    everything = await taken(reader, count + 3)
    assert [received.sequence for received in everything] == list(range(1, count + 4))
    assert [received.sequence for received in await taken(reader, 2, start=count)] == [count, count + 1]
    assert (await bus._link.js.stream_info(EVENTS_STREAM)).state.consumer_count == 0


async def test_it_goes_on_live_and_over_a_restart_of_the_server(
    compose: ComposeServer, bus: NatsBus, reader: NatsBus
) -> None:
    await tell(bus, 0, 1)
    async with asyncio.timeout(LIMIT_S):
        async with contextlib.aclosing(following(reader)) as events:
            assert (await anext(events)).data == b"0"
            await tell(bus, 1, 2)
            assert (await anext(events)).data == b"1"
            compose.kill()
            compose.start()
            await tell(bus, 2, 3)
            assert (await anext(events)).data == b"2"


async def test_a_stream_that_is_not_there_yet_is_waited_for_and_one_made_anew_is_read_from_its_start(
    bus: NatsBus, reader: NatsBus
) -> None:
    js = bus._link.js
    spec = StreamConfig(name=EVENTS_STREAM, subjects=["sublet.cluster.*.event.>"], allow_direct=True)
    await js.delete_stream(EVENTS_STREAM)
    assert await reader.replay(EVENTS_STREAM, ">") == ()
    async with asyncio.timeout(LIMIT_S):
        async with contextlib.aclosing(following(reader)) as events:
            first = asyncio.ensure_future(anext(events))
            await js.add_stream(spec)
            await tell(bus, 0, 2)
            assert [(await first).data, (await anext(events)).data] == [b"0", b"1"]
            await js.delete_stream(EVENTS_STREAM)
            await js.add_stream(spec)
            await tell(bus, 2, 3)
            assert (await anext(events)).data == b"2"


FORGED = {
    "Status": "204",
    "Nats-Sequence": "77",
    "Nats-Subject": "x",
    "Nats-Last-Sequence": "9",
    "Nats-Num-Pending": "x",
}


async def test_headers_of_a_sender_that_look_like_the_servers_change_nothing(
    compose: ComposeServer, bus: NatsBus, reader: NatsBus
) -> None:
    client = await nats.connect(compose.url_of("sublet:bus-word"))
    for headers in (FORGED, {"Status": "404"}, {"Status": "100"}):
        await client.jetstream().publish(EVENT.format("a"), b"", headers=headers)
    await client.close()
    await tell(bus, 3, 4)
    found = await taken(reader, 4)
    assert [(one.sequence, one.data) for one in found] == [(1, b""), (2, b""), (3, b""), (4, b"3")]
    assert [one.subject for one in found] == [EVENT.format("a")] * 4
