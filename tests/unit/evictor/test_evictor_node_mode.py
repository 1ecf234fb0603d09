"""A node that observes evicts nobody, whatever its plugins' modes are, and tells what it would have done."""

from collections.abc import Callable

import pytest
from evictor_world import GIB, Node, overcommitted
from fixture_types import Virtual

from shared.contracts.eviction import EvictionEvent

MODES = {"memory_pressure": {"mode": "enforce"}, "reclaimed_overcommit": {"mode": "enforce"}}


def modes(events: list[EvictionEvent]) -> set[str]:
    return {event.mode for event in events}


def test_under_pressure_nobody_goes_and_events_say_who_would_have(node: Callable[..., Node], virtual: Virtual) -> None:
    async def main() -> None:
        world = await overcommitted(node(plugins=MODES))
        world.free_bytes = GIB // 2
        world.switch.mode = "observe"
        async with world.life():
            await world.tick(60)
            state = world.state()
        assert {kind for kind, *_ in world.evictor.calls} == {"dry-run"}
        assert not world.kills
        assert modes(world.events) == {"dry-run"}
        assert not world.taints.writes
        assert state["node_mode"] == "observe"
        assert {plugin["mode"] for plugin in state["plugins"].values()} == {"dry-run"}

    virtual(main())


def test_a_plugin_that_only_looks_goes_no_further_on_a_node_that_observes(
    node: Callable[..., Node], virtual: Virtual
) -> None:
    async def main() -> None:
        world = await overcommitted(node(plugins={name: {"mode": "observe"} for name in MODES}))
        world.switch.mode = "observe"
        async with world.life():
            await world.tick(60)
        assert not world.evictor.calls

    virtual(main())


@pytest.mark.parametrize("to", ["observe", "enforce"])
def test_the_switch_counts_from_the_next_sample_on(node: Callable[..., Node], virtual: Virtual, to: str) -> None:
    async def main() -> None:
        world = await overcommitted(node(plugins=MODES))
        world.switch.mode = "enforce" if to == "observe" else "observe"
        async with world.life() as app:
            await world.tick(4)
            before = len(world.kills)
            world.switch.mode = to  # type: ignore[assignment]
            app.reconfigure({})
            await world.tick(60)
            modes_now = {plugin["mode"] for plugin in world.state()["plugins"].values()}
        gone = len(world.kills)
        assert modes_now == {"dry-run" if to == "observe" else "enforce"}
        assert (before, gone) == (1, 1) if to == "observe" else (before == 0 and gone > 0)

    virtual(main())


def test_an_eviction_that_was_decided_before_the_switch_is_called_off(
    node: Callable[..., Node], virtual: Virtual
) -> None:
    async def main() -> None:
        world = await overcommitted(node(plugins=MODES))
        async with world.life():
            await world.tick(1)
            world.switch.mode = "observe"  # the plugins have not been told yet, as between decision and call
            await world.tick(4)
        assert not world.kills
        assert {kind for kind, *_ in world.evictor.calls} <= {"dry-run"}

    virtual(main())
