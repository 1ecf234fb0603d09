"""Durable publishing against a broker that loses acknowledgements or is away."""

import asyncio

import pytest
from fixture_types import Virtual

from shared import telemetry
from shared.contracts.bus.subjects import INTENTS_STREAM, STREAMS
from shared.errors import Conflict, NotStored
from shared.fakes.memory_bus import MemoryBus
from shared.ports import DurableMessage

SUBJECT = "sublet.cluster.v1.intent.node-a.1"


async def ready_bus() -> MemoryBus:
    bus = MemoryBus()
    for spec in STREAMS:
        await bus.ensure_stream(spec)
    return bus


def test_lost_acknowledgements_are_repeated_with_the_same_id_and_stored_once(virtual: Virtual) -> None:
    async def story() -> None:
        bus = await ready_bus()
        before = telemetry.STORE_RETRIES._value.get()
        bus.broker.lose_acks(times=5)
        stored = await bus.publish_durable(DurableMessage(SUBJECT, b"x", msg_id="1", expect_last_subject_seq=0))
        assert (stored.sequence, stored.duplicate) == (1, True)
        assert len(await bus.replay(INTENTS_STREAM, ">")) == 1
        assert telemetry.STORE_RETRIES._value.get() == before + 5

    virtual(story())


def test_an_absence_shorter_than_the_budget_is_survived(virtual: Virtual) -> None:
    async def story() -> None:
        bus = await ready_bus()
        bus.go_offline()
        asyncio.get_running_loop().call_later(15, bus.go_online)
        assert (await bus.publish_durable(DurableMessage(SUBJECT, b"x", msg_id="1"))).sequence == 1

    virtual(story())


@pytest.mark.parametrize("budget_s", [0.0, 0.5, 20.0])
def test_the_budget_is_kept_and_the_outcome_called_unknown(virtual: Virtual, budget_s: float) -> None:
    async def story() -> None:
        bus = await ready_bus()
        bus.go_offline()
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(NotStored, match=f"in {budget_s:g} s") as caught:
            await bus.publish_durable(DurableMessage(SUBJECT, b"x", msg_id="1"), budget_s=budget_s)
        assert caught.value.reason == "no_ack"
        assert loop.time() - started == pytest.approx(budget_s, abs=0.1)
        bus.go_online()
        assert (await bus.publish_durable(DurableMessage(SUBJECT, b"x", msg_id="1"))).sequence == 1

    virtual(story())


def test_a_conflict_ends_the_tries_at_once(virtual: Virtual) -> None:
    async def story() -> None:
        bus = await ready_bus()
        await bus.publish_durable(DurableMessage(SUBJECT, b"x", msg_id="1"))
        with pytest.raises(Conflict):
            await bus.publish_durable(DurableMessage(SUBJECT, b"y", msg_id="2", expect_last_subject_seq=0))
        assert asyncio.get_running_loop().time() < 0.1

    virtual(story())


def test_an_id_is_forgotten_after_the_duplicate_window(virtual: Virtual) -> None:
    """The window is ten minutes: whoever repeats later needs the expected sequence."""

    async def story() -> None:
        bus = await ready_bus()
        await bus.publish_durable(DurableMessage(SUBJECT, b"x", msg_id="1", expect_last_subject_seq=0))
        await asyncio.sleep(599)
        assert (await bus.publish_durable(DurableMessage(SUBJECT, b"x", msg_id="1"))).duplicate
        await asyncio.sleep(2)
        assert not (await bus.publish_durable(DurableMessage(SUBJECT, b"x", msg_id="1"))).duplicate
        again = await bus.publish_durable(DurableMessage(SUBJECT, b"x", msg_id="1", expect_last_subject_seq=0))
        assert (again.sequence, again.duplicate) == (1, True)

    virtual(story())
