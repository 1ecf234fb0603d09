"""Each example consumer on a real server, through its own crash, the server's, and repetitions of both kinds."""

import asyncio
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nats
import pytest
from consumer_rig import Consumer, Language, built
from events_told import Teller, evictions, ids_by_pod, telling
from nats.js.api import ConsumerInfo
from slow_machines import patience_s

from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.bus.subjects import EVENTS_STREAM, event_filter
from shared.contracts.eviction import EvictionEvent

pytestmark = [pytest.mark.consumers, pytest.mark.timeout(300)]

TEAM = "team-a"
PATIENCE_S = patience_s(60.0)
ACK_WAIT_S = 2.0
"""An operator's choice for these tests; the examples ask for 30 s where they create the durable themselves."""


@pytest.fixture
def consumer(language: Language, server: NatsServer, tmp_path: Path) -> Iterator[Consumer]:
    with Consumer(language, built(language), url=server.url, out=tmp_path / "events.jsonl", namespace=TEAM) as consumer:
        yield consumer


async def reached(condition: Callable[[], bool], consumer: Consumer) -> None:
    """Wait until it is so, as long as the consumer lives."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert consumer.running, f"it ended by itself:\n{consumer.said()}"
        assert time.monotonic() < deadline, f"{len(consumer.lines())} lines after {PATIENCE_S:g} s:\n{consumer.said()}"
        await asyncio.sleep(0.01)


async def durable(server: NatsServer, name: str, **changes: Any) -> ConsumerInfo:
    """The durable consumer as the server has it, after an operator's changes."""
    client = await nats.connect(server.url)
    try:
        info: ConsumerInfo = await client.jetstream().consumer_info(EVENTS_STREAM, name)
        if changes:
            info = await client.jetstream().add_consumer(EVENTS_STREAM, info.config.evolve(**changes))
        return info
    finally:
        await client.close()


async def all_handled(server: NatsServer, name: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (info := await durable(server, name)).num_pending or info.num_ack_pending:
            await asyncio.sleep(0.05)


def heard(consumer: Consumer) -> list[EvictionEvent]:
    """The events in the consumer's file; each line has what the headers and the body said."""
    lines = consumer.lines()
    events = [EvictionEvent.model_validate(line["data"]) for line in lines]
    assert [line["id"] for line in lines] == [event.event_id for event in events]
    assert [line["type"] for line in lines] == [f"io.sublet.eviction.{event.phase}.v1" for event in events]
    return events


async def started_in_vain(consumer: Consumer, server: NatsServer) -> None:
    """Start it, and return when it has been at the server's address and has found nobody who speaks NATS."""
    where = urlsplit(server.url)
    with socket.create_server((where.hostname, where.port)) as nobody:
        nobody.settimeout(PATIENCE_S)
        consumer.start()
        connection, _ = await asyncio.to_thread(nobody.accept)
        connection.close()


async def test_every_event_once_and_in_order_of_its_pod(consumer: Consumer, server: NatsServer, teller: Teller) -> None:
    first, second, third = (evictions(TEAM, episode, pods=20) for episode in (1, 2, 3))
    await teller.tell(evictions("team-b", 1, pods=3))
    await teller.tell(first)
    assert await teller.tell(first[::2]) == len(first[::2])

    consumer.start()
    await reached(lambda: len(consumer.lines()) > 0, consumer)
    made = (await durable(server, consumer.durable, ack_wait=ACK_WAIT_S)).config
    await reached(lambda: len(consumer.lines()) > 5, consumer)
    consumer.kill()
    consumer.start()
    await reached(lambda: len(consumer.lines()) == len(first), consumer)

    telling = asyncio.create_task(teller.tell(second))
    await reached(lambda: len(consumer.lines()) > len(first), consumer)
    server.kill()
    await reached(lambda: not teller.bus.connected, consumer)
    server.start()
    await telling
    await teller.tell_after_the_window([*first[::3], *second[::4]])
    await teller.tell_nonsense(TEAM)
    await teller.tell(third)

    told = [*first, *second, *third]
    await reached(lambda: len(consumer.lines()) >= len(told), consumer)
    await all_handled(server, consumer.durable)
    assert consumer.stop() == 0, consumer.said()
    assert "not an event, put aside" in consumer.said()
    assert ids_by_pod(heard(consumer)) == ids_by_pod(told)
    config = (await durable(server, consumer.durable)).config
    assert config == made, "an existing durable stays as the operator set it"
    assert (config.filter_subject, config.max_ack_pending) == (event_filter(namespace=TEAM), 1)
    assert config.max_deliver == -1


async def test_it_waits_for_its_server_and_repairs_a_line_cut_short(consumer: Consumer, server: NatsServer) -> None:
    first, second = evictions(TEAM, 1, pods=2), evictions(TEAM, 2, pods=2)
    async with telling(server.url) as teller:
        await teller.tell(first)
    consumer.start()
    await reached(lambda: len(consumer.lines()) == len(first), consumer)
    await all_handled(server, consumer.durable)
    assert consumer.stop() == 0, consumer.said()
    with consumer.out.open("a") as out:
        out.write('{"id":"cut sho')

    server.stop()
    await started_in_vain(consumer, server)
    server.start()
    async with telling(server.url) as teller:
        await teller.tell_after_the_window(first)
        await teller.tell(second)
    await reached(lambda: len(consumer.lines()) == len(first) + len(second), consumer)
    await all_handled(server, consumer.durable)
    assert consumer.stop() == 0, consumer.said()
    assert ids_by_pod(heard(consumer)) == ids_by_pod([*first, *second])


async def test_it_ends_when_asked_while_there_is_no_server(consumer: Consumer, server: NatsServer) -> None:
    server.stop()
    await started_in_vain(consumer, server)
    assert consumer.stop() == 0, consumer.said()


async def nothing_asked(server: NatsServer, name: str) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await durable(server, name)).num_waiting:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("asking", [True, False], ids=["while-it-asks", "between-questions"])
async def test_a_stream_made_anew_is_followed_again(
    consumer: Consumer, server: NatsServer, teller: Teller, asking: bool
) -> None:
    first, second = evictions(TEAM, 1, pods=2), evictions(TEAM, 2, pods=2)
    await teller.tell(first)
    consumer.start()
    await reached(lambda: len(consumer.lines()) == len(first), consumer)
    await all_handled(server, consumer.durable)
    if not asking:
        consumer.signal(signal.SIGSTOP)
        await nothing_asked(server, consumer.durable)
    client = await nats.connect(server.url)
    await client.jetstream().delete_stream(EVENTS_STREAM)
    await client.close()
    consumer.signal(signal.SIGCONT)
    async with telling(server.url) as teller_again:
        await teller_again.tell([*first, *second])
    await reached(lambda: len(consumer.lines()) == len(first) + len(second), consumer)
    assert ids_by_pod(heard(consumer)) == ids_by_pod([*first, *second])
