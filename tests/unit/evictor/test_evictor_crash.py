"""The evictor is killed at every step it takes, and started again on the same ledger.

Whatever the moment: no event is lost, no pod is evicted twice, no other UID is touched.
"""

import asyncio
import contextlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from evictor_world import Node, pod
from fixture_types import Virtual
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.adapters.ledger.sqlite import SqliteLedger
from shared.core.evictions.intents import FINAL_STEPS
from shared.fakes.memory_bus import MemoryBus
from shared.ports import ActionResult

LARGE, SMALL, WEB = pod("large", cpu=24_000), pod("small", cpu=12_000), pod("web", "shared_cores")
LEDGER_WRITES = ("begin", "advance", "published", "release", "discard", "keep_record", "keep_refusals", "prune")


class Killed(BaseException):
    """The process is gone."""


class Fate:
    """Counts the moments at which a process can die, and lets it die at one of them."""

    def __init__(self, dies_at: int | None = None) -> None:
        self.moment, self.dies_at, self.dead = 0, dies_at, False

    def pass_by(self) -> None:
        self.moment += 1
        if self.dead or self.moment == self.dies_at:
            self.dead = True
            raise Killed


class MortalLedger(SqliteLedger):
    def __init__(self, folder: Path, fate: Fate) -> None:
        super().__init__(folder)
        self.fate = fate

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in LEDGER_WRITES:
            return found

        def write(*args: Any, **kwargs: Any) -> Any:
            self.fate.pass_by()
            result = found(*args, **kwargs)
            self.fate.pass_by()
            return result

        return write


class MortalCaller:
    """Another object's coroutine methods, with a moment to die before and after each call."""

    def __init__(self, real: Any, fate: Fate, methods: tuple[str, ...]) -> None:
        self._real, self._fate, self._methods = real, fate, methods

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._real, name)
        if name not in self._methods:
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            self._fate.pass_by()
            result = await found(*args, **kwargs)
            self._fate.pass_by()
            return result

        return call


async def live(world: Node, fate: Fate, ticks: int = 4) -> None:
    """One life, until its fate or for so many ticks."""
    bus = MemoryBus(world.broker, world.clock)
    app = world.build(
        ledger=MortalLedger(world.folder, fate),
        actuator=MortalCaller(world.evictor, fate, ("lookup", "evict")),
        bus=MortalCaller(bus, fate, ("publish_durable",)),
    )
    task = asyncio.create_task(app.run())
    for _ in range(ticks):
        await world.tick()
        if task.done():
            break
    task.cancel()
    (outcome,) = await asyncio.gather(task, return_exceptions=True)
    assert fate.dead or isinstance(outcome, asyncio.CancelledError), outcome
    with contextlib.suppress(Killed):  # a dead process writes nothing on its way out; its lock is gone all the same
        await app.close()


async def story(folder: Path, fates: list[Fate], scenario: str) -> Node:
    """So many lives that end badly, then one that does not."""
    together = scenario == "two in a round"
    world = Node(folder, victims_per_round="enough" if together else "one")
    await world.create_streams()
    world.run(LARGE, SMALL, WEB)
    world.offered_millis = 1_000 if together else 4_000
    world.evictor.lives_on_s = 1.5
    if scenario == "gone at once":
        world.evictor.lives_on_s = 0
    if scenario == "unknown outcome":
        world.evictor.answers.append(ActionResult("unknown", "timeout"))
    if scenario == "budget spent":
        world.evictor.answers.append(ActionResult("wait", "budget"))
    if scenario == "lost acknowledgements":
        world.broker.lose_acks(times=2)
    for fate in fates:
        await live(world, fate)
    await live(world, Fate(), ticks=25)
    return world


def check(world: Node, folder: Path) -> None:
    """What holds whatever happened. With a spent budget the next candidate may have gone instead."""
    assert max(world.kills.values()) == 1, "a pod was evicted twice"
    assert world.kills.keys() <= {LARGE.uid, SMALL.uid}
    ids = [event.event_id for event in world.events]
    assert len(ids) == len(set(ids)), "an event is on the stream twice"
    by_intent: dict[str, list[str]] = {}
    for event in world.events:
        by_intent.setdefault(event.intent_id, []).append(event.phase)
    for phases in by_intent.values():
        assert phases[0] == "intended"
        assert phases[-1] in FINAL_STEPS
        assert sum(phase in FINAL_STEPS for phase in phases) == 1
    succeeded = Counter(event.pod_uid for event in world.events if event.phase == "succeeded")
    assert succeeded == world.kills, "a pod went unreported"
    stored = [intent.intent_id for intent in world.intents]
    assert len(stored) == len(set(stored))
    assert set(stored) >= {event.intent_id for event in world.events if event.phase == "created"}
    ledger = SqliteLedger(folder)
    assert ledger.open(first_episode=0) == ""
    assert ledger.live() == []
    assert ledger.waiting_count() == 0
    counted = ledger.spent()
    assert len(counted) >= sum(world.kills.values()), "an eviction is missing in the budgets"
    assert all(one.at_s is not None for one in counted), "what is over still counts as under way"
    refusals = [refusal.key for refusal in ledger.refusals()]
    assert len(refusals) == len(set(refusals))
    ledger.close()


SCENARIOS = ("plain", "gone at once", "unknown outcome", "budget spent", "lost acknowledgements", "two in a round")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_kill_at_any_step_loses_no_event_and_evicts_nobody_twice(
    scenario: str, virtual: Virtual, tmp_path: Path
) -> None:
    whole = Fate()
    virtual(story(tmp_path / "whole", [whole], scenario))
    assert whole.moment > 20
    for moment in range(1, whole.moment + 1):
        folder = tmp_path / str(moment)
        world = virtual(story(folder, [Fate(moment)], scenario))
        check(world, folder)
        going = {LARGE.uid: 1, SMALL.uid: 1} if scenario == "two in a round" else {LARGE.uid: 1}
        assert scenario == "budget spent" or world.kills == going, "somebody went for nothing"


@settings(max_examples=30, deadline=None)
@given(moments=st.lists(st.integers(1, 40), min_size=2, max_size=6), scenario=st.sampled_from(SCENARIOS))
def test_kills_one_after_the_other_lose_no_event_and_evict_nobody_twice(
    virtual: Virtual, tmp_path_factory: pytest.TempPathFactory, moments: list[int], scenario: str
) -> None:
    folder = tmp_path_factory.mktemp("lives")
    check(virtual(story(folder, [Fate(moment) for moment in moments], scenario)), folder)
