"""What every bus must do: one suite for the real NATS server, the bus in memory, and a node's bus over either."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from fixture_types import Until

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect, connect_without_echo
from shared.contracts.bus.subjects import StreamSpec
from shared.errors import Conflict, IdTaken, NotStored, Unavailable
from shared.fakes.memory_broker import MemoryBroker
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Bus, DurableMessage, Entry, Received
from shared.standalone_bus import StandaloneBus

_number = itertools.count(1)


@dataclass
class World:
    """A server and clients of it. `area` is a subject prefix, and `stream` a stream name, that no other test uses."""

    kind: str
    url: str
    broker: MemoryBroker = field(default_factory=MemoryBroker)
    area: str = field(default_factory=lambda: f"area{next(_number)}")
    clients: list[Bus] = field(default_factory=list)

    async def client(self) -> Bus:
        alone, clock = not self.kind.startswith("standalone"), SystemClock()
        if self.url:
            to_nats = connect if alone else connect_without_echo
            bus: Bus = await to_nats(self.url, name="test/contract", connect_timeout_s=5, clock=clock)
        else:
            bus = MemoryBus(self.broker, clock, echo=alone)
        self.clients.append(bus if alone else StandaloneBus(bus))
        return self.clients[-1]

    @property
    def stream(self) -> str:
        return self.area.upper()

    def spec(self, **changes: object) -> StreamSpec:
        return StreamSpec(**({"name": self.stream, "subjects": (f"{self.area}.fact.>",), "max_age_s": 3600.0,
                              "max_bytes": 1 << 20} | changes))  # type: ignore[arg-type]  # fmt: skip


@pytest.fixture(params=["memory", "standalone", "nats", "standalone over nats"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    url = request.getfixturevalue("nats_server").url if "nats" in request.param else ""
    world = World(request.param, url)
    yield world
    for bus in world.clients:
        await bus.drain()


@pytest.fixture
async def bus(world: World) -> Bus:
    return await world.client()


async def first(messages: AsyncIterator[Received]) -> Received:
    async with asyncio.timeout(20), contextlib.aclosing(cast("AsyncGenerator[Received, None]", messages)):
        return await anext(messages)


async def fill(bus: Bus, world: World, *names: str) -> None:
    await bus.ensure_stream(world.spec())
    for number, name in enumerate(names, 1):
        await bus.publish_durable(
            DurableMessage(f"{world.area}.fact.{name}", b"%d" % number, msg_id=f"{world.area}-{number}")
        )


async def test_a_message_reaches_every_subscriber_once_with_subject_data_and_headers(
    world: World, bus: Bus, until: Until
) -> None:
    other = await world.client()
    got: list[Any] = []
    await other.subscribe(f"{world.area}.x", got.append)
    await bus.subscribe(f"{world.area}.x", got.append)
    assert await bus.publish(f"{world.area}.x", b"hello", {"ce-id": "1"}) is True
    await until(lambda: len(got) == 2)
    assert got == [Received(f"{world.area}.x", b"hello", {"ce-id": "1"})] * 2
    # Whoever shares the connection of the sender may not hear it a second time, from the server.
    assert await other.publish(f"{world.area}.x", b"the next") is True
    await until(lambda: len(got) >= 4)
    assert [received.data for received in got[2:]] == [b"the next"] * 2


@pytest.mark.parametrize(
    ("pattern", "heard"),
    [("a.*", ["a.b", "a.c"]), ("a.>", ["a.b", "a.c", "a.b.c"]), ("*.b", ["a.b"]), ("a.b", ["a.b"])],
)
async def test_wildcards_stand_for_one_token_or_for_the_rest(
    world: World, bus: Bus, until: Until, pattern: str, heard: list[str]
) -> None:
    got: list[Any] = []
    await bus.subscribe(f"{world.area}.{pattern}", lambda m: got.append(m.subject.removeprefix(f"{world.area}.")))
    for subject in ("a", "a.b", "a.c", "a.b.c", "a.b"):
        await bus.publish(f"{world.area}.{subject}", b"")
    wanted = [*heard, "a.b"]
    await until(lambda: len(got) >= len(wanted))
    assert got == wanted


async def test_messages_of_one_sender_stay_in_order(world: World, bus: Bus, until: Until) -> None:
    got: list[Any] = []
    await bus.subscribe(f"{world.area}.>", lambda m: got.append(int(m.data)))
    for number in range(500):
        await bus.publish(f"{world.area}.{number % 3}", b"%d" % number)
    await until(lambda: len(got) == 500)
    assert got == list(range(500))


async def test_nothing_is_delivered_after_stop(world: World, bus: Bus, until: Until) -> None:
    stopped: list[Received] = []
    kept: list[Received] = []
    subscription = await bus.subscribe(f"{world.area}.x", stopped.append)
    await bus.subscribe(f"{world.area}.x", kept.append)
    await bus.publish(f"{world.area}.x", b"1")
    await until(lambda: stopped and kept)
    await subscription.stop()
    await bus.publish(f"{world.area}.x", b"2")
    await until(lambda: len(kept) == 2)
    assert len(stopped) == 1


async def test_a_handler_that_fails_loses_only_its_own_message(world: World, bus: Bus, until: Until) -> None:
    got: list[Any] = []

    def handler(message: Received) -> None:
        got.append(message.data)
        if message.data == b"bad":
            raise ValueError("cannot read that")

    await bus.subscribe(f"{world.area}.x", handler)
    await bus.publish(f"{world.area}.x", b"bad")
    await bus.publish(f"{world.area}.x", b"good")
    await until(lambda: got == [b"bad", b"good"])


async def test_a_closed_client_drops_its_publishes_and_says_so(world: World, bus: Bus) -> None:
    await bus.drain()
    assert bus.connected is False
    assert await bus.publish(f"{world.area}.x", b"") is False


async def test_a_fact_is_stored_and_numbered_in_its_stream(world: World, bus: Bus) -> None:
    await bus.ensure_stream(world.spec())
    stored = [await bus.publish_durable(DurableMessage(f"{world.area}.fact.{n}", b"", msg_id=f"{n}")) for n in range(3)]
    assert [(s.stream, s.sequence, s.duplicate) for s in stored] == [(world.stream, n, False) for n in (1, 2, 3)]


async def test_the_same_id_is_stored_once(world: World, bus: Bus) -> None:
    await fill(bus, world, "a")
    again = await bus.publish_durable(DurableMessage(f"{world.area}.fact.a", b"1", msg_id=f"{world.area}-1"))
    assert (again.sequence, again.duplicate) == (1, True)
    assert len(await bus.replay(world.stream, ">")) == 1


async def test_an_id_that_another_subject_has_used_is_taken_and_that_is_said(world: World, bus: Bus) -> None:
    await fill(bus, world, "a")
    with pytest.raises(IdTaken, match=r"fact\.a' has its id"):
        await bus.publish_durable(DurableMessage(f"{world.area}.fact.b", b"", msg_id=f"{world.area}-1"))
    assert [m.subject for m in await bus.replay(world.stream, ">")] == [f"{world.area}.fact.a"]


async def test_the_expected_sequence_admits_one_writer_per_subject(world: World, bus: Bus) -> None:
    await bus.ensure_stream(world.spec())
    subject = f"{world.area}.fact.pod"
    mine = await bus.publish_durable(DurableMessage(subject, b"mine", msg_id="mine", expect_last_subject_seq=0))
    with pytest.raises(Conflict):
        await bus.publish_durable(DurableMessage(subject, b"theirs", msg_id="theirs", expect_last_subject_seq=0))
    after = await bus.publish_durable(
        DurableMessage(subject, b"next", msg_id="next", expect_last_subject_seq=mine.sequence)
    )
    assert [m.data for m in await bus.replay(world.stream, subject)] == [b"mine", b"next"]
    assert after.sequence == mine.sequence + 1


async def test_a_repetition_of_a_stored_fact_is_no_conflict(world: World, bus: Bus) -> None:
    """The acknowledgement may have got lost: the same id with the same expectation must come out as stored."""
    await bus.ensure_stream(world.spec())
    subject = f"{world.area}.fact.pod"
    stored = await bus.publish_durable(DurableMessage(subject, b"mine", msg_id="mine", expect_last_subject_seq=0))
    again = await bus.publish_durable(DurableMessage(subject, b"mine", msg_id="mine", expect_last_subject_seq=0))
    assert (again.sequence, again.duplicate) == (stored.sequence, True)
    await bus.publish_durable(
        DurableMessage(subject, b"later", msg_id="later", expect_last_subject_seq=stored.sequence)
    )
    late = await bus.publish_durable(DurableMessage(subject, b"mine", msg_id="mine", expect_last_subject_seq=0))
    assert (late.sequence, late.duplicate) == (stored.sequence, True)


async def test_an_expectation_ahead_of_the_subject_is_a_conflict(world: World, bus: Bus) -> None:
    await fill(bus, world, "a")
    with pytest.raises(Conflict):
        await bus.publish_durable(DurableMessage(f"{world.area}.fact.new", b"", msg_id="x", expect_last_subject_seq=1))


async def test_without_a_stream_a_fact_is_not_stored_within_its_budget(world: World, bus: Bus) -> None:
    with pytest.raises(NotStored, match=r"no acknowledgement in 0\.3 s"):
        await bus.publish_durable(DurableMessage(f"{world.area}.nowhere", b"", msg_id="1"), budget_s=0.3)


async def test_a_fact_also_reaches_plain_subscribers(world: World, bus: Bus, until: Until) -> None:
    got: list[Any] = []
    await bus.subscribe(f"{world.area}.fact.>", got.append)
    await fill(bus, world, "a")
    await until(lambda: got)
    assert got[0].data == b"1"


async def test_replay_gives_what_the_stream_holds_in_order(world: World, bus: Bus) -> None:
    await fill(bus, world, "a", "b", "a", "c")
    everything = await bus.replay(world.stream, f"{world.area}.fact.>")
    assert [(m.data, m.sequence) for m in everything] == [(b"1", 1), (b"2", 2), (b"3", 3), (b"4", 4)]
    assert everything[0].headers["Nats-Msg-Id"] == f"{world.area}-1"
    assert [m.data for m in await bus.replay(world.stream, f"{world.area}.fact.a")] == [b"1", b"3"]


async def test_replay_can_give_the_last_of_each_subject(world: World, bus: Bus) -> None:
    await fill(bus, world, "a", "b", "a", "c")
    last = await bus.replay(world.stream, f"{world.area}.fact.*", last_per_subject=True)
    assert [(m.subject.rpartition(".")[2], m.data) for m in last] == [("b", b"2"), ("a", b"3"), ("c", b"4")]


async def test_replay_of_a_missing_stream_or_an_empty_subject_is_empty(world: World, bus: Bus) -> None:
    assert list(await bus.replay("NO_SUCH", ">")) == []
    await fill(bus, world, "a")
    assert list(await bus.replay(world.stream, f"{world.area}.fact.zzz")) == []


async def test_replay_reads_more_than_one_batch(world: World, bus: Bus) -> None:
    await bus.ensure_stream(world.spec())
    for number in range(700):
        await bus.publish(f"{world.area}.fact.many", b"%d" % number)
    await bus.publish_durable(DurableMessage(f"{world.area}.fact.many", b"700", msg_id="last"))
    assert [int(m.data) for m in await bus.replay(world.stream, ">")] == list(range(701))


async def test_follow_starts_at_a_sequence_and_stays_live(world: World, bus: Bus) -> None:
    await fill(bus, world, "a", "b", "c")
    followed = bus.follow(world.stream, f"{world.area}.fact.>", from_sequence=2)
    assert [(await anext(followed)).data for _ in range(2)] == [b"2", b"3"]
    waiting = asyncio.ensure_future(anext(followed))
    await bus.publish_durable(DurableMessage(f"{world.area}.fact.a", b"live", msg_id="live"))
    async with asyncio.timeout(20):
        assert (await waiting).data == b"live"
    await cast("AsyncGenerator[Received, None]", followed).aclose()


async def test_follow_waits_for_a_stream_that_does_not_exist_yet(world: World, bus: Bus) -> None:
    followed = asyncio.ensure_future(first(bus.follow(world.stream, ">")))
    await asyncio.sleep(0)
    await fill(bus, world, "a")
    assert (await followed).data == b"1"


async def test_a_stream_is_brought_to_its_specification(world: World, bus: Bus) -> None:
    await fill(bus, world, "a")
    await bus.ensure_stream(world.spec(subjects=(f"{world.area}.fact.>", f"{world.area}.more.>"), max_age_s=7200.0))
    stored = await bus.publish_durable(DurableMessage(f"{world.area}.more.x", b"", msg_id="more"))
    assert (stored.stream, stored.sequence) == (world.stream, 2)


async def test_a_value_is_written_and_read_with_its_revision(world: World, bus: Bus) -> None:
    other = await world.client()
    await bus.ensure_bucket(world.area)
    await bus.ensure_bucket(world.area)
    assert await bus.put(world.area, "global", b"one") == 1
    assert await bus.put(world.area, "node.a", b"two") == 2
    assert await bus.put(world.area, "global", b"three") == 3
    assert await other.get(world.area, "global") == Entry("global", b"three", 3)
    assert await other.get(world.area, "node.a") == Entry("node.a", b"two", 2)


async def test_a_missing_key_or_bucket_reads_as_none(world: World, bus: Bus) -> None:
    assert await bus.get("no-such", "global") is None
    await bus.ensure_bucket(world.area)
    assert await bus.get(world.area, "global") is None


async def test_writing_to_a_missing_bucket_fails(world: World, bus: Bus) -> None:
    with pytest.raises(Unavailable):
        await bus.put("no-such", "global", b"")


async def test_a_watch_gives_the_current_values_then_every_change(world: World, bus: Bus, until: Until) -> None:
    other = await world.client()
    got: list[Any] = []
    await bus.ensure_bucket(world.area)
    await bus.put(world.area, "global", b"old")
    await bus.put(world.area, "global", b"one")
    await bus.put(world.area, "node.a", b"two")
    subscription = await other.watch(world.area, got.append)
    await until(lambda: len(got) == 2)
    await bus.put(world.area, "global", b"three")
    await until(lambda: len(got) == 3)
    assert got == [Entry("global", b"one", 2), Entry("node.a", b"two", 3), Entry("global", b"three", 4)]
    await subscription.stop()
    await bus.put(world.area, "global", b"four")
    assert await other.get(world.area, "global") == Entry("global", b"four", 5)
    assert len(got) == 3


async def test_a_watch_of_some_keys_hears_of_no_other(world: World, bus: Bus, until: Until) -> None:
    other = await world.client()
    got: list[Any] = []
    await bus.ensure_bucket(world.area)
    await bus.put(world.area, "global", b"old")
    await bus.put(world.area, "global", b"one")
    await bus.put(world.area, "node.b", b"foreign")
    subscription = await other.watch(world.area, got.append, keys=("global", "node.a"))
    await until(lambda: len(got) == 1)
    await bus.put(world.area, "node.a", b"two")
    await until(lambda: len(got) == 2)
    await bus.put(world.area, "node.b", b"foreign again")
    await bus.put(world.area, "global", b"three")
    await until(lambda: len(got) == 3)
    assert got == [Entry("global", b"one", 2), Entry("node.a", b"two", 4), Entry("global", b"three", 6)]
    await subscription.stop()
    await bus.put(world.area, "global", b"four")
    assert await other.get(world.area, "global") == Entry("global", b"four", 7)
    assert len(got) == 3


async def test_a_watch_of_some_keys_waits_for_a_missing_bucket(world: World, bus: Bus, until: Until) -> None:
    got: list[Any] = []
    await bus.watch(world.area, got.append, keys=("node.a",))
    await asyncio.sleep(0)
    await bus.ensure_bucket(world.area)
    await bus.put(world.area, "node.a", b"one")
    await until(lambda: got == [Entry("node.a", b"one", 1)])


async def test_a_watch_waits_for_a_missing_bucket(world: World, bus: Bus, until: Until) -> None:
    got: list[Any] = []
    await bus.watch(world.area, got.append)
    await asyncio.sleep(0)
    await bus.ensure_bucket(world.area)
    await bus.put(world.area, "global", b"one")
    await until(lambda: got == [Entry("global", b"one", 1)])


async def test_a_question_is_answered(world: World, bus: Bus) -> None:
    other = await world.client()
    await other.serve(f"{world.area}.ask", lambda question: b"you asked " + question)
    assert await bus.request(f"{world.area}.ask", b"why") == b"you asked why"


async def test_a_question_that_nobody_answers_is_unavailable(world: World, bus: Bus) -> None:
    with pytest.raises(Unavailable, match=f"{world.area}.ask"):
        await bus.request(f"{world.area}.ask", b"")
    serving = await bus.serve(f"{world.area}.ask", lambda question: question)
    await serving.stop()
    with pytest.raises(Unavailable):
        await bus.request(f"{world.area}.ask", b"")


async def test_an_answer_that_fails_is_unavailable_with_the_reason(world: World, bus: Bus) -> None:
    def fail(question: bytes) -> bytes:
        raise KeyError("no state yet")

    other = await world.client()
    await other.serve(f"{world.area}.ask", fail)
    with pytest.raises(Unavailable, match="no state yet"):
        await bus.request(f"{world.area}.ask", b"")


async def test_drain_delivers_what_was_received_then_closes(world: World, bus: Bus, until: Until) -> None:
    other = await world.client()
    got: list[Any] = []
    await other.subscribe(f"{world.area}.x", got.append)
    for number in range(100):
        await bus.publish(f"{world.area}.x", b"%d" % number)
    await bus.drain()
    await until(lambda: len(got) == 100)
    assert await bus.wait_closed() == "closed by this process"
    assert not bus.connected
    await bus.drain()  # a second time changes nothing


async def test_a_closed_client_answers_every_call_with_a_clear_word(world: World, bus: Bus) -> None:
    await bus.drain()
    with pytest.raises(NotStored):
        await bus.publish_durable(DurableMessage("x", b"", msg_id="1"), budget_s=0.2)
    for call in (
        bus.request("x"), bus.subscribe("x", print), bus.replay("X", ">"), bus.put("b", "k", b""), bus.get("b", "k"),
        bus.ensure_bucket("b"), bus.ensure_stream(world.spec()), anext(bus.follow("X", ">")),
    ):  # fmt: skip
        with pytest.raises(Unavailable):
            await call
