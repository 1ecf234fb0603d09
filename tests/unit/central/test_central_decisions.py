"""Decisions: each is said once, again when it is another, never in a flood, and never at the price of deciding."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.adapters import decisions as adapter
from services.central.adapters.decisions import BusDecisions
from services.central.core import said_decisions
from services.central.core.said_decisions import REPEAT_S, UNCHANGED_S, SaidDecisions, shortened
from services.central.ports.decisions import DecisionLog
from shared.adapters.clock import LoopClock
from shared.contracts.bus.stored import RefusedMessage, read_decision
from shared.contracts.bus.subjects import DECISIONS_STREAM, STREAMS, decision_filter, decision_subject
from shared.contracts.cluster.decision import MAX_REASONS, MESSAGE_CHARACTERS, Decided, DecidedObject, Decision
from shared.contracts.envelope import Reason
from shared.fakes.memory_bus import MemoryBus
from shared.wire import Wire

POD = DecidedObject(kind="pod", namespace="team-a", name="encode-1.x")
NODE = DecidedObject(kind="node", name="ip-10-0-0-1.local")
(SPEC,) = (spec for spec in STREAMS if spec.name == DECISIONS_STREAM)


def decided(verdict: str = "refused", about: DecidedObject = POD, **fields: Any) -> Decided:
    return Decided(area="scheduling", about=about, verdict=verdict, **fields)


def test_an_object_has_its_subject() -> None:
    assert decision_subject("scheduling", POD) == "sublet.cluster.v1.decision.scheduling.pod.team-a.encode-1_x"
    assert decision_subject("tide", NODE) == "sublet.cluster.v1.decision.tide.node.-.ip-10-0-0-1_local"
    assert decision_filter("node", None, NODE.name) == "sublet.cluster.v1.decision.*.node.*.ip-10-0-0-1_local"
    assert decision_filter("pod", "team-a") == "sublet.cluster.v1.decision.*.pod.team-a.*"
    assert (str(POD), str(NODE)) == ("pod/team-a/encode-1.x", "node/ip-10-0-0-1.local")


def test_words_and_reasons_without_end_are_cut_off() -> None:
    long = decided(message="x" * 10_000, why=[Reason(rule="r")] * 1000)
    assert (len(long.message), len(long.why)) == (MESSAGE_CHARACTERS, MAX_REASONS)
    assert decided(message="short").message == "short"


@pytest.mark.parametrize(
    ("later", "after_s", "news"),
    [
        (decided(), 0.0, False),
        (decided(), UNCHANGED_S - 1, False),
        (decided(), UNCHANGED_S, True),
        (decided(message="other figures"), REPEAT_S - 1, False),
        (decided(message="other figures"), REPEAT_S, True),
        (decided("placed"), 0.0, True),
        (decided(about=NODE), 0.0, True),
    ],
)
def test_what_was_said_is_said_again_when_it_is_news(later: Decided, after_s: float, news: bool) -> None:
    said = SaidDecisions()
    said.said(decided(), 100.0)
    assert said.news(later, 100.0 + after_s) is news


def test_what_nobody_heard_is_said_again_unless_something_else_was_decided_since() -> None:
    said, first, second = SaidDecisions(), decided(), decided("placed")
    said.said(first, 0.0)
    said.lost(first)
    assert said.news(first, 0.0)
    said.said(second, 0.0)
    said.lost(first)
    assert not said.news(second, 0.0)


def test_only_so_many_objects_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(said_decisions, "MAX_OBJECTS", 2)
    said = SaidDecisions()
    about = [DecidedObject(kind="pod", namespace="a", name=name) for name in "abc"]
    for one in about:
        said.said(decided(about=one), 0.0)
    assert [said.news(decided(about=one), 0.0) for one in about] == [True, False, False]


@given(st.lists(st.tuples(st.sampled_from(["placed", "refused"]), st.floats(0, 90)), max_size=30))
def test_the_same_verdict_is_never_said_twice_within_a_minute(passes: list[tuple[str, float]]) -> None:
    said, now_s, last = SaidDecisions(), 0.0, ("", -1e9)
    for verdict, after_s in passes:
        now_s += after_s
        one = decided(verdict, message=f"{now_s}")
        if said.news(one, now_s):
            assert (verdict, now_s - last[1] >= REPEAT_S) != (last[0], False)
            said.said(one, now_s)
            last = verdict, now_s
        else:
            assert verdict == last[0]
            assert now_s - last[1] < REPEAT_S


Virtual = Callable[[Coroutine[Any, Any, None]], None]


class Central:
    """A bus with the stream, and who says decisions on it."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.bus = MemoryBus(clock=self.clock)
        self.decisions = BusDecisions(Wire(self.bus, self.clock, node="central-0", service="central"))
        self.log: DecisionLog = self.decisions

    async def stored(self) -> list[Decision]:
        read = [read_decision(one.subject, one.data) for one in await self.bus.replay(DECISIONS_STREAM, ">")]
        return [one for one in read if isinstance(one, Decision)]

    async def __aenter__(self) -> "Central":
        await self.bus.ensure_stream(SPEC)
        self.task = asyncio.create_task(self.decisions.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def test_a_decision_is_stored_with_its_reasons(virtual: Virtual) -> None:
    async def main() -> None:
        async with Central() as central:
            why = (Reason(rule="reclaimed_fit", numbers={"node": "n1", "asked_millis": 4000}),)
            central.log.say(decided(message="no node has enough", why=why))
            central.log.say(decided(message="no node has enough", why=why))
            await asyncio.sleep(1)
            (decision,) = await central.stored()
            assert (decision.about, decision.verdict, decision.why) == (POD, "refused", why)
            assert (decision.node, decision.message) == ("central-0", "no node has enough")
            assert central.decisions.state() == {"waiting": 0, "said": 1}

    virtual(main())


def test_one_that_is_too_long_loses_reasons_and_is_stored(virtual: Virtual) -> None:
    async def main() -> None:
        async with Central() as central:
            why = [Reason(rule="node", numbers={f"figure_{place}": "x" * 100 for place in range(20)})] * MAX_REASONS
            central.log.say(decided(why=why))
            await asyncio.sleep(1)
            (decision,) = await central.stored()
            assert 0 < len(decision.why) < MAX_REASONS

    virtual(main())


def test_one_without_reasons_cannot_be_shorter() -> None:
    assert shortened(decided()) is None


def test_a_flood_is_cut_and_nobody_waits(monkeypatch: pytest.MonkeyPatch, virtual: Virtual) -> None:
    async def main() -> None:
        monkeypatch.setattr(adapter, "BURST", 5)
        async with Central() as central:
            for number in range(50):
                central.log.say(decided(about=DecidedObject(kind="pod", namespace="a", name=f"p{number}")))
            await asyncio.sleep(1)
            assert len(await central.stored()) == 5
            assert central.decisions.state() == {"waiting": 0, "said": 5, "cut": 45}
            await asyncio.sleep(1)
            central.log.say(decided(about=DecidedObject(kind="pod", namespace="a", name="p49")))
            await asyncio.sleep(1)
            assert [one.about.name for one in await central.stored()][-1] == "p49", "what was cut was not remembered"

    virtual(main())


def test_without_a_bus_nothing_waits_for_ever_and_the_next_pass_says_it_again(virtual: Virtual) -> None:
    async def main() -> None:
        async with Central() as central:
            central.bus.go_offline()
            central.log.say(decided())
            await asyncio.sleep(30)
            assert central.decisions.state() == {"waiting": 0, "lost": 1}
            central.bus.go_online()
            central.log.say(decided())
            await asyncio.sleep(30)
            assert len(await central.stored()) == 1

    virtual(main())


@pytest.mark.parametrize(
    ("subject", "body"),
    [
        (decision_subject("tide", POD), None),
        (decision_subject("scheduling", NODE), None),
        (decision_subject("scheduling", POD), b"{}"),
        (decision_subject("scheduling", POD), b"x" * 40_000),
        (decision_subject("scheduling", POD), b"\x1b[31m"),
    ],
)
def test_what_is_no_decision_of_its_subject_is_refused(subject: str, body: bytes | None) -> None:
    good = Decision(
        node="central-0", boot_id="0123456789abcdef", seq=1, sent_at="2026-01-01T00:00:00Z",
        area="scheduling", about=POD, verdict="placed",
    ).encode()  # fmt: skip
    assert isinstance(read_decision(decision_subject("scheduling", POD), good), Decision)
    refused = read_decision(subject, good if body is None else body)
    assert isinstance(refused, RefusedMessage)
    assert str(refused).isascii()
