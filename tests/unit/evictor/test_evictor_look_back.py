"""A hub that comes back from an older copy is told again what it has lost, once, and by the node whose fact it is."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from evictor_world import LARGE, SMALL, Node, overcommitted
from fixture_types import Virtual
from structlog.testing import capture_logs

from services.evictor.record.look_back import BEFORE_SENDING_S, LOOK_BACK_S, LookBack
from shared.adapters.ledger.sqlite import SqliteLedger
from shared.contracts.bus.cloudevents import MSG_ID
from shared.contracts.bus.subjects import EVENTS_STREAM, INTENTS_STREAM
from shared.errors import Unavailable
from shared.ports import DurableMessage, Received

FACTS = {EVENTS_STREAM: 6, INTENTS_STREAM: 2}
"""Of two evictions."""


def stored(node: Node, stream: str) -> list[tuple[str, bytes]]:
    return [(one.subject, one.data) for one in node.broker.streams[stream].messages]


async def evicted(folder: Path) -> Node:
    """A node that has evicted two pods and is at rest."""
    node = await overcommitted(Node(folder, cooling_s=0))
    node.offered_millis, node.evictor.lives_on_s = 1_000, 0
    async with node.life():
        await node.tick(12)
    assert node.kills.keys() == {LARGE.uid, SMALL.uid}
    return node


@pytest.mark.parametrize(("stream", "kept"), [(stream, kept) for stream, n in FACTS.items() for kept in range(n + 1)])
def test_what_a_copy_does_not_have_is_sent_again_in_order_and_what_it_has_is_not(
    tmp_path: Path, virtual: Virtual, stream: str, kept: int
) -> None:
    async def story() -> None:
        node = await evicted(tmp_path)
        whole = {name: stored(node, name) for name in FACTS}
        assert {name: len(facts) for name, facts in whole.items()} == FACTS
        node.offered_millis = None
        async with node.life():
            node.broker.streams[stream].roll_back(kept)
            await node.clock.sleep(LOOK_BACK_S + 60)
            assert {name: stored(node, name) for name in FACTS} == whole
            # And no more of it, however often it is looked.
            await node.clock.sleep(3 * LOOK_BACK_S)
            assert {name: stored(node, name) for name in FACTS} == whole
        assert sum(node.kills.values()) == 2, "nobody is evicted for what is told again"

    virtual(story())


def test_what_is_lost_is_sent_before_what_came_later(tmp_path: Path, virtual: Virtual) -> None:
    async def story() -> None:
        node = await overcommitted(Node(tmp_path, cooling_s=0))
        node.offered_millis, node.evictor.lives_on_s = 4_000, 0
        async with node.life():
            await node.tick(4)
            node.offered_millis = None
            first = stored(node, EVENTS_STREAM)
            assert len(first) == 3
            await node.clock.sleep(2 * BEFORE_SENDING_S)
            for name in FACTS:
                node.broker.streams[name].roll_back(0)
            node.offered_millis = 1_000
            await node.tick(8)
        found = stored(node, EVENTS_STREAM)
        assert (found[:3], len(found)) == (first, FACTS[EVENTS_STREAM])
        assert node.kills.keys() == {LARGE.uid, SMALL.uid}

    virtual(story())


def test_a_hub_that_does_not_answer_is_asked_the_next_time(tmp_path: Path, virtual: Virtual) -> None:
    async def story() -> None:
        node = await evicted(tmp_path)
        async with node.life():
            node.broker.streams[EVENTS_STREAM].roll_back(0)
            await node.clock.sleep(LOOK_BACK_S - 10)
            node.bus.go_offline()
            await node.clock.sleep(20)
            node.bus.go_online()
            await node.clock.sleep(LOOK_BACK_S)
        assert len(stored(node, EVENTS_STREAM)) == FACTS[EVENTS_STREAM]

    virtual(story())


def test_a_later_message_of_somebody_else_on_the_same_subject_is_no_sign_of_a_loss(
    tmp_path: Path, virtual: Virtual
) -> None:
    """Central tells of pods of lost nodes on the subjects of these nodes."""

    async def story() -> None:
        node = await evicted(tmp_path)
        last: Received = node.broker.streams[EVENTS_STREAM].messages[-1]
        await node.bus.publish_durable(DurableMessage(last.subject, b"{}", msg_id="central/1"))
        before = stored(node, EVENTS_STREAM)
        with capture_logs() as logs:
            async with node.life():
                await node.clock.sleep(2 * LOOK_BACK_S)
        assert stored(node, EVENTS_STREAM) == before
        assert "facts.sent_again" not in {one["event"] for one in logs}

    virtual(story())


async def told_again(node: Node, stream: str, lost: Sequence[tuple[str, bytes]]) -> bool:
    """Whether a look finds and sends, in order, what a stream has lost to others' messages."""
    node.offered_millis = None
    async with node.life():
        await node.clock.sleep(LOOK_BACK_S + 60)
    return [one for one in stored(node, stream) if one[1] != b"{}"] == lost


