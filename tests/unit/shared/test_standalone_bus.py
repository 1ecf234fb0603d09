"""A node's bus: services hand each other their messages; without the server they still do, and nothing durable is
pretended."""

import pytest
from fixture_types import Until

from shared.errors import NotStored
from shared.fakes.memory_bus import MemoryBus
from shared.ports import DurableMessage, Received
from shared.standalone_bus import StandaloneBus

SAMPLE = "sublet.node.n1.sample"
EVERY_SAMPLE = "sublet.node.*.sample"


@pytest.fixture
def inner() -> MemoryBus:
    return MemoryBus(echo=False)


@pytest.fixture
def node(inner: MemoryBus) -> StandaloneBus:
    return StandaloneBus(inner)


async def test_alone_a_node_message_reaches_the_readers_of_its_subject_and_nobody_else(
    node: StandaloneBus, inner: MemoryBus, until: Until
) -> None:
    got: list[Received] = []
    other: list[Received] = []
    await node.subscribe(EVERY_SAMPLE, got.append)
    await node.subscribe("sublet.node.n1.advice", other.append)
    inner.go_offline()
    assert await node.publish(SAMPLE, b"1", {"h": "v"}) is True
    await until(lambda: got)
    assert got == [Received(SAMPLE, b"1", {"h": "v"})]
    assert other == []
    assert node.connected is False


async def test_a_publisher_never_runs_its_readers(node: StandaloneBus, inner: MemoryBus, until: Until) -> None:
    got: list[Received] = []
    await node.subscribe(SAMPLE, got.append)
    inner.go_offline()
    await node.publish(SAMPLE, b"1")
    assert got == []
    await until(lambda: got)


async def test_with_the_server_a_message_arrives_once(node: StandaloneBus, inner: MemoryBus, until: Until) -> None:
    got: list[Received] = []
    await node.subscribe(SAMPLE, got.append)
    await node.publish(SAMPLE, b"1")
    inner.go_offline()
    await node.publish(SAMPLE, b"2")
    inner.go_online()
    await node.publish(SAMPLE, b"3")
    await until(lambda: len(got) >= 3)
    assert [received.data for received in got] == [b"1", b"2", b"3"]


async def test_neighbours_get_what_is_sent_for_everybody_and_what_others_send(
    node: StandaloneBus, inner: MemoryBus, until: Until
) -> None:
    outside = MemoryBus(inner.broker)
    near: list[Received] = []
    far: list[Received] = []
    await node.subscribe("sublet.>", near.append)
    await outside.subscribe("sublet.>", far.append)
    await node.publish("sublet.central.readiness", b"1")
    await outside.publish(SAMPLE, b"2")
    await until(lambda: len(far) == len(near) == 2)
    assert [received.data for received in near] == [received.data for received in far] == [b"1", b"2"]


async def test_a_reader_that_fails_keeps_no_other_from_hearing(
    node: StandaloneBus, inner: MemoryBus, until: Until
) -> None:
    def fails(_received: Received) -> None:
        raise ValueError("a fault of the reader")

    got: list[Received] = []
    await node.subscribe(SAMPLE, fails)
    await node.subscribe(SAMPLE, got.append)
    inner.go_offline()
    await node.publish(SAMPLE, b"1")
    await node.publish(SAMPLE, b"2")
    await until(lambda: len(got) == 2)


async def test_what_leaves_the_node_is_dropped_and_said_so(node: StandaloneBus, inner: MemoryBus) -> None:
    got: list[Received] = []
    await node.subscribe("sublet.central.>", got.append)
    inner.go_offline()
    assert await node.publish("sublet.central.readiness", b"1") is False
    assert got == []


async def test_a_durable_publish_still_fails(node: StandaloneBus, inner: MemoryBus) -> None:
    inner.go_offline()
    with pytest.raises(NotStored):
        await node.publish_durable(DurableMessage("sublet.node.n1.x", b"1", msg_id="1"), budget_s=0.0)


async def test_a_stopped_reader_hears_nothing_even_of_what_was_on_its_way(
    node: StandaloneBus, inner: MemoryBus, until: Until
) -> None:
    got: list[Received] = []
    rest: list[Received] = []
    reader = await node.subscribe(SAMPLE, got.append)
    await node.subscribe(SAMPLE, rest.append)
    inner.go_offline()
    await node.publish(SAMPLE, b"1")
    await reader.stop()
    await until(lambda: rest)
    assert got == []
