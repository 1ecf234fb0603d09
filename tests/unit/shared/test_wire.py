"""The typed side of the bus: what a service stamps, publishes and accepts."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from fixture_types import Virtual
from hypothesis import given
from hypothesis import strategies as st
from present import present
from structlog.testing import capture_logs

from shared import telemetry
from shared.adapters.clock import LoopClock, SystemClock
from shared.contracts.advice import PoolAdvice
from shared.contracts.readiness import Health, ServiceHealth
from shared.core.bus.newest import PERIOD_S
from shared.fakes.memory_broker import MemoryBroker
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Received
from shared.wire import Newest, Wire

SUBJECT = "sublet.node.v1.advice.node-a"
ADVICE: dict[str, Any] = {"policy": "canonical", "pools": (), "reclaimed_cpu_millis": 0, "reclaimed_memory_bytes": 0}


def memory_bus(wire: Wire) -> MemoryBus:
    """The bus of a wire, which can go away."""
    assert isinstance(wire.bus, MemoryBus)
    return wire.bus


def wires(broker: MemoryBroker, node: str = "node-a") -> Wire:
    clock = LoopClock()
    return Wire(MemoryBus(broker, clock), clock, node=node, service="test")


def refused(reason: str) -> float:
    count: float = telemetry.REFUSED.labels("test", "advice", reason)._value.get()
    return count


def test_stamped_messages_count_up_within_one_life_and_carry_the_envelope(virtual: Virtual) -> None:
    async def story() -> None:
        wire = wires(MemoryBroker())
        wire.config_rev = 7
        one, two = (wire.stamp(PoolAdvice, based_on=("sample/1",), **ADVICE) for _ in range(2))
        assert (one.seq, two.seq, one.ref) == (1, 2, "advice/1")
        assert (one.node, one.boot_id, one.config_rev, one.based_on) == ("node-a", wire.boot_id, 7, ("sample/1",))
        assert wire.stamp(Health, health=ServiceHealth(service="x", ok=True)).seq == 1  # each kind counts for itself
        assert wires(MemoryBroker()).boot_id != wire.boot_id

    virtual(story())


def test_the_newest_message_wins_and_is_handed_out_once(virtual: Virtual) -> None:
    async def story() -> None:
        broker = MemoryBroker()
        reader, writer = wires(broker), wires(broker)
        slot = await reader.newest(PoolAdvice)
        assert (slot.value, slot.age_s, slot.within(10)) == (None, None, None)
        for _ in range(3):
            await writer.publish(writer.stamp(PoolAdvice, **ADVICE))
        assert present(await slot.next()).seq == 3
        assert await slot.next(timeout_s=5) is None
        assert present(slot.value).seq == 3

    virtual(story())


def test_what_was_published_in_this_process_is_not_read_again(
    virtual: Virtual, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what somebody else sent is, each payload once, however many read it."""

    async def story() -> None:
        read: list[bytes] = []
        decode = PoolAdvice.decode

        def noted(payload: bytes) -> PoolAdvice:
            read.append(payload)
            return decode(payload)

        monkeypatch.setattr(PoolAdvice, "decode", noted)
        broker = MemoryBroker()
        writer, stranger = wires(broker), wires(broker)
        slots = [await wires(broker).newest(PoolAdvice) for _ in range(2)]
        said = writer.stamp(PoolAdvice, **ADVICE)
        await writer.publish(said)
        assert [await slot.next() for slot in slots] == [said, said]
        assert read == []
        payload = stranger.stamp(PoolAdvice, **ADVICE).encode()
        await stranger.bus.publish(SUBJECT, payload)
        assert [await slot.next() for slot in slots] == [decode(payload)] * 2
        assert read == [payload]

    virtual(story())


