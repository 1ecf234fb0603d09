"""The evictor from sample to event, on a bus in memory and in virtual time."""

import asyncio
from collections.abc import Mapping

import pytest
from evictor_world import (
    CPU_SCOPE,
    GIB,
    LARGE,
    MEMORY,
    RECLAIMED,
    SMALL,
    WEB,
    MakeNode,
    overcommitted,
    pod,
    short_of_memory,
)
from fixture_types import Virtual
from present import present

from services.evictor.core.plugin import Pressure, Silence, View
from services.evictor.detectors import Detectors


def test_the_tutorials_overcommit_evicts_the_largest_request_and_tells_every_step(
    node: MakeNode, virtual: Virtual
) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        async with world.life():
            await world.tick(3)
            recent, told = world.state()["recent"][0], world.state()["events"]
        assert world.evictor.kills == [LARGE.uid]
        assert told == [{"event_id": e.event_id, "published": True} for e in world.events]
        assert world.story == [("large", "intended"), ("large", "created"), ("large", "succeeded")]
        created = world.events[1]
        assert created.message == (
            f"Successfully create eviction; reason: met threshold in scope: {CPU_SCOPE} from plugin: {RECLAIMED}"
        )
        assert (created.observed, created.threshold, created.grace_s) == (36_000, 20_000, 5.0)
        assert [i.intent_id for i in world.intents] == [created.intent_id]
        assert world.evictor.calls == [("dry-run", LARGE.uid, 5.0), ("evict", LARGE.uid, 5.0)]
        assert recent["step"] == "succeeded"
        assert recent["intent"]["why"][0]["numbers"]["offered"] == 4_000
        assert [c["what"] for c in recent["calls"]] == ["dry-run", "evict"]

    virtual(main())


