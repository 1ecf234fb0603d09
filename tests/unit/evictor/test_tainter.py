"""The evictor taints its node: from sample to taint, through restarts and trouble, in virtual time."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from evictor_world import GIB, MEMORY, NODE, SMALL, WEB, MakeNode, Node, short_of_memory
from fixture_types import Virtual
from present import present

from services.evictor.act.tainter import LOOK_AGAIN_S
from services.evictor.main import build
from shared.adapters.files.taints import TaintFile
from shared.app import Context
from shared.contracts.kube.taint import Cause, Taint
from shared.core.node_mode import NodeSwitch
from shared.errors import BadConfig
from shared.settings import CommonSettings
from shared.wire import Wire
from sublet.state.folder import remove_state

KEY = "node.katalyst.kubewharf.io/MemoryPressure"
FOREIGN = Taint(key="example.org/upgrade", effect="NoSchedule")
TRANSITION_S = 300


def keys(world: Node) -> list[str]:
    return [f"{taint.key}:{taint.effect}" for taint in world.taints.taints]


def shown(world: Node) -> tuple[Taint, ...]:
    """What the node's object shows; it has been written."""
    return tuple(present(world.taints.shown))


async def calm(world: Node, seconds: int) -> None:
    world.free_bytes = 50 * GIB
    await world.tick(seconds)


def test_a_confirmed_pressure_taints_the_node_until_it_was_gone_for_five_minutes(
    node: MakeNode, virtual: Virtual
) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), SMALL, WEB)
        async with world.life():
            await world.tick()
            assert keys(world) == []
            await world.tick()
            assert keys(world) == [f"{KEY}:NoSchedule"]
            (taint,) = world.taints.taints
            (told,) = world.state()["taints"]
            assert told["timeAdded"] == present(taint.time_added).isoformat().replace("+00:00", "Z")
            assert told["causes"][0]["plugin"] == MEMORY
            assert told["causes"][0]["observed"] == GIB // 2
            await calm(world, TRANSITION_S - 1)
            assert world.taints.taints == [taint]
            await calm(world, 1)
            assert keys(world) == world.state()["taints"] == []
            assert world.taints.writes == 2  # on change, never else

    virtual(main())


def test_a_pressure_that_comes_back_meanwhile_is_the_same_taint(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), WEB)
        async with world.life():
            await world.tick(2)
            first = list(world.taints.taints)
            for _ in range(3):
                await calm(world, 200)
                world.free_bytes = GIB // 2
                await world.tick(3)
            assert world.taints.taints == first
            assert world.taints.writes == 1

    virtual(main())


def test_without_samples_and_without_figures_nothing_is_tainted_and_nothing_untainted(
    node: MakeNode, virtual: Virtual
) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), WEB)
        async with world.life():
            world.free_bytes = None
            await world.tick(5)
            assert keys(world) == []
            world.free_bytes = GIB // 2
            await world.tick(2)
            world.free_bytes = None
            await world.tick(2 * TRANSITION_S)
            assert keys(world) == [f"{KEY}:NoSchedule"]
            await asyncio.sleep(2 * TRANSITION_S)
            assert keys(world) == [f"{KEY}:NoSchedule"]
            await calm(world, 2)
            assert keys(world) == [f"{KEY}:NoSchedule"]

    virtual(main())


@pytest.mark.parametrize("mode", ["observe", "dry-run"])
def test_a_plugin_that_only_looks_taints_nothing(node: MakeNode, virtual: Virtual, mode: str) -> None:
    async def main() -> None:
        world = await short_of_memory(node(plugins={"memory_pressure": {"mode": mode}}), WEB)
        async with world.life():
            await world.tick(10)
            assert keys(world) == []
            assert [c["message"] for c in world.state()["conditions"]] == [
                f"NoSchedule by {MEMORY}, scope memory ({mode}: no taint)"
            ]

    virtual(main())


def test_a_plugin_that_is_told_to_only_look_takes_its_taint_away(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), WEB)
        async with world.life() as app:
            await world.tick(3)
            app.reconfigure({"plugins": {"memory_pressure": {"mode": "observe"}}})
            await world.tick()
            assert keys(world) == []

    virtual(main())


def test_the_period_is_a_setting_and_zero_taints_never(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(condition_transition_s=10), WEB)
        async with world.life() as app:
            await world.tick(2)
            await calm(world, 9)
            assert keys(world) != []
            await calm(world, 1)
            assert keys(world) == []
            app.reconfigure({"condition_transition_s": 0})
            world.free_bytes = GIB // 2
            await world.tick(5)
            assert keys(world) == []
            with pytest.raises(BadConfig, match="condition_transition_s"):
                app.reconfigure({"condition_transition_s": -1})

    virtual(main())


def test_a_restart_takes_the_taint_over_with_its_time(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), WEB)
        async with world.life():
            await world.tick(2)
        left = list(world.taints.taints)
        await asyncio.sleep(3600)
        async with world.life():
            await asyncio.sleep(1)
            assert world.state()["taints"][0]["causes"][0]["plugin"] == MEMORY
            await calm(world, TRANSITION_S)
            assert world.taints.taints == left
            await calm(world, 1)
            assert keys(world) == []

    virtual(main())


