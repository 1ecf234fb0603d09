"""What is planted in the history of a real evictor is found by `sublet audit`, whichever event it is done to."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from evictor_world import SMALL, MakeNode, Node, overcommitted, pod, readable_event
from fixture_types import Virtual

from shared.adapters.clock import LoopClock
from shared.contracts.bus import subjects
from shared.contracts.bus.cloudevents import event_headers
from shared.contracts.bus.subjects import EVENTS_STREAM, INTENTS_STREAM, STREAMS, event_subject, intent_subject
from shared.contracts.eviction import EvictionIntent
from shared.core.evictions.audit import Audit
from shared.ports import Received
from sublet.commands.audit import audited

NOW = LoopClock()._start + timedelta(minutes=1)
PLACES = [pytest.param(place, id=phase) for place, phase in enumerate(("intended", "created", "succeeded"))]


@pytest.fixture
def world(node: MakeNode, virtual: Virtual) -> Node:
    """A node whose evictor has evicted one pod and told everything."""

    async def story() -> Node:
        world = await overcommitted(node(cooling_s=0.1))
        async with world.life():
            await world.tick(4)
        assert [phase for _, phase in world.story] == ["intended", "created", "succeeded"]
        return world

    return cast("Node", virtual(story()))


def found(world: Node, *, folder: Path | None = None, now: datetime = NOW) -> Audit:
    return asyncio.run(audited(world.bus, folder or world.folder, now=now))


def kinds(world: Node, **how: Any) -> set[str]:
    return {fault.kind for fault in found(world, **how).faults}


def told(world: Node) -> list[Received]:
    return world.broker.streams[EVENTS_STREAM].messages


def said_again(message: Received, sequence: int, **other: Any) -> Received:
    event = readable_event(message).model_copy(update=other)
    return Received(event_subject(event), event.encode(), event_headers(event), sequence)


def test_nothing_planted_nothing_found(world: Node) -> None:
    assert found(world).whole


@pytest.mark.parametrize("place", PLACES)
def test_one_event_removed(world: Node, place: int) -> None:
    del told(world)[place]
    assert "lost" in kinds(world)


@pytest.mark.parametrize("place", PLACES)
def test_one_event_doubled_under_another_id(world: Node, place: int) -> None:
    told(world).append(said_again(told(world)[place], 4, attempt=2))
    assert "doubled" in kinds(world)


@pytest.mark.parametrize("place", PLACES)
def test_one_event_with_another_uid(world: Node, place: int) -> None:
    told(world)[place] = said_again(told(world)[place], place + 1, pod_uid=SMALL.uid)
    assert "wrong_pod" in kinds(world)


@pytest.mark.parametrize("place", PLACES)
def test_without_the_ledger_the_streams_alone_show_it(world: Node, place: int, tmp_path: Path) -> None:
    told(world)[place] = said_again(told(world)[place], place + 1, pod_uid=SMALL.uid)
    assert "wrong_pod" in kinds(world, folder=tmp_path / "none")


def test_a_whole_life_doubled_under_another_intent(world: Node) -> None:
    other = "0" * 8 + "-0000-0000-0000-" + "0" * 12
    told(world).extend([said_again(message, 4 + n, intent_id=other) for n, message in enumerate(told(world))])
    assert {"doubled", "wrong_pod"} <= kinds(world)


def test_the_intent_removed_and_the_intent_changed(world: Node) -> None:
    announced = world.broker.streams[INTENTS_STREAM].messages
    (one,) = announced
    other = EvictionIntent.decode(one.data).model_copy(update={"pod_uid": pod("other").uid})
    announced[0] = replace(one, data=other.encode())
    assert kinds(world) == {"lost", "unreadable"}  # it is not its subject's
    announced[0] = replace(one, subject=intent_subject(other), data=other.encode())
    assert kinds(world) == {"wrong_pod"}
    announced.clear()
    assert kinds(world) == {"lost"}


def test_a_message_that_is_no_event_is_told_and_does_not_hide_the_rest(world: Node) -> None:
    told(world)[1] = replace(told(world)[1], data=b"\xff")
    faults = found(world).faults
    assert {fault.kind for fault in faults} == {"lost", "unreadable"}
    assert any("sequence 2" in fault.what for fault in faults if fault.kind == "unreadable")


@pytest.mark.parametrize(
    ("days", "kind"),
    [pytest.param(1, {"lost"}, id="within both limits"), pytest.param(10, {"lost"}, id="intents aged out"),
     pytest.param(30, set(), id="all aged out")],
)  # fmt: skip
def test_what_the_streams_limits_have_dropped_is_not_missed(world: Node, days: int, kind: set[str]) -> None:
    for stream in world.broker.streams.values():
        stream.messages.clear()
    assert kinds(world, now=NOW + timedelta(days=days)) == kind


def test_events_that_outlive_their_intent_are_not_suspect(world: Node, tmp_path: Path) -> None:
    world.broker.streams[INTENTS_STREAM].messages.clear()
    assert kinds(world, folder=tmp_path, now=NOW) == {"wrong_pod"}
    assert kinds(world, folder=tmp_path, now=NOW + timedelta(days=10)) == set()


def test_a_stream_near_its_size_is_asked_only_for_what_it_can_still_hold(
    world: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    del told(world)[0]
    assert kinds(world) == {"lost"}
    tight = tuple(replace(spec, max_bytes=1000) for spec in STREAMS)
    monkeypatch.setattr(subjects, "STREAMS", tight)
    assert kinds(world) == set()