def test_one_sample_is_never_enough(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        async with world.life():
            for _ in range(3):
                await world.tick()
                world.offered_millis = 44_000
                await world.tick()
                world.offered_millis = 4_000
            assert world.state()["plugins"][RECLAIMED]["hold"] == "not_met"
        assert world.evictor.kills == []

    virtual(main())


def test_a_pressure_acts_once_it_has_been_there_for_as_long_as_its_plugin_wants(
    node: MakeNode, virtual: Virtual
) -> None:
    async def main() -> None:
        world = await overcommitted(node(plugins={"reclaimed_overcommit": {"met_for_s": 10}}))
        async with world.life():
            await world.tick(9)
            world.offered_millis = 44_000
            await world.tick()
            world.offered_millis = 4_000
            await world.tick(10)
            assert world.evictor.kills == [], "a gap starts the time anew"
            assert world.state()["plugins"][RECLAIMED]["hold"] == "unconfirmed"
            await world.tick(2)
        assert world.evictor.kills == [LARGE.uid]

    virtual(main())


def test_samples_too_far_apart_are_not_in_a_row(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        async with world.life():
            for _ in range(3):
                await world.tick()
                await asyncio.sleep(6)
                assert not present(world.app).health().ok
        assert world.evictor.kills == []

    virtual(main())


def test_plugins_are_told_how_far_apart_samples_in_a_row_may_be(
    node: MakeNode, virtual: Virtual, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: set[float] = set()
    evaluate = Detectors.evaluate

    def listen(detectors: Detectors, view: View) -> Mapping[str, Pressure | Silence]:
        told.add(view.max_gap_s)
        return evaluate(detectors, view)

    async def main() -> None:
        world = await overcommitted(node(max_input_age_s=8.0))
        async with world.life():
            await world.tick(2)

    monkeypatch.setattr(Detectors, "evaluate", listen)
    virtual(main())
    assert told == {8.0}


@pytest.mark.parametrize("status", ["held", "floor", "failed", "dry-run"])
def test_an_offer_that_no_advice_stands_behind_evicts_nobody(node: MakeNode, virtual: Virtual, status: str) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        world.allocation_status = status
        async with world.life():
            await world.tick(5)
            assert world.state()["plugins"][RECLAIMED]["finding"] == "unknown"
        assert world.evictor.kills == []

    virtual(main())


def test_an_offer_that_has_grown_stale_evicts_nobody(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        async with world.life():
            await world.tick()
            world.offered_millis = None
            await asyncio.sleep(15)
            await world.tick(5)
        assert world.evictor.kills == []

    virtual(main())


def test_memory_pressure_evicts_reclaimed_pods_and_never_a_tenant_before_them(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(cooling_s=0), WEB, SMALL, LARGE)
        world.used |= {WEB.uid: 40 * GIB, LARGE.uid: 2 * GIB}
        async with world.life():
            await world.tick(2)
            conditions = [c["type"] for c in world.state()["conditions"]]
            await world.tick(20)
        assert conditions == ["MemoryPressure"]
        # All evicted reclaimed pods come first; the tenant goes only after steps enough for "all", and as the last.
        assert world.evictor.kills == [LARGE.uid, SMALL.uid, WEB.uid]

    virtual(main())


def test_a_tenant_waits_while_a_reclaimed_pod_is_on_its_way_out(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(cooling_s=0), WEB, SMALL)
        world.evictor.lives_on_s = 3600
        async with world.life():
            await world.tick(60)
            spared = world.state()["plugins"][MEMORY]["spared"]
        assert world.evictor.kills == [SMALL.uid]
        assert spared["default/web"] == "tenant_before_reclaimed"

    virtual(main())


def test_evictions_of_one_plugin_cool_down(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), SMALL, LARGE)
        async with world.life():
            await world.tick(10)
            assert len(world.evictor.kills) == 1
            assert world.state()["plugins"][MEMORY]["hold"] == "cooling"
            await world.tick(10)
        assert len(world.evictor.kills) == 2

    virtual(main())


def test_three_evictions_without_relief_stop_the_plugin_until_the_pressure_has_gone(
    node: MakeNode, virtual: Virtual
) -> None:
    pods = [pod(f"batch-{i}") for i in range(6)]

    async def main() -> None:
        world = await short_of_memory(node(cooling_s=1), *pods)
        async with world.life():
            await world.tick(20)
            assert len(world.evictor.kills) == 3
            assert "EvictionIneffective" in [c["type"] for c in world.state()["conditions"]]
        async with world.life():  # a restart does not forget it
            await world.tick(5)
            assert len(world.evictor.kills) == 3
            world.free_bytes = None
            await world.tick(2)  # silence is no relief
            world.free_bytes = GIB // 2
            await world.tick(5)
            assert len(world.evictor.kills) == 3
            world.free_bytes = 50 * GIB
            await world.tick()
            assert world.state()["conditions"] == []
            world.free_bytes = GIB // 2
            await world.tick(3)
        assert len(world.evictor.kills) > 3

    virtual(main())


def test_the_rate_is_bounded_also_across_restarts(node: MakeNode, virtual: Virtual) -> None:
    pods = [pod(f"batch-{i:02}") for i in range(40)]

    async def main() -> None:
        section = {"cooling_s": 0, "max_without_relief": 100, "evictions_per_minute": 4}
        world = await short_of_memory(node(**section), *pods)
        for _ in range(4):
            async with world.life():
                await world.tick(6)
        assert len(world.evictor.kills) == 4 + 1  # what may come at once, and one every 15 s

    virtual(main())


def test_observe_only_looks_and_dry_run_goes_as_far_as_the_rehearsal(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        modes = {"memory_pressure": {"mode": "observe"}, "reclaimed_overcommit": {"mode": "dry-run"}}
        world = await overcommitted(node(plugins=modes))
        world.free_bytes = GIB // 2
        async with world.life():
            await world.tick(60)
            state = world.state()["plugins"]
        assert state[MEMORY]["hold"] == "observe"
        assert {kind for kind, *_ in world.evictor.calls} == {"dry-run"}
        assert world.story == [("large", "intended"), ("large", "cancelled")] * 3  # then: ineffective, as it would be
        assert {e.mode for e in world.events} == {"dry-run"}

    virtual(main())


def test_it_says_how_many_it_has_really_evicted_in_the_last_hour(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node())
        async with world.life():
            assert world.state()["evicted_last_hour"] == 0
            await world.tick(12)
            assert world.evictor.kills == [LARGE.uid]
            await asyncio.sleep(60)
            assert world.state()["evicted_last_hour"] == 1
            await asyncio.sleep(3700)
            assert world.state()["evicted_last_hour"] == 0

    virtual(main())
