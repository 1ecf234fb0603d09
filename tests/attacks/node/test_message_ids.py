"""A node that publishes the message ids of another node first suppresses nothing, and is told of."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from nats.aio.client import Client
from slow_machines import patience_s
from two_nodes import TwoNodes, Until

from services.evictor.record.outbox import Outbox
from shared.adapters.clock import SystemClock
from shared.adapters.ledger.sqlite import SqliteLedger
from shared.adapters.nats.bus import NatsBus
from shared.contracts.bus.cloudevents import MSG_ID, event_headers
from shared.contracts.bus.stored import read_event
from shared.contracts.bus.subjects import EVENTS_STREAM, event_filter, event_subject
from shared.contracts.eviction import EvictionEvent, EvictionIntent
from shared.contracts.ids import intent_id
from shared.contracts.pod import Pod
from shared.core.evictions.intents import IntentRecord, Outgoing, TokenBucket
from shared.errors import IdTaken
from shared.ports import DurableMessage
from shared.wire import message_id

EVENTS = 30
FACTS = {
    "boot_id": "0" * 8, "seq": 1, "sent_at": datetime(2026, 1, 1, tzinfo=UTC), "namespace": "default", "pod": "p",
    "qos": "reclaimed_cores", "plugin": "p", "scope": "memory",
}  # fmt: skip


class FastClock(SystemClock):
    """Pauses are short."""

    async def sleep(self, seconds: float) -> None:
        """A moment."""
        await super().sleep(min(seconds, 0.01))


def event(number: int, node: str = "b") -> EvictionEvent:
    uid = f"{number:x}"
    facts = FACTS | {"node": node, "intent_id": intent_id("b", uid, "p", number), "pod_uid": uid}
    return EvictionEvent.model_validate(facts | {"phase": "created"})


async def steal(thief: Client, msg_id: str, one: EvictionEvent) -> None:
    """Node a uses an id of node b's, in an event of its own."""
    subject = event_subject(one.model_copy(update={"node": "a"}))
    headers = event_headers(one) | {MSG_ID: msg_id}
    await thief.jetstream().publish(subject, one.encode(), headers=headers, timeout=patience_s(10))


async def of_b(central: NatsBus) -> list[EvictionEvent]:
    """What honest readers have of node b."""
    read = [read_event(r.subject, r.headers, r.data) for r in await central.replay(EVENTS_STREAM, ">")]
    return [one for one in read if isinstance(one, EvictionEvent) and one.node == "b"]


def keep(ledger: SqliteLedger, events: list[EvictionEvent], msg_ids: list[str]) -> None:
    """As the evictor's journal does."""
    for one, msg_id in zip(events, msg_ids, strict=True):
        facts = {name: getattr(one, name) for name in ("node", "boot_id", "seq", "sent_at", "namespace", "pod")}
        facts |= {name: getattr(one, name) for name in ("intent_id", "pod_uid", "qos", "plugin", "scope")}
        intent = EvictionIntent.model_validate(facts | {"episode": 1})
        record = IntentRecord(intent, Pod(uid=one.pod_uid, name="p", qos="reclaimed_cores"), hard=True, opened_at_s=0.0)
        headers = event_headers(one) | {MSG_ID: msg_id}
        ledger.begin(record, TokenBucket(1.0, 0.0), [Outgoing(one.event_id, event_subject(one), one.encode(), headers)])


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    ledger = SqliteLedger(tmp_path / "state")
    ledger.open(first_episode=1)
    yield ledger
    ledger.close()


async def test_a_thief_of_message_ids_suppresses_no_event_of_another_node(
    two_nodes: TwoNodes, ledger: SqliteLedger, until: Until
) -> None:
    """He knows each fact before it is told. He even has the random parts of half of them, which nobody can know."""
    events = [event(number) for number in range(EVENTS)]
    msg_ids = [message_id(one.event_id) for one in events]
    for one, msg_id in zip(events, msg_ids, strict=True):
        await steal(two_nodes.thief, one.event_id, one)
        if int(one.pod_uid, 16) % 2:
            await steal(two_nodes.thief, msg_id, one)
    keep(ledger, events, msg_ids)
    outbox = Outbox(ledger, two_nodes.agent, FastClock())
    work = asyncio.create_task(outbox.run())
    outbox.wake()
    try:
        await until(lambda: ledger.waiting_count() == 0)
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    assert await of_b(two_nodes.central) == events
    assert "'sublet.cluster.v1.event.eviction.created.default.a' has its id" in outbox.alarm


async def test_a_repetition_is_no_theft_and_another_body_is(two_nodes: TwoNodes) -> None:
    one = event(1)
    subject, msg_id = event_subject(one), message_id(one.event_id)
    first = await two_nodes.agent.publish_durable(
        DurableMessage(subject, one.encode(), msg_id=msg_id, headers=event_headers(one))
    )
    again = await two_nodes.agent.publish_durable(
        DurableMessage(subject, one.encode(), msg_id=msg_id, headers=event_headers(one))
    )
    assert (again.sequence, again.duplicate) == (first.sequence, True)
    with pytest.raises(IdTaken):
        await two_nodes.agent.publish_durable(DurableMessage(subject, b"another", msg_id=msg_id))
    assert len(await two_nodes.agent.replay(EVENTS_STREAM, event_filter(node="b"))) == 1