@pytest.mark.parametrize("stream", FACTS)
def test_a_fact_whose_id_another_sender_has_taken_counts_as_lost(tmp_path: Path, virtual: Virtual, stream: str) -> None:
    async def story() -> None:
        node = await evicted(tmp_path)
        facts, lost = list(node.broker.streams[stream].messages), stored(node, stream)
        node.broker.streams[stream].roll_back(0)
        for fact in facts:
            await node.bus.publish_durable(DurableMessage(fact.subject, b"{}", msg_id=fact.headers[MSG_ID]))
        assert await told_again(node, stream, lost)

    virtual(story())


@pytest.mark.parametrize("stream", FACTS)
def test_a_loss_is_found_although_the_copy_has_counted_on_beyond_it(
    tmp_path: Path, virtual: Virtual, stream: str
) -> None:
    async def story() -> None:
        node = await evicted(tmp_path)
        facts, lost = list(node.broker.streams[stream].messages), stored(node, stream)
        node.broker.streams[stream].roll_back(0)
        for number, fact in enumerate(2 * facts):
            await node.bus.publish_durable(DurableMessage(fact.subject, b"{}", msg_id=f"central/{number}"))
        assert node.broker.streams[stream].find(facts[-1].subject)[-1].sequence > facts[-1].sequence
        assert await told_again(node, stream, lost)

    virtual(story())


class Looks:
    """How often a node's bus was asked for the newest message of a subject; `answers`: whether it says."""

    def __init__(self, node: Node, patch: pytest.MonkeyPatch) -> None:
        self.count, self.answers, self._replay = 0, True, node.bus.replay
        patch.setattr(node.bus, "replay", self._ask)

    async def _ask(self, stream: str, subject: str, *, last_per_subject: bool = False) -> Sequence[Received]:
        self.count += last_per_subject and stream == EVENTS_STREAM
        if not self.answers:
            raise Unavailable("the hub is away", reason="bus")
        return await self._replay(stream, subject, last_per_subject=last_per_subject)


@pytest.mark.parametrize("answers", [True, False])
def test_before_sending_it_is_looked_once_a_minute_whatever_comes_of_it(
    tmp_path: Path, virtual: Virtual, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    async def story() -> None:
        node = await evicted(tmp_path)
        looks = Looks(node, monkeypatch)
        looks.answers = answers
        ledger = SqliteLedger(tmp_path)
        ledger.open(first_episode=1)
        look_back = LookBack(ledger, node.bus, node.clock, lambda: None)
        counts = []
        for _ in range(2):
            for _ in range(int(BEFORE_SENDING_S)):
                await look_back.find_losses(BEFORE_SENDING_S)
                await node.clock.sleep(1)
            counts.append(looks.count)
            await node.clock.sleep(1)
        ledger.close()
        assert counts == [1, 2]

    virtual(story())


def test_what_is_sent_within_a_minute_of_a_look_is_sent_without_another(
    tmp_path: Path, virtual: Virtual, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        node = await overcommitted(Node(tmp_path, cooling_s=0))
        node.evictor.lives_on_s = 0
        looks = Looks(node, monkeypatch)
        async with node.life():
            await node.tick(4)
            node.offered_millis = 1_000
            await node.tick(8)
            assert (len(node.events), looks.count) == (FACTS[EVENTS_STREAM], 0), "the first look was at an empty ledger"
            node.offered_millis = None
            await node.clock.sleep(LOOK_BACK_S)
            assert looks.count == 1

    virtual(story())
