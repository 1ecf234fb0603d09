"""Streams that are deleted, changed, full, or read by somebody who never acknowledges."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import nats
import pytest
from durable_counts import until_counted
from fixture_types import Until
from nats.aio.client import Client
from nats.js.api import DiscardPolicy, RetentionPolicy, StreamConfig
from present import present
from slow_machines import patience_s

from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.adapters.nats import streams
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.adapters.nats.reader import OrderedReader
from shared.contracts.bus.subjects import EVENTS_STREAM, STREAMS, StreamSpec
from shared.core.bus.durable import EventFilter, wanted_durable
from shared.errors import NotStored, Unavailable
from shared.ports import DurableMessage

EVENT = "sublet.cluster.v1.event.eviction.created.team-a.node-a"
SPEC: StreamSpec = next(spec for spec in STREAMS if spec.name == EVENTS_STREAM)


@pytest.fixture
async def bus(server: NatsServer) -> AsyncIterator[NatsBus]:
    bus = await connect(server.url, name="test/node-a", connect_timeout_s=5, clock=SystemClock())
    await bus.ensure_stream(SPEC)
    yield bus
    await bus.drain()


@pytest.fixture
async def operator(server: NatsServer) -> AsyncIterator[Client]:
    """Somebody with the nats command."""
    client = await nats.connect(server.url)
    yield client
    await client.close()


async def held(bus: NatsBus) -> list[bytes]:
    return [message.data for message in await bus.replay(EVENTS_STREAM, ">")]


async def until_full(bus: NatsBus, subject: Callable[[int], str], size: int) -> int:
    """How many messages were taken before one was refused."""
    for number in itertools.count():
        try:
            body = b"%04d" % number * (size // 4)
            await bus.publish_durable(DurableMessage(subject(number), body, msg_id=f"full {number}"), budget_s=0.2)
        except NotStored:
            return number
    raise AssertionError


async def test_an_event_waits_for_a_stream_that_was_deleted_and_is_stored_in_the_new_one(
    bus: NatsBus, operator: Client, until: Until
) -> None:
    await operator.jetstream().delete_stream(EVENTS_STREAM)
    with pytest.raises(NotStored):
        await bus.publish_durable(DurableMessage(EVENT, b"1", msg_id="1"), budget_s=0.05)
    before = telemetry.STORE_RETRIES._value.get()
    sending = asyncio.create_task(bus.publish_durable(DurableMessage(EVENT, b"1", msg_id="1")))
    await until(lambda: telemetry.STORE_RETRIES._value.get() > before)
    await bus.ensure_stream(SPEC)
    assert (await sending).sequence == 1
    assert await held(bus) == [b"1"]


@pytest.mark.parametrize(
    "drift",
    [
        {"discard": DiscardPolicy.OLD},
        {"max_msgs": -1},
        {"max_msg_size": 1 << 20},
        {"max_bytes": 1 << 30},
        {"max_age": 30 * 86_400.0},
        {"duplicate_window": 60.0},
        {"subjects": ["sublet.cluster.v1.event.eviction.created.>"]},
    ],
    ids=lambda drift: next(iter(drift)),
)
async def test_what_an_operator_changed_is_changed_back_and_the_events_stay(
    bus: NatsBus, operator: Client, drift: dict[str, Any]
) -> None:
    await bus.publish_durable(DurableMessage(EVENT, b"1", msg_id="1"))
    js = operator.jetstream()
    wanted = (await js.stream_info(EVENTS_STREAM)).config
    await js.update_stream(wanted, **drift)
    assert (await js.stream_info(EVENTS_STREAM)).config != wanted
    await bus.ensure_stream(SPEC)
    assert (await js.stream_info(EVENTS_STREAM)).config == wanted
    assert await held(bus) == [b"1"]


@pytest.mark.parametrize(
    "lower",
    [
        {"max_msgs": 1000},
        {"max_msgs_per_subject": 100},
        {"max_msg_size": 4096},
        {"max_bytes": 1 << 20},
        {"max_age": 60.0, "duplicate_window": 60.0},
    ],
    ids=lambda lower: next(iter(lower)),
)
async def test_a_limit_that_an_operator_made_lower_stays(bus: NatsBus, operator: Client, lower: dict[str, Any]) -> None:
    js = operator.jetstream()
    await js.update_stream((await js.stream_info(EVENTS_STREAM)).config, **lower)
    await bus.ensure_stream(SPEC)
    config = (await js.stream_info(EVENTS_STREAM)).config
    assert {name: getattr(config, name) for name in lower} == lower


async def test_a_stream_of_another_kind_is_named_with_the_next_step(bus: NatsBus, operator: Client) -> None:
    js = operator.jetstream()
    await js.delete_stream(EVENTS_STREAM)
    theirs = StreamConfig(name=EVENTS_STREAM, subjects=list(SPEC.subjects), retention=RetentionPolicy.WORK_QUEUE)
    await js.add_stream(theirs)
    with pytest.raises(
        Unavailable, match=r"SUBLET_EVENTS: retention is workqueue, wanted limits.*nats stream rm SUBLET_EVENTS"
    ) as caught:
        await bus.ensure_stream(SPEC)
    assert caught.value.reason == "other_kind"
    await js.delete_stream(EVENTS_STREAM)
    await bus.ensure_stream(SPEC)


async def test_a_full_stream_loses_nothing_and_takes_new_ones_when_the_oldest_have_made_room(
    bus: NatsBus, operator: Client
) -> None:
    small = replace(SPEC, max_bytes=64 << 10)
    await bus.ensure_stream(small)
    await bus.durables.put(wanted_durable("team-a", EventFilter(namespaces=["team-a"])))
    stored = await until_full(bus, lambda _: EVENT, 1024)
    assert [int(data[:4]) for data in await held(bus)] == list(range(stored))
    [cut] = await bus.make_room(small)
    assert cut.node == "node-a", "others, who may be too few to be in a sample, lose nothing"
    kept = await held(bus)
    assert [int(data[:4]) for data in kept] == list(range(stored - cut.keep, stored))
    await bus.publish_durable(DurableMessage(EVENT, b"%04d" % stored * 256, msg_id=f"{stored}"))
    # Who falls behind by more than the limits misses the oldest, and goes on.
    await until_counted(bus, "team-a", pending=len(kept) + 1)
    assert await bus.make_room(small) == ()
    assert telemetry.STREAM_MESSAGES.labels(EVENTS_STREAM)._value.get() == len(kept) + 1


async def test_a_node_that_holds_too_much_gives_way_before_the_oldest_of_others(bus: NatsBus, operator: Client) -> None:
    small = replace(SPEC, max_bytes=256 << 10)
    await bus.ensure_stream(small)
    mine, flood = EVENT, "sublet.cluster.v1.event.eviction.created.{}.hostile"
    for number in range(40):
        await bus.publish_durable(DurableMessage(mine, b"%04d" % number, msg_id=f"{number}"))
    await until_full(bus, lambda number: flood.format(f"n{number}"), 8192)
    cut = await bus.make_room(small)
    assert [one.node for one in cut] == ["hostile"]
    assert len(await bus.replay(EVENTS_STREAM, mine)) == 40
    assert 0 < len(await bus.replay(EVENTS_STREAM, flood.format("*"))) < 16
    await bus.publish_durable(DurableMessage(mine, b"41", msg_id="41"))


async def test_who_never_acknowledges_is_given_one_and_holds_up_nobody(bus: NatsBus, operator: Client) -> None:
    await bus.durables.put(wanted_durable("silent", EventFilter(namespaces=["team-a"])))
    await bus.durables.put(wanted_durable("diligent", EventFilter(namespaces=["team-a"])))
    before = telemetry.STORE_RETRIES._value.get()
    js = operator.jetstream()
    await bus.publish_durable(DurableMessage(EVENT, b"0", msg_id="0"))
    silent = await js.pull_subscribe("", durable="silent", stream=EVENTS_STREAM)
    await silent.fetch(1, timeout=patience_s(10))
    ask = f"$JS.API.CONSUMER.MSG.NEXT.{EVENTS_STREAM}.silent"
    for number in range(1, 200):
        await bus.publish_durable(DurableMessage(EVENT, b"%d" % number, msg_id=f"{number}"))
    assert telemetry.STORE_RETRIES._value.get() == before
    diligent = await js.pull_subscribe("", durable="diligent", stream=EVENTS_STREAM)
    for number in range(200):
        [message] = await diligent.fetch(1, timeout=patience_s(10))
        assert int(message.data) == number
        await message.ack_sync(timeout=patience_s(10))
    answer = await operator.request(ask, b'{"batch":1,"expires":50000000}', timeout=patience_s(10))
    assert present(answer.headers)["Status"] == "408", "one under way is all it gets"
    await until_counted(bus, "silent", pending=199, unacknowledged=1)


async def test_what_the_leader_holds_and_no_replica_delivers_is_unreadable_and_not_left_out(
    bus: NatsBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bus.publish_durable(DurableMessage(EVENT, b"1", msg_id="1"))

    async def one_that_does_not_come(_: OrderedReader) -> int:
        return 2

    monkeypatch.setattr(streams, "CATCH_UP_S", 0.05)
    monkeypatch.setattr(OrderedReader, "newest", one_that_does_not_come)
    with pytest.raises(Unavailable, match="its leader holds sequence 2, which did not come"):
        await held(bus)


async def test_the_last_of_a_subject_is_one_also_where_a_newer_one_comes_while_a_replica_catches_up(
    bus: NatsBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bus.publish_durable(DurableMessage(EVENT, b"1", msg_id="1"))
    newest = OrderedReader.newest

    async def one_more(reader: OrderedReader) -> int:
        await bus.publish_durable(DurableMessage(EVENT, b"2", msg_id="2"))
        return await newest(reader)

    monkeypatch.setattr(OrderedReader, "newest", one_more)
    assert [one.data for one in await bus.replay(EVENTS_STREAM, EVENT, last_per_subject=True)] == [b"2"]