def test_the_age_is_counted_from_the_receipt_whatever_the_sender_says(virtual: Virtual) -> None:
    async def story() -> None:
        broker = MemoryBroker()
        reader, writer = wires(broker), wires(broker)
        slot = await reader.newest(PoolAdvice)
        sent_at = datetime(2001, 1, 1, tzinfo=UTC)
        await writer.publish(writer.stamp(PoolAdvice, **ADVICE).model_copy(update={"sent_at": sent_at}))
        await slot.next()
        await asyncio.sleep(10)
        assert slot.age_s == pytest.approx(10)
        assert slot.within(10.1) is slot.value
        assert slot.within(9.9) is None

    virtual(story())


def test_a_stale_message_is_never_handed_out_as_fresh(virtual: Virtual) -> None:
    """An offline bus delivers nothing; what is in the slot only grows older."""

    async def story() -> None:
        broker = MemoryBroker()
        reader, writer = wires(broker), wires(broker)
        slot = await reader.newest(PoolAdvice)
        await writer.publish(writer.stamp(PoolAdvice, **ADVICE))
        await slot.next()
        memory_bus(reader).go_offline()
        assert await writer.publish(writer.stamp(PoolAdvice, **ADVICE)) is True
        await asyncio.sleep(60)
        assert present(slot.value).seq == 1
        assert slot.within(59) is None
        memory_bus(reader).go_online()
        await writer.publish(writer.stamp(PoolAdvice, **ADVICE))
        assert present(await slot.next()).seq == 3

    virtual(story())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"seq": 1}, "replayed"),
        ({"seq": 0}, "stale"),
        ({"boot_id": "0123456789abcdef", "seq": 99}, "retired"),
        ({"node": "node-b", "seq": 9}, "foreign_node"),
        ({"v": 2, "seq": 9}, "unknown_version"),
        ({"reason": "[" * 100_000, "seq": 9, "pools": "[" * 1000}, "malformed"),
        ({"reclaimed_cpu_millis": -1, "seq": 9}, "malformed"),
        ({"valid_for_s": "NaN", "seq": 9}, "malformed"),
        ({"pools": "x" * 1_000_001, "seq": 9}, "too_large"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_bad_messages_are_refused_counted_and_leave_the_last_good_one(
    virtual: Virtual, change: dict[str, Any], reason: str
) -> None:
    async def story() -> None:
        broker = MemoryBroker()
        reader, writer = wires(broker), wires(broker)
        slot = await reader.newest(PoolAdvice)
        before_life = {**json.loads(writer.stamp(PoolAdvice, **ADVICE).encode()), "boot_id": "0123456789abcdef"}
        await writer.bus.publish(SUBJECT, json.dumps(before_life).encode())
        good = writer.stamp(PoolAdvice, **ADVICE).model_copy(update={"seq": 1})
        await writer.publish(good)
        await slot.next()
        before = refused(reason)
        await writer.bus.publish(SUBJECT, json.dumps({**json.loads(good.encode()), **change}).encode())
        assert await slot.next(timeout_s=1) is None
        assert refused(reason) == before + 1
        assert slot.value == good

    virtual(story())


def test_duplicated_and_reordered_messages_change_nothing(virtual: Virtual) -> None:
    async def story() -> None:
        broker = MemoryBroker()
        reader, writer = wires(broker), wires(broker)
        slot = await reader.newest(PoolAdvice)
        broker.duplicate(SUBJECT)
        broker.reorder(SUBJECT)
        before = refused("replayed"), refused("stale")
        for _ in range(3):  # 1 twice, then 3, then 2
            await writer.publish(writer.stamp(PoolAdvice, **ADVICE))
        await asyncio.sleep(0.1)
        assert present(slot.value).seq == 3
        assert (refused("replayed"), refused("stale")) == (before[0] + 1, before[1] + 1)

    virtual(story())


def test_a_dropped_message_costs_only_itself(virtual: Virtual) -> None:
    async def story() -> None:
        broker = MemoryBroker()
        reader, writer = wires(broker), wires(broker)
        slot = await reader.newest(PoolAdvice)
        broker.drop(SUBJECT)
        for _ in range(2):
            assert await writer.publish(writer.stamp(PoolAdvice, **ADVICE))
        assert present(await slot.next()).seq == 2

    virtual(story())


def test_publishing_without_a_bus_says_so_and_keeps_nothing_back(virtual: Virtual) -> None:
    async def story() -> None:
        broker = MemoryBroker()
        writer = wires(broker)
        memory_bus(writer).go_offline()
        assert await writer.publish(writer.stamp(PoolAdvice, **ADVICE)) is False
        memory_bus(writer).go_online()
        await asyncio.sleep(10)
        assert broker.published[SUBJECT] == 0

    virtual(story())


def test_after_stop_nothing_is_taken(virtual: Virtual) -> None:
    async def story() -> None:
        broker = MemoryBroker()
        reader, writer = wires(broker), wires(broker)
        slot = await reader.newest(PoolAdvice)
        await reader.stop()
        await writer.publish(writer.stamp(PoolAdvice, **ADVICE))
        assert await slot.next(timeout_s=1) is None

    virtual(story())


def test_of_two_advisors_that_alternate_the_living_one_is_followed_within_three_periods(virtual: Virtual) -> None:
    async def story() -> None:
        broker = MemoryBroker()
        reader, one, other = wires(broker), wires(broker), wires(broker)
        slot = await reader.newest(PoolAdvice)
        for _ in range(4):
            for wire in (one, other):
                await wire.publish(wire.stamp(PoolAdvice, **ADVICE))
                await asyncio.sleep(PERIOD_S / 2)
        assert present(slot.value).boot_id == other.boot_id
        assert "TwoSenders" in reader.two_senders
        died_s = reader.clock.monotonic() - PERIOD_S / 2
        while present(slot.value).boot_id != one.boot_id:
            await one.publish(one.stamp(PoolAdvice, **ADVICE))
            await asyncio.sleep(0)
            if present(slot.value).boot_id != one.boot_id:
                await asyncio.sleep(PERIOD_S)
        assert reader.clock.monotonic() - died_s <= 3 * PERIOD_S
        for _ in range(4):
            await one.publish(one.stamp(PoolAdvice, **ADVICE))
            await asyncio.sleep(PERIOD_S)
        assert present(slot.value).boot_id == one.boot_id
        assert reader.two_senders == ""

    virtual(story())


def test_a_message_on_another_nodes_subject_is_refused(virtual: Virtual) -> None:
    async def story() -> None:
        wire = wires(MemoryBroker())
        slot = Newest(PoolAdvice, wire.clock, service="test", node="node-a")
        good = wire.stamp(PoolAdvice, **ADVICE).encode()
        for subject in (
            "sublet.node.v1.advice.node-b",
            "sublet.node.v1.sample.node-a",
            "sublet.node.v1.advice.node-ab",
        ):
            slot.offer(Received(subject, good, {}))
        assert slot.value is None
        slot.offer(Received(SUBJECT, good, {}))
        assert slot.value is not None

    virtual(story())


@given(st.binary(max_size=300), st.text(max_size=40))
def test_the_door_never_raises_and_lets_nothing_in_that_is_no_message(data: bytes, subject: str) -> None:
    slot = Newest(PoolAdvice, SystemClock(), service="test", node="node-a")
    with capture_logs() as said:
        for _ in range(3):
            slot.offer(Received(subject, data, {}))
    assert slot.value is None
    assert len(said) <= 2


def test_a_flood_of_refused_messages_is_one_line_a_second_and_says_how_many_were_held_back(virtual: Virtual) -> None:
    async def story() -> None:
        slot = Newest(PoolAdvice, LoopClock(), service="test", node="node-a")
        with capture_logs() as said:
            for _ in range(3):
                for _ in range(1000):
                    slot.offer(Received(SUBJECT, b'{"node": "' + b"x" * 1000 + b'"}', {}))
                await asyncio.sleep(1.0)
            slot.offer(Received(SUBJECT, b"{", {}))
        assert [line["held_back"] for line in said] == [0, 999, 999, 999]
        assert all(len(line["why"]) <= 300 for line in said)

    virtual(story())