def test_what_somebody_else_changes_is_put_right_and_his_own_taints_stay(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), WEB)
        world.taints.taints = [FOREIGN]
        async with world.life():
            await world.tick(2)
            world.taints.taints = [FOREIGN]
            await world.tick(int(LOOK_AGAIN_S) + 1)
            assert keys(world) == ["example.org/upgrade:NoSchedule", f"{KEY}:NoSchedule"]
            assert [told["key"] for told in world.state()["taints"]] == [KEY]

    virtual(main())


def test_where_causes_are_not_kept_they_are_told_all_the_same_and_nothing_is_written_twice(
    node: MakeNode, virtual: Virtual
) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), WEB)
        world.taints.keeps_causes = False
        async with world.life():
            await world.tick(3 * int(LOOK_AGAIN_S))
            assert world.taints.writes == 1
            assert world.state()["taints"][0]["causes"][0]["plugin"] == MEMORY

    virtual(main())


def test_trouble_with_the_taints_stops_no_eviction_and_is_a_condition(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), SMALL)
        world.taints.failure = "no API server"
        async with world.life() as app:
            await world.tick(4)
            assert world.evictor.kills == [SMALL.uid]
            assert {"type": "TaintsNotWritten", "message": "no API server"} in world.state()["conditions"]
            assert app.health().ok
            world.taints.failure = ""
            await world.tick(4)
            assert keys(world) == [f"{KEY}:NoSchedule"]
            assert "TaintsNotWritten" not in [c["type"] for c in world.state()["conditions"]]

    virtual(main())


def test_whatever_the_substrate_raises_is_only_trouble_with_the_taints(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), SMALL)

        async def read() -> tuple[Taint, ...]:
            raise RuntimeError("a bug in there")

        world.taints.read = read  # type: ignore[method-assign]
        async with world.life():
            await world.tick(4)
            assert world.evictor.kills == [SMALL.uid]
            shown = [c["message"] for c in world.state()["conditions"] if c["type"] == "TaintsNotWritten"]
            assert shown == ["RuntimeError: a bug in there"]

    virtual(main())


def test_the_brake_and_a_broken_ledger_stop_evictions_not_taints(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), SMALL)
        world.brake.set("by hand")
        async with world.life():
            await world.tick(3)
            assert world.evictor.kills == []
            assert keys(world) == [f"{KEY}:NoSchedule"]

    virtual(main())


def test_a_node_without_a_place_for_taints_evicts_all_the_same(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), SMALL)
        world.taints = None  # type: ignore[assignment]
        async with world.life():
            await world.tick(3)
            assert world.evictor.kills == [SMALL.uid]
            assert world.state()["taints"] is None

    virtual(main())


def test_the_cause_is_what_was_seen_when_it_was_confirmed(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), WEB)
        async with world.life():
            await world.tick(2)
            world.free_bytes = GIB // 4
            await world.tick(5)
            causes = world.taints.taints[0].causes
            assert causes == (Cause(plugin=MEMORY, scope="memory", observed=GIB // 2, threshold=causes[0].threshold),)

    virtual(main())


def test_on_one_host_the_taints_are_a_file_and_nothing_is_left_of_it_when_sublet_goes_down(
    node: MakeNode, virtual: Virtual
) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), WEB)
        common = CommonSettings(node=NODE, state_dir=world.folder, substrate="sim")
        wire = Wire(world.bus, world.clock, node=NODE, service="evictor")
        context = SimpleNamespace(common=common, clock=world.clock, wire=wire, raw={}, switch=NodeSwitch())
        cast("Any", world).build = lambda: build(cast("Context", context))
        async with world.life():
            await world.tick(3)
        assert [taint.key for taint in TaintFile(world.folder).standing()] == [KEY]
        remove_state(world.folder, forget=False)
        assert not [path for path in world.folder.iterdir() if "taint" in path.name]

    virtual(main())


def test_the_nodes_object_says_the_same_taints_and_none_when_they_are_gone(node: MakeNode, virtual: Virtual) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), WEB)
        async with world.life():
            assert world.taints.shown == ()
            await world.tick(2)
            assert [taint.key for taint in shown(world)] == [KEY]
            assert shown(world)[0].time_added == world.taints.taints[0].time_added
            await calm(world, TRANSITION_S)
            assert world.taints.shown == ()

    virtual(main())


def test_an_object_that_cannot_be_written_leaves_the_nodes_taint_standing_and_is_told_later(
    node: MakeNode, virtual: Virtual
) -> None:
    async def main() -> None:
        world = await short_of_memory(node(), WEB)
        world.taints.show_failure = "no CNR"
        async with world.life():
            await world.tick(2)
            assert keys(world) == [f"{KEY}:NoSchedule"]
            assert world.taints.shown is None
            assert "no CNR" in str(world.state()["conditions"])
            world.taints.show_failure = ""
            await world.tick(40)
            assert [taint.key for taint in shown(world)] == [KEY]
            assert "no CNR" not in str(world.state()["conditions"])

    virtual(main())
