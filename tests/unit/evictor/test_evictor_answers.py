"""The evictor and the world's answers: refusals, lost calls, lost connections, intents of others."""

import asyncio
from typing import Any

import pytest
from evictor_world import GIB, LARGE, SMALL, MakeNode, Node, overcommitted, pod
from fixture_types import Virtual
from present import present

from shared.contracts.bus.subjects import intent_subject
from shared.contracts.eviction import EvictionIntent
from shared.contracts.pod import Pod
from shared.fakes.fake_evictor import FakeEvictor, Where
from shared.ports import ActionResult, DurableMessage, Outcome


def test_a_plugins_grace_goes_before_the_pods(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node(plugins={"reclaimed_overcommit": {"grace_period_s": 1}}))
        async with world.life():
            await world.tick(3)
        assert world.evictor.calls[-1] == ("evict", LARGE.uid, 1.0)

    virtual(main())


def test_a_successor_of_the_same_name_is_never_touched(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        successor = pod("large", cpu=24_000, uid="abc0")
        async with world.life():
            await world.tick()
            # The sample that confirms still shows the old pod; the name belongs to another one by now.
            real, world.evictor.pods = world.evictor.pods, {successor.uid: successor, SMALL.uid: SMALL}
            world.used[successor.uid] = GIB
            gone, world.evictor.pods = world.evictor.pods, real
            world_readings = world.readings()
            world.evictor.pods = gone
            await world.tick(pods=tuple(world_readings))
        assert world.evictor.kills == []
        assert world.story == [("large", "intended"), ("large", "cancelled")]
        assert successor.uid not in {uid for _, uid, _ in world.evictor.calls}

    virtual(main())


def test_a_pod_that_does_not_go_is_reported_as_failed(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.evictor.lives_on_s = 3600
        async with world.life():
            await world.tick(14)
        assert world.story[:3] == [("large", "intended"), ("large", "created"), ("large", "failed")]
        assert world.events[2].message == "Evict failed: eviction request did not complete within 10s"

    virtual(main())


class Stalling(FakeEvictor):
    """A node that stands still for a while during one lookup: the answer is that of the moment of the question."""

    def __init__(self, of: FakeEvictor, *, answered: bool) -> None:
        super().__init__(of.clock, of.pods, lives_on_s=30.0)
        self.answered, self.stalled_s = answered, 0.0

    async def lookup(self, pod: Pod) -> Where:
        where = await super().lookup(pod)
        if where != "terminating" or self.stalled_s:
            return where
        self.stalled_s = 43.0
        return where if self.answered else "unknown"


@pytest.mark.parametrize("answered", [True, False], ids=["an answer of before", "a call that ran out of time"])
def test_after_a_stall_the_pod_is_looked_up_before_its_end_is_told(
    node: MakeNode, virtual: Virtual, monkeypatch: pytest.MonkeyPatch, answered: bool
) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        stalling = world.evictor = Stalling(world.evictor, answered=answered)
        monkeypatch.setattr(world.clock, "monotonic", lambda: asyncio.get_running_loop().time() + stalling.stalled_s)
        async with world.life():
            await world.tick(3)
        assert stalling.stalled_s
        assert world.story[:3] == [("large", "intended"), ("large", "created"), ("large", "succeeded")]

    virtual(main())


def test_an_eviction_whose_end_nobody_can_look_up_has_none_yet(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.evictor.lives_on_s = 5
        async with world.life():
            await world.tick(2)
            world.evictor.blind = True
            await world.tick(60)
            assert world.story == [("large", "intended"), ("large", "created")]
            world.evictor.blind = False
            await world.tick()
        assert world.story[:3] == [("large", "intended"), ("large", "created"), ("large", "succeeded")]

    virtual(main())


def test_an_unknown_outcome_is_told_only_when_it_was_looked_up(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node(intent_deadline_s=20))
        world.evictor.answers.append(ActionResult("unknown", "timeout"))
        async with world.life():
            await world.tick()
            world.evictor.blind = True
            await world.tick(1)
            world.evictor.blind = False
            # The call is made, and from here on nobody answers.
            while not world.evictor.kills:
                await asyncio.sleep(0.01)
            world.evictor.blind = True
            await world.tick(60)
            assert world.story == [("large", "intended")]
            world.evictor.blind = False
            await world.tick(3)
        assert world.story == [("large", "intended"), ("large", "created"), ("large", "succeeded")]

    virtual(main())


@pytest.mark.parametrize(
    ("answer", "phase", "detail"),
    [
        (ActionResult("wait", "budget web-pdb"), "cancelled", "disruption budget"),
        (ActionResult("refused", "forbidden"), "refused", "forbidden"),
        (ActionResult("failed", "two budgets"), "failed", 'error when evicting pod "large": two budgets'),
        (ActionResult("gone"), "cancelled", "gone before"),
    ],
    ids=lambda value: value.outcome if isinstance(value, ActionResult) else "",
)
@pytest.mark.parametrize("real", [False, True], ids=["dry run", "real call"])
def test_every_answer_of_the_evictor_ends_in_its_own_event(
    node: MakeNode, virtual: Virtual, answer: ActionResult, phase: str, detail: str, real: bool
) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        (world.evictor.answers if real else world.evictor.rehearsals).append(answer)
        async with world.life():
            await world.tick(2)
        assert world.story[:2] == [("large", "intended"), ("large", phase)]
        assert detail in world.events[1].message

    virtual(main())


def test_a_spent_budget_leads_to_the_next_candidate(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.evictor.rehearsals.append(ActionResult("wait", "budget"))
        async with world.life():
            await world.tick(3)
        assert world.evictor.kills == [SMALL.uid]

    virtual(main())


def test_an_unknown_outcome_is_looked_up_before_anything_is_repeated(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.evictor.answers.append(ActionResult("unknown", "timeout"))
        async with world.life():
            await world.tick(4)
        assert world.evictor.calls.count(("evict", LARGE.uid, 5.0)) == 1  # it had worked, and the lookup says so
        assert world.story == [("large", "intended"), ("large", "created"), ("large", "succeeded")]

    virtual(main())


@pytest.mark.parametrize("second", ["accepted", "gone"])
def test_a_call_without_effect_is_made_again_once_the_pod_was_seen_running(
    node: MakeNode, virtual: Virtual, second: Outcome
) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.evictor.unknown_evicts = False
        world.evictor.answers += [ActionResult("unknown", "timeout"), ActionResult(second)]
        async with world.life():
            await world.tick(4)
        assert world.evictor.calls.count(("evict", LARGE.uid, 5.0)) == 2
        assert world.story == [("large", "intended"), ("large", "created"), ("large", "succeeded")]
        assert world.events[-1].attempt == 2

    virtual(main())


def test_an_intent_that_cannot_be_begun_dies_at_its_deadline(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node(intent_deadline_s=20))
        world.evictor.blind = True
        async with world.life():
            await world.tick(40)
            world.offered_millis = 44_000
            world.evictor.blind = False
            await world.tick(70)
        assert world.evictor.calls == []
        assert world.story[:2] == [("large", "intended"), ("large", "cancelled")]
        assert "not begun within 20 s" in world.events[1].detail

    virtual(main())


def test_without_the_bus_hard_pressure_acts_and_the_events_follow_with_the_same_ids(
    node: MakeNode, virtual: Virtual
) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        async with world.life() as app:
            await world.tick()
            world.bus.go_offline()
            # The samples come over the bus as well; here they are handed over by hand.
            app._judge(present(present(app._samples).value).model_copy(update={"seq": 100}))
            await asyncio.sleep(5)
            assert world.evictor.kills == [LARGE.uid]
            assert world.events == []
            kept = [e["id"] for e in world.state()["recent"][0]["events"]]
            world.bus.go_online()
            await asyncio.sleep(5)
            assert world.state()["outbox"] == 0
        assert [world.intents[0].intent_id, *(e.event_id for e in world.events)] == kept
        assert [phase for _, phase in world.story] == ["intended", "created", "succeeded"]

    virtual(main())


def test_lost_acknowledgements_store_nothing_twice(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.broker.lose_acks(times=3)
        async with world.life():
            await world.tick(8)
        assert [phase for _, phase in world.story] == ["intended", "created", "succeeded"]
        assert len(world.intents) == 1

    virtual(main())


def foreign(world: Node, **over: Any) -> EvictionIntent:
    fields: dict[str, Any] = {
        "intent_id": "0" * 8 + "-0000-0000-0000-" + "0" * 12,
        "namespace": "default",
        "pod": LARGE.name,
        "pod_uid": LARGE.uid,
        "qos": LARGE.qos,
        "plugin": "central",
        "scope": "lost_node",
        "episode": 1,
        "epoch": 3,
    }
    return world.voices["qrm"].stamp(EvictionIntent, **fields | over)


def test_a_live_intent_of_central_keeps_the_node_from_opening_one(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        theirs = foreign(world)
        await world.bus.publish_durable(
            DurableMessage(intent_subject(theirs), theirs.encode(), msg_id=theirs.intent_id)
        )
        async with world.life():
            await world.tick(2)
        assert world.story[:2] == [("large", "intended"), ("large", "cancelled")]
        assert [i.intent_id for i in world.intents] == [theirs.intent_id]

    virtual(main())


def test_replayed_and_expired_intents_on_the_stream_do_nothing_by_themselves(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.offered_millis = 44_000
        old = foreign(world, deadline_s=5)
        await world.bus.publish_durable(DurableMessage(intent_subject(old), old.encode(), msg_id=old.intent_id))
        async with world.life():
            await world.tick(10)
            assert world.evictor.calls == []
            world.offered_millis = 4_000
            await world.tick(3)  # it does not stand in the way of a new one either
        assert world.evictor.kills == [LARGE.uid]
        assert len(world.intents) == 2

    virtual(main())


def test_an_intent_whose_pressure_has_gone_is_not_carried_out(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.evictor.blind = True
        async with world.life():
            await world.tick(3)
            world.offered_millis = 44_000
            await world.tick(2)
            world.evictor.blind = False
            await world.tick(8)
        assert world.evictor.calls == []
        assert world.events[-1].detail == "the pressure has gone before the eviction began"

    virtual(main())


def test_an_intent_of_a_life_before_waits_for_fresh_evidence(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.evictor.blind = True
        async with world.life():
            await world.tick(3)
        world.evictor.blind = False
        async with world.life():
            await asyncio.sleep(10)
            assert world.evictor.calls == []
            await world.tick(6)
        assert world.evictor.kills == [LARGE.uid]
        assert [phase for _, phase in world.story] == ["intended", "created", "succeeded"]

    virtual(main())


def test_an_ending_that_died_with_the_evictor_is_taken_up_again(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.evictor.lives_on_s = 8
        async with world.life():
            await world.tick(3)
        async with world.life():
            await world.tick(10)
        assert world.evictor.calls.count(("evict", LARGE.uid, 5.0)) == 2
        assert world.evictor.kills == [LARGE.uid]
        assert [phase for _, phase in world.story] == ["intended", "created", "succeeded"]

    virtual(main())
