"""What an eviction can meet that is not as it should be: each has one outcome, told in an event or by a guard."""

import asyncio
from collections import Counter
from typing import Any

import pytest
from evictor_world import GIB, LARGE, NODE, RECLAIMED, SMALL, MakeNode, Node, overcommitted, pod
from fixture_types import Virtual

from shared import telemetry
from shared.contracts.bus.subjects import intent_subject
from shared.contracts.eviction import EvictionIntent
from shared.contracts.pod import Pod
from shared.core.pods.qos import CRITICAL_PRIORITY
from shared.fakes.fake_evictor import FakeEvictor
from shared.ports import DurableMessage, Standing, Stored
from shared.wire import Wire

WEEK_S = 7 * 86_400.0


class Unlucky(FakeEvictor):
    """Something happens to the pod between the sample that condemned it and the look before the eviction."""

    def __init__(self, of: FakeEvictor, fate: str) -> None:
        super().__init__(of.clock, of.pods, blind=of.blind)
        self.fate = fate

    async def lookup(self, pod: Pod) -> Standing:
        match self.fate:
            case "vanished":
                self.pods.pop(LARGE.uid, None)
            case "re-created":
                self.pods.pop(LARGE.uid, None)
                self.run(SUCCESSOR)
            case "terminating":
                self._ends_at_s.setdefault(LARGE.uid, self.clock.monotonic() + 3600)
        return await super().lookup(pod)


SUCCESSOR = pod("large", cpu=24_000, uid="abc0")
GONE = "the pod was gone before its eviction began"
TERMINATING = "the pod was terminating before its eviction began"


@pytest.mark.parametrize(
    ("fate", "detail"), [("vanished", GONE), ("re-created", GONE), ("terminating", TERMINATING)]
)  # fmt: skip
def test_a_pod_that_is_no_longer_the_one_of_the_sample_is_called_off(
    node: MakeNode, virtual: Virtual, fate: str, detail: str
) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.evictor = Unlucky(world.evictor, fate)
        world.used[SUCCESSOR.uid] = GIB
        async with world.life():
            await world.tick(2)
        assert world.evictor.calls == []
        assert world.story == [("large", "intended"), ("large", "cancelled")]
        assert (world.events[1].pod_uid, world.events[1].detail) == (LARGE.uid, detail)

    virtual(main())


STATIC, MIRROR = {"kubernetes.io/config.source": "file"}, {"kubernetes.io/config.mirror": "0"}


@pytest.mark.parametrize(
    ("fields", "guard"),
    [
        pytest.param({"annotations": MIRROR | STATIC, "owner": "Node/n1"}, "static_pod", id="static"),
        pytest.param({"annotations": MIRROR, "owner": "Node/n1"}, "mirror_pod", id="mirror of a static pod"),
    ],
)
def test_a_pod_that_may_not_go_is_spared_by_the_guard_that_says_why(
    node: MakeNode, virtual: Virtual, fields: Any, guard: str
) -> None:
    spared = pod("large", cpu=24_000, **fields)

    async def main() -> None:
        world = await overcommitted(node())
        world.evictor.pods = {}
        world.run(spared)
        async with world.life():
            await world.tick(3)
            assert world.state()["plugins"][RECLAIMED]["spared"] == {"default/large": guard}
        assert (world.story, world.evictor.calls) == ([], [])

    virtual(main())


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"priority": CRITICAL_PRIORITY}, id="priority"),
        pytest.param({"owner": "DaemonSet/agent"}, id="of a DaemonSet"),
        pytest.param({"annotations": MIRROR | STATIC}, id="kubelet's words in another's mouth"),
    ],
)
def test_a_reclaimed_pod_goes_whatever_its_author_has_written(node: MakeNode, virtual: Virtual, fields: Any) -> None:
    going = pod("large", cpu=24_000, **fields)

    async def main() -> None:
        world = await overcommitted(node())
        world.evictor.pods = {}
        world.run(going)
        async with world.life():
            await world.tick(3)
        assert ("large", "intended") in world.story

    virtual(main())


class DeafToIntents:
    """A bus on which an announcement never gets its answer."""

    def __init__(self, bus: Any) -> None:
        self._bus = bus

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    async def publish_durable(self, message: DurableMessage, *, budget_s: float = 20.0) -> Stored:
        if ".intent." in message.subject:
            await asyncio.get_running_loop().create_future()
        stored: Stored = await self._bus.publish_durable(message, budget_s=budget_s)
        return stored


