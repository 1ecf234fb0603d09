"""The bus on a real server that is killed, restarted, absent, or sends too much."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, cast

import nats
import pytest
from fixture_types import Until
from nats.aio.msg import Msg
from nats.js.api import StreamConfig
from prometheus_client import Counter, Gauge
from slow_machines import patience_s

from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.adapters.nats import reader as nats_reader
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.adapters.nats.link import FAILURES, cancellable, unavailable
from shared.adapters.nats.reader import OrderedReader
from shared.contracts.bus.subjects import CONFIG_BUCKET, EVENTS_STREAM, INTENTS_STREAM, STREAMS, StreamSpec
from shared.contracts.readiness import Health, ServiceHealth
from shared.errors import Conflict, NotStored, Unavailable
from shared.ports import Bus, DurableMessage, Entry, Received
from shared.wire import Wire

INTENT = "sublet.cluster.v1.intent.node-a.{}"


@pytest.fixture
async def bus(server: NatsServer) -> AsyncIterator[NatsBus]:
    bus = await new_client(server)
    for spec in STREAMS:
        await bus.ensure_stream(spec)
    await bus.ensure_bucket(CONFIG_BUCKET)
    yield bus
    await bus.drain()


async def new_client(server: NatsServer, **options: Any) -> NatsBus:
    return await connect(server.url, name="test/node-a", connect_timeout_s=5, clock=SystemClock(), **options)


def following(bus: NatsBus) -> AsyncGenerator[Received, None]:
    """What the stream of intents holds, and then what comes."""
    return cast("AsyncGenerator[Received, None]", bus.follow(INTENTS_STREAM, ">"))


def count(counter: Counter | Gauge, *labels: str) -> float:
    return float((counter.labels(*labels) if labels else counter)._value.get())


async def test_acknowledged_facts_survive_the_kill_of_the_server(
    bus: NatsBus, server: NatsServer, until: Until
) -> None:
    for number in range(20):
        await bus.publish_durable(DurableMessage(INTENT.format(number), b"%d" % number, msg_id=f"i{number}"))
    server.kill()
    await until(lambda: not bus.connected)
    server.start()
    await until(lambda: bus.connected)
    assert [int(m.data) for m in await bus.replay(INTENTS_STREAM, ">")] == list(range(20))


async def test_a_follower_and_a_watch_go_on_over_restarts_without_loss_or_repetition(
    bus: NatsBus, server: NatsServer, until: Until
) -> None:
    followed: list[int] = []
    values: list[Entry] = []

    async def follow() -> None:
        async for message in bus.follow(INTENTS_STREAM, INTENT.format(">")):
            followed.append(int(message.data))  # noqa: PERF401 - read while it grows

    following = asyncio.create_task(follow())
    await bus.watch(CONFIG_BUCKET, values.append)
    for life in range(3):
        for number in range(10):
            done = life * 10 + number
            await bus.publish_durable(DurableMessage(INTENT.format(number), b"%d" % done, msg_id=f"i{done}"))
        revision = await bus.put(CONFIG_BUCKET, "global", b"%d" % life)

        def all_came(life: int = life) -> bool:
            return len(followed) == 10 * (life + 1) and len(values) == life + 1

        await until(all_came)
        assert values[-1] == Entry("global", b"%d" % life, revision)
        server.kill()
        await until(lambda: not bus.connected)
        server.start()
        await until(lambda: bus.connected)
    assert followed == list(range(30))
    following.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following


async def test_a_durable_publish_goes_through_a_restart_and_is_stored_once(
    bus: NatsBus, server: NatsServer, until: Until
) -> None:
    before = count(telemetry.STORE_RETRIES)
    server.kill()
    facts = [DurableMessage(INTENT.format(n), b"", msg_id=f"i{n}", expect_last_subject_seq=0) for n in range(5)]
    sending = [asyncio.create_task(bus.publish_durable(fact)) for fact in facts]
    await until(lambda: count(telemetry.STORE_RETRIES) >= before + 5)
    server.start()
    stored = await asyncio.gather(*sending)
    assert sorted(s.sequence for s in stored) == [1, 2, 3, 4, 5]
    assert len(await bus.replay(INTENTS_STREAM, ">")) == 5


async def test_a_durable_publish_gives_up_with_its_budget_and_leaves_no_late_message(
    bus: NatsBus, server: NatsServer, until: Until
) -> None:
    server.kill()
    await until(lambda: not bus.connected)
    with pytest.raises(NotStored, match="not connected"):
        await bus.publish_durable(DurableMessage(INTENT.format(1), b"", msg_id="i1"), budget_s=0.3)
    server.start()
    await until(lambda: bus.connected)
    assert len(await bus.replay(INTENTS_STREAM, ">")) == 0


async def test_what_is_published_while_the_server_is_away_is_dropped_and_never_sent_late(
    bus: NatsBus, server: NatsServer, until: Until
) -> None:
    got, before = [], count(telemetry.DROPPED, "test", "offline")
    await bus.subscribe("sublet.node.v1.sample.node-a", lambda m: got.append(m.data))
    server.kill()
    await until(lambda: not bus.connected)
    assert [await bus.publish("sublet.node.v1.sample.node-a", b"old") for _ in range(3)] == [False] * 3
    assert count(telemetry.DROPPED, "test", "offline") == before + 3
    with pytest.raises(Unavailable, match="not connected"):
        await bus.request("sublet.node.v1.ask.node-a.qrm")
    with pytest.raises(Unavailable, match="not connected"):
        await bus.replay(INTENTS_STREAM, ">")
    reconnects = count(telemetry.RECONNECTS)
    server.start()
    await until(lambda: count(telemetry.RECONNECTS) > reconnects)
    assert await bus.publish("sublet.node.v1.sample.node-a", b"new")
    await until(lambda: got)
    assert got == [b"new"]


async def test_connections_lost_and_found_are_counted(bus: NatsBus, server: NatsServer, until: Until) -> None:
    lost = count(telemetry.DISCONNECTS)
    server.kill()
    await until(lambda: count(telemetry.DISCONNECTS) == lost + 1 and count(telemetry.CONNECTED) == 0)
    server.start()
    await until(lambda: count(telemetry.CONNECTED) == 1)


async def test_a_stream_that_was_made_anew_is_followed_from_its_start(
    bus: NatsBus, server: NatsServer, until: Until
) -> None:
    followed = following(bus)
    for number in range(3):
        await bus.publish_durable(DurableMessage(INTENT.format(number), b"old", msg_id=f"old{number}"))
        await anext(followed)
    client = await nats.connect(server.url)
    await client.jetstream().delete_stream(INTENTS_STREAM)
    for spec in STREAMS:
        await bus.ensure_stream(spec)
    await bus.publish_durable(DurableMessage(INTENT.format(1), b"new", msg_id="new1"))
    message = await anext(followed)
    assert (message.data, message.sequence) == (b"new", 1)
    await client.close()
    await followed.aclose()


async def test_a_message_lost_on_the_way_is_noticed_and_read_again(
    bus: NatsBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, arrived = nats_reader.OrderedReader._take, 0

    async def lossy(reader: OrderedReader, message: Msg) -> None:
        nonlocal arrived
        arrived += 1
        if arrived % 7:
            await take(reader, message)

    monkeypatch.setattr(nats_reader.OrderedReader, "_take", lossy)
    for number in range(30):
        await bus.publish_durable(DurableMessage(INTENT.format(number), b"%d" % number, msg_id=f"i{number}"))
    followed = following(bus)
    assert [int((await anext(followed)).data) for _ in range(30)] == list(range(30))
    await followed.aclose()


async def test_the_last_message_of_all_lost_on_the_way_is_noticed_as_well(
    bus: NatsBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_reader, "HEARTBEAT_S", 0.2)
    take = nats_reader.OrderedReader._take
    lost: list[Msg] = []

    async def lossy(reader: OrderedReader, message: Msg) -> None:
        if message.data == b"last" and not lost:
            lost.append(message)
        else:
            await take(reader, message)

    monkeypatch.setattr(nats_reader.OrderedReader, "_take", lossy)
    for number, data in enumerate((b"first", b"last")):
        await bus.publish_durable(DurableMessage(INTENT.format(number), data, msg_id=f"i{number}"))
    followed = following(bus)
    assert [(await anext(followed)).data for _ in range(2)] == [b"first", b"last"]
    assert lost
    await followed.aclose()


async def test_a_silent_reader_is_replaced(bus: NatsBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_reader, "SILENCE_S", 0.1)
    ask, asked = nats_reader.OrderedReader._ask, 0

    async def lost_at_first(reader: OrderedReader) -> None:
        nonlocal asked
        asked += 1
        if asked > 1:
            await ask(reader)
        else:
            reader._asked = 1  # the request never reached the server

    monkeypatch.setattr(nats_reader.OrderedReader, "_ask", lost_at_first)
    await bus.publish_durable(DurableMessage(INTENT.format(1), b"1", msg_id="1"))
    followed = following(bus)
    assert (await anext(followed)).data == b"1"
    await followed.aclose()


async def test_a_cancellation_that_meets_its_answer_is_not_lost() -> None:
    """In Python 3.11 `asyncio.wait_for` returns the answer and forgets that it was cancelled."""
    answer, reached = asyncio.get_running_loop().create_future(), []

    async def ask() -> None:
        with unavailable("a request"):
            await asyncio.wait_for(answer, patience_s(10))
        reached.append("after")

    asking = asyncio.create_task(ask())
    await asyncio.sleep(0)
    answer.set_result(None)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert reached == []


async def test_a_cancellation_that_the_client_swallows_is_not_lost() -> None:
    """Its flush does so, and every publish flushes."""
    reached = []

    async def publish() -> None:
        with contextlib.suppress(*FAILURES), cancellable(), contextlib.suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()
        reached.append("after")

    publishing = asyncio.create_task(publish())
    await asyncio.sleep(0)
    publishing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await publishing
    assert reached == []


async def test_a_reader_asks_anew_when_its_pull_request_ends(bus: NatsBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_reader, "EXPIRES_S", 0.05)
    monkeypatch.setattr(nats_reader, "HEARTBEAT_S", 0.02)
    followed, asked = following(bus), 0
    ask = nats_reader.OrderedReader._ask

    async def counted(reader: OrderedReader) -> None:
        nonlocal asked
        asked += 1
        await ask(reader)

    monkeypatch.setattr(nats_reader.OrderedReader, "_ask", counted)
    waiting = asyncio.ensure_future(anext(followed))
    while asked < 4:
        await asyncio.sleep(0.01)
    await bus.publish_durable(DurableMessage(INTENT.format(1), b"late", msg_id="late"))
    assert (await waiting).data == b"late"
    await followed.aclose()


async def test_a_reader_whose_consumer_was_removed_opens_another(bus: NatsBus, server: NatsServer) -> None:
    followed = following(bus)
    await bus.publish_durable(DurableMessage(INTENT.format(1), b"1", msg_id="1"))
    await anext(followed)
    client = await nats.connect(server.url)
    for consumer in await client.jetstream().consumers_info(INTENTS_STREAM):
        await client.jetstream().delete_consumer(INTENTS_STREAM, consumer.name)
    await bus.publish_durable(DurableMessage(INTENT.format(1), b"2", msg_id="2"))
    assert (await anext(followed)).data == b"2"
    await client.close()
    await followed.aclose()


async def test_readers_leave_no_consumer_behind(bus: NatsBus, server: NatsServer) -> None:
    await bus.publish_durable(DurableMessage(INTENT.format(1), b"1", msg_id="1"))
    followed = following(bus)
    await anext(followed)
    await followed.aclose()
    await bus.replay(INTENTS_STREAM, ">")
    client = await nats.connect(server.url)
    assert await client.jetstream().consumers_info(INTENTS_STREAM) == []
    await client.close()


async def test_a_fact_names_the_stream_it_expects(bus: NatsBus, server: NatsServer) -> None:
    """Another stream that took over the subject must not swallow an intent and acknowledge it."""
    client = await nats.connect(server.url)
    await client.jetstream().delete_stream(INTENTS_STREAM)
    await client.jetstream().add_stream(StreamConfig(name="STRANGER", subjects=["sublet.cluster.*.intent.>"]))
    with pytest.raises(NotStored):
        await bus.publish_durable(DurableMessage(INTENT.format(1), b"", msg_id="1"), budget_s=0.2)
    assert (await client.jetstream().stream_info("STRANGER")).state.messages == 0
    await client.close()


async def test_streams_get_the_limits_of_their_specification(bus: NatsBus, server: NatsServer) -> None:
    client = await nats.connect(server.url)
    js = client.jetstream()
    config = (await js.stream_info(EVENTS_STREAM)).config
    assert (config.max_age, config.max_bytes, config.duplicate_window) == (14 * 86400.0, 256 << 20, 600.0)
    assert (config.storage, config.retention, config.deny_delete, config.compression) == ("file", "limits", True, "s2")
    await bus.ensure_stream(StreamSpec(EVENTS_STREAM, STREAMS[1].subjects, max_age_s=3600.0, max_bytes=128 << 20))
    config = (await js.stream_info(EVENTS_STREAM)).config
    assert (config.max_age, config.max_bytes, config.deny_delete) == (3600.0, 128 << 20, True)
    await client.close()


async def test_a_deleted_key_is_told_to_the_watch_and_reads_as_none(
    bus: NatsBus, server: NatsServer, until: Until
) -> None:
    got: list[Entry] = []
    await bus.put(CONFIG_BUCKET, "global", b"1")
    await bus.watch(CONFIG_BUCKET, got.append)
    client = await nats.connect(server.url)
    await (await client.jetstream().key_value(CONFIG_BUCKET)).delete("global")
    await until(lambda: got and got[-1] == Entry("global", None, 2))
    assert await bus.get(CONFIG_BUCKET, "global") is None
    await client.close()


async def test_too_many_messages_at_once_are_counted_as_lost(server: NatsServer, until: Until) -> None:
    slow = await new_client(server, pending_messages=10)
    fast = await new_client(server)
    got: list[Received] = []
    before = count(telemetry.DROPPED, "test", "slow_consumer")
    await slow.subscribe("burst", got.append)
    for number in range(2000):
        await fast.publish("burst", b"%d" % number)

    def lost() -> float:
        return count(telemetry.DROPPED, "test", "slow_consumer") - before

    await until(lambda: len(got) + lost() == 2000)
    assert lost() > 0
    assert slow.connected
    await slow.drain()
    await fast.drain()


async def test_too_large_a_message_is_dropped_or_not_stored_at_once(bus: NatsBus) -> None:
    before = count(telemetry.DROPPED, "test", "too_large")
    assert await bus.publish("x", b"x" * (2 << 20)) is False
    assert count(telemetry.DROPPED, "test", "too_large") == before + 1
    with pytest.raises(NotStored) as caught:
        await bus.publish_durable(DurableMessage(INTENT.format(1), b"x" * (2 << 20), msg_id="1"))
    assert caught.value.reason == "too_large"


async def test_a_poisoned_message_is_refused_and_counted_and_the_next_one_taken(
    server: NatsServer, until: Until
) -> None:
    bus: Bus = await new_client(server)
    wire = Wire(bus, SystemClock(), node="node-a", service="test")
    slot = await wire.newest(Health, suffix=".qrm")
    subject = "sublet.node.v1.health.node-a.qrm"
    before = count(telemetry.REFUSED, "test", "health", "malformed")
    for poison in (b"", b"\xff\xfe", b"[" * 100_000, b'{"v": 1, "node": 5}', b'{"health": NaN}'):
        await bus.publish(subject, poison)
    good = wire.stamp(Health, health=ServiceHealth(service="qrm", ok=True))
    await wire.publish(good, suffix=".qrm")
    async with asyncio.timeout(patience_s(10)):
        assert await slot.next() == good
    assert count(telemetry.REFUSED, "test", "health", "malformed") == before + 5
    await bus.drain()


async def test_a_conflict_is_never_retried(bus: NatsBus) -> None:
    await bus.publish_durable(DurableMessage(INTENT.format(1), b"", msg_id="1", expect_last_subject_seq=0))
    before = count(telemetry.STORE_RETRIES)
    with pytest.raises(Conflict):
        await bus.publish_durable(DurableMessage(INTENT.format(1), b"", msg_id="2", expect_last_subject_seq=0))
    assert count(telemetry.STORE_RETRIES) == before
