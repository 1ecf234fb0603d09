"""The procedure of an eviction, as both writers follow it: announcement, rehearsal, call, event."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from fixture_types import Virtual

from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.contracts.bus.subjects import INTENTS_STREAM, STREAMS
from shared.contracts.pod import Pod
from shared.core.evictions.intents import Call, Outgoing
from shared.core.evictions.rulings import Ruling
from shared.errors import Conflict, IdTaken, Unavailable
from shared.evictions.announcement import IntentStream
from shared.evictions.messages import send, under_another_id
from shared.evictions.procedure import EvictionOrder, EvictionProcedure
from shared.fakes.fake_evictor import FakeEvictor
from shared.fakes.memory_bus import MemoryBus
from shared.ports import ActionResult, DurableMessage, Received, Standing

SUBJECT = "sublet.cluster.v1.intent.node-a.1"
OTHER = "sublet.cluster.v1.intent.node-a.2"
POD = Pod(uid="a1", name="large", qos="reclaimed_cores")
ORDER = EvictionOrder(POD, 5.0, "it is too large")
REASON = Ruling("cancelled", "somebody says no")


def message(msg_id: str = "fact/1", body: bytes = b"mine") -> Outgoing:
    return Outgoing("fact", SUBJECT, body, {"Nats-Msg-Id": msg_id})


async def ready_bus() -> MemoryBus:
    bus = MemoryBus()
    for spec in STREAMS:
        await bus.ensure_stream(spec)
    return bus


def stream_of(bus: MemoryBus, yields_to: Callable[[Received], bool]) -> IntentStream:
    return IntentStream(bus, under_another_id, yields_to)


def test_an_intent_is_stored_behind_one_that_it_does_not_yield_to(virtual: Virtual) -> None:
    async def story() -> None:
        bus = await ready_bus()
        await bus.publish_durable(DurableMessage(SUBJECT, b"theirs", msg_id="x"))
        intents = stream_of(bus, lambda received: received.data != b"theirs")
        assert await intents.append(message(), after=0, budget_s=1.0) == 2
        last = await intents.last(SUBJECT)
        assert last is not None
        assert (last.data, last.sequence) == (b"mine", 2)

    virtual(story())


def test_an_intent_that_goes_first_refuses_ours(virtual: Virtual) -> None:
    async def story() -> None:
        bus = await ready_bus()
        await bus.publish_durable(DurableMessage(SUBJECT, b"theirs", msg_id="x"))
        with pytest.raises(Conflict):
            await stream_of(bus, lambda _received: True).append(message(), after=0, budget_s=1.0)
        assert len(await bus.replay(INTENTS_STREAM, ">")) == 1

    virtual(story())


def test_where_nothing_is_known_of_a_pod_there_is_no_last_intent(virtual: Virtual) -> None:
    async def story() -> None:
        assert await stream_of(await ready_bus(), lambda _received: True).last(SUBJECT) is None

    virtual(story())


def test_an_intent_whose_id_somebody_has_used_is_stored_under_another_one_at_once(virtual: Virtual) -> None:
    async def story() -> None:
        bus = await ready_bus()
        await bus.publish_durable(DurableMessage(OTHER, b"theirs", msg_id="fact/1"))
        before = telemetry.IDS_TAKEN._value.get()
        assert await stream_of(bus, lambda _received: True).append(message(), after=0, budget_s=1.0) == 2
        assert telemetry.IDS_TAKEN._value.get() == before + 1
        stored = (await bus.replay(INTENTS_STREAM, SUBJECT))[-1]
        assert stored.data == b"mine"
        assert stored.headers["Nats-Msg-Id"].startswith("fact/")
        assert stored.headers["Nats-Msg-Id"] != "fact/1"

    virtual(story())


def test_an_event_whose_id_somebody_has_used_is_renamed_and_waits_for_its_next_turn(virtual: Virtual) -> None:
    async def story() -> None:
        bus = await ready_bus()
        await bus.publish_durable(DurableMessage(OTHER, b"theirs", msg_id="fact/1"))
        renamed: list[Outgoing] = []

        def rename(one: Outgoing, error: IdTaken) -> Outgoing:
            renamed.append(under_another_id(one, error))
            return renamed[-1]

        with pytest.raises(Unavailable, match="has its id") as caught:
            await send(bus, message(), rename, budget_s=1.0)
        assert caught.value.reason == "id_taken"
        assert await send(bus, renamed[0], rename, budget_s=1.0) == 2
        # Sent once more under the same id it is the same fact.
        assert await send(bus, renamed[0], rename, budget_s=1.0) == 2
        assert len(renamed) == 1

    virtual(story())


def test_an_id_whose_message_is_gone_from_the_stream_is_nobody_elses_doing() -> None:
    before = telemetry.IDS_TAKEN._value.get()
    assert under_another_id(message(), IdTaken("it is gone", reason="gone")).msg_id != "fact/1"
    assert telemetry.IDS_TAKEN._value.get() == before


@dataclass
class Checks:
    """Says what it was told to say, and what was asked."""

    before_rehearsal: Ruling | None = None
    after_rehearsal: Ruling | None = None
    at_call: Ruling | None = None
    asked: list[str] = field(default_factory=list)

    async def before_dry_run(self) -> Ruling | None:
        self.asked.append("before the dry run")
        return self.before_rehearsal

    def after_dry_run(self, call: Call) -> Ruling | None:
        self.asked.append(f"after {call.what}")
        return self.after_rehearsal

    def before_call(self) -> Ruling | None:
        self.asked.append("before the call")
        return self.at_call


def pods() -> FakeEvictor:
    found = FakeEvictor(SystemClock())
    found.run(POD)
    return found


def test_an_eviction_is_rehearsed_and_then_called_for(virtual: Virtual) -> None:
    async def story() -> None:
        evictor, checks = pods(), Checks()
        procedure = EvictionProcedure(evictor, "node")
        assert await procedure.rehearse(ORDER, checks) == Ruling("requested", calls=(Call("dry-run", "accepted"),))
        assert await procedure.request(ORDER, checks) == Ruling("accepted", calls=(Call("evict", "accepted"),))
        assert checks.asked == ["before the dry run", "after dry-run", "before the call", "before the call"]
        assert [what for what, *_ in evictor.calls] == ["dry-run", "evict"]
        assert evictor.reasons == {"a1": "it is too large"}

    virtual(story())


@pytest.mark.parametrize(
    ("checks", "calls"),
    [
        (Checks(before_rehearsal=REASON), []),
        (Checks(before_rehearsal=Ruling()), []),
        (Checks(after_rehearsal=REASON), ["dry-run"]),
    ],
)
def test_an_objection_ends_a_rehearsal_before_its_next_call(virtual: Virtual, checks: Checks, calls: list[str]) -> None:
    async def story() -> None:
        evictor = pods()
        ruling = await EvictionProcedure(evictor, "node").rehearse(ORDER, checks)
        assert ruling == (checks.before_rehearsal or checks.after_rehearsal)
        assert [what for what, *_ in evictor.calls] == calls

    virtual(story())


def test_an_objection_right_before_the_call_evicts_nobody(virtual: Virtual) -> None:
    async def story() -> None:
        evictor = pods()
        assert await EvictionProcedure(evictor, "central").request(ORDER, Checks(at_call=REASON)) == REASON
        assert evictor.calls == []

    virtual(story())


class Slow(FakeEvictor):
    """Looks the pod up for as long as it takes somebody to object."""

    checks: Checks
    objects: Ruling | Unavailable

    async def evict(self, pod: Pod, **how: Any) -> ActionResult:
        def before_call() -> Ruling | None:
            if isinstance(self.objects, Unavailable):
                raise self.objects
            return self.objects

        setattr(self.checks, "before_call", before_call)  # noqa: B010 - a method of one object
        return await super().evict(pod, **how)


@pytest.mark.parametrize("objects", [REASON, Unavailable("another one leads")])
def test_an_objection_that_arises_while_the_pod_is_looked_up_evicts_nobody(
    virtual: Virtual, objects: Ruling | Unavailable
) -> None:
    async def story() -> None:
        evictor = Slow(SystemClock())
        evictor.run(POD)
        evictor.checks, evictor.objects = Checks(), objects
        ruling = await EvictionProcedure(evictor, "central").request(ORDER, evictor.checks)
        assert ruling == (objects if isinstance(objects, Ruling) else Ruling(None, "another one leads"))
        assert (evictor.calls, evictor.kills) == ([], [])

    virtual(story())


class Silent(FakeEvictor):
    """Cannot be reached."""

    async def lookup(self, pod: Pod) -> Standing:
        raise Unavailable("no route")

    async def evict(self, pod: Pod, **how: Any) -> ActionResult:
        raise Unavailable("no route")


def test_without_an_answer_nothing_is_known_and_no_step_follows(virtual: Virtual) -> None:
    async def story() -> None:
        procedure = EvictionProcedure(Silent(SystemClock()), "node")
        assert await procedure.lookup(POD, within_s=1.0) == "unknown"
        unknown = Ruling(None, "no route", (Call("dry-run", "unknown", "no route"),))
        assert await procedure.rehearse(ORDER, Checks()) == unknown
        assert (await procedure.request(ORDER, Checks())).step is None

    virtual(story())