def test_an_own_intent_of_last_week_is_called_off_and_nothing_of_it_waits(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node(announce_s=30))
        async with world.life(bus=DeafToIntents(world.bus)):
            await world.tick(3)
        assert (world.story, world.intents) == ([("large", "intended")], [])
        await asyncio.sleep(WEEK_S)
        async with world.life():
            await world.tick(1)
            assert world.state()["outbox"] == 0
        assert (world.evictor.calls, world.intents) == ([], [])
        assert world.story == [("large", "intended"), ("large", "cancelled")]
        assert world.events[-1].detail == "not begun within 60 s"

    virtual(main())


def of_central(world: Node, **other: Any) -> EvictionIntent:
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
    return world.voices["qrm"].stamp(EvictionIntent, **fields).model_copy(update=other)


async def announce(world: Node, intent: EvictionIntent, subject: str, msg_id: str | None = None) -> None:
    await world.bus.publish_durable(DurableMessage(subject, intent.encode(), msg_id=msg_id or intent.intent_id))


def test_an_intent_for_another_node_moves_nobody_and_stops_nobody(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.offered_millis = 44_000
        for intent in (of_central(world, node="node2"), of_central(world, node="node2", pod_uid=SMALL.uid)):
            await announce(world, intent, intent_subject(intent), f"{intent.pod_uid}/1")
            await announce(world, intent, intent_subject(intent.model_copy(update={"node": NODE})), intent.pod_uid)
        async with world.life():
            await world.tick(3)
            assert (world.evictor.calls, world.story) == ([], [])
            world.offered_millis = 4_000
            await world.tick(3)
        assert world.evictor.kills == [LARGE.uid]

    virtual(main())


@pytest.mark.parametrize("change", [{"pod_uid": SMALL.uid}, {"node": "node2"}], ids=["another pod", "another node"])
def test_an_intent_that_is_not_about_its_subject_is_nobodys(
    node: MakeNode, virtual: Virtual, change: dict[str, Any]
) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        intent = of_central(world)
        await announce(world, intent.model_copy(update=change), intent_subject(intent))
        async with world.life():
            await world.tick(3)
        assert world.evictor.kills == [LARGE.uid]

    virtual(main())


def test_a_whole_stream_of_last_week_told_again_evicts_nobody(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node(cooling_s=0.1))
        async with world.life():
            await world.tick(4)
        old = [(m.subject, m.data) for stream in world.broker.streams.values() for m in stream.messages]
        assert (world.evictor.kills, len(old)) == ([LARGE.uid], 4)
        world.run(LARGE)
        world.evictor._ends_at_s.clear()
        world.evictor.calls.clear()
        world.offered_millis = 44_000
        await asyncio.sleep(WEEK_S)
        async with world.life():
            for number, (subject, data) in enumerate(old):
                await world.bus.publish_durable(DurableMessage(subject, data, msg_id=f"again-{number}"))
            await world.tick(5)
        assert world.evictor.calls == []

    virtual(main())


POISON = {
    "empty": b"",
    "half a document": b'{"v": 1, "node": ',
    "a list": b"[]",
    "wrong types": b'{"v": 1, "node": 5, "seq": "many"}',
    "deep nesting": b"[" * 100_000,
    "bad UTF-8": b'{"node": "\xff\xfe"}',
    "no numbers": b'{"v": 1, "seq": NaN}',
    "another version": b'{"v": 9}',
    "8 MB": b'{"node": "' + b"x" * (8 << 20) + b'"}',
    "many keys": b"{" + b",".join(b'"k%d":1' % n for n in range(60_000)) + b"}",
}


REASON = {POISON["another version"]: "unknown_version", POISON["8 MB"]: "too_large"}


def refused() -> Counter[str]:
    """Messages that the evictor has refused, by reason."""
    counts: Counter[str] = Counter()
    for metric in telemetry.REFUSED.collect():
        for sample in metric.samples:
            if sample.name == "sublet_messages_refused_total" and sample.labels["service"] == "evictor":
                counts[sample.labels["reason"]] += int(sample.value)
    return counts


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON.keys())
def test_poison_is_refused_on_every_subject_that_the_evictor_hears(
    node: MakeNode, virtual: Virtual, poison: bytes
) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        stranger = Wire(world.bus, world.clock, node=NODE, service="stranger")
        async with world.life() as app:
            before = refused()
            for subject in (f"sublet.node.v1.{kind}.{NODE}" for kind in ("sample", "alloc")):
                await stranger.bus.publish(subject, poison)
            await world.bus.publish_durable(DurableMessage(intent_subject(of_central(world)), poison, msg_id="poison"))
            await world.tick(1)
            assert {
                reason: count - before[reason] for reason, count in refused().items() if count > before[reason]
            } == {REASON.get(poison, "malformed"): 2}
            assert world.evictor.calls == []
            await world.tick(2)
            assert app.health().ok
        assert world.evictor.kills == [LARGE.uid]

    virtual(main())
