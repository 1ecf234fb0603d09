"""Whose configuration ends: what was deleted, what is only broken, and which nodes count as having what there is."""

import asyncio
from typing import Any

import pytest
from cluster_world import Playing, World, playing
from fixture_types import Virtual

from shared.core.api_kind import EVICTION_CONFIGS, KCCS


@pytest.fixture
def play(virtual: Virtual) -> Playing:
    """Run a story in virtual time."""
    return playing(virtual)


def test_a_node_without_an_agent_does_not_count_as_updated(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        world.node("bare", beats=False)
        world.central()
        world.kcc()
        world.threshold(7)
        await asyncio.sleep(10)
        assert (world.ec()["targetNodes"], world.ec()["updatedTargetNodes"], world.ec()["updatedNodes"]) == (2, 1, 1)

    play(story)


def test_a_node_whose_agent_is_gone_counts_as_updated_no_longer_and_again_once_it_is_back(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1", "n2")
        world.central()
        world.kcc()
        world.threshold(7)
        await asyncio.sleep(60)
        assert world.ec()["updatedTargetNodes"] == 2
        world.kill_agent("n2")
        await asyncio.sleep(200)
        assert (world.ec()["updatedTargetNodes"], world.ec()["updatedNodes"]) == (1, 1)
        world.silent.clear()
        world.agent("n2", ready=True)
        await asyncio.sleep(90)
        assert (world.ec()["updatedTargetNodes"], world.ec()["updatedNodes"]) == (2, 2)

    play(story)


def test_while_the_bus_is_suspect_nobody_is_uncounted(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1", "n2")
        central = world.central()
        world.kcc()
        world.threshold(7)
        await asyncio.sleep(60)
        central.bus.go_offline()
        await asyncio.sleep(200)
        assert (world.ec()["updatedTargetNodes"], world.ec()["updatedNodes"]) == (2, 2)

    play(story)


@pytest.mark.parametrize("restarted", [False, True], ids=["one central", "central restarts in between"])
def test_a_kcc_deleted_together_with_its_objects_takes_their_settings_with_it(play: Playing, restarted: bool) -> None:
    async def story(world: World) -> None:
        world.node("n1", "n2")
        first = world.central()
        world.kcc()
        world.threshold(5)
        await asyncio.sleep(3)
        assert [await world.settings_of(n) for n in world.nodes] == [5, 5]
        if restarted:
            first.task.cancel()
            await asyncio.sleep(0)
            await first.close()
        world.api.drop(KCCS, "eviction-configuration")
        world.api.drop(EVICTION_CONFIGS, "default")
        if restarted:
            world.central()
            await asyncio.sleep(40)
        await asyncio.sleep(2)
        assert [await world.settings_of(n) for n in world.nodes] == [None, None]
        assert [world.cnc(n) for n in world.nodes] == [[], []]

    play(story)


def test_a_deleted_kcc_alone_resets_nobody_and_the_deletion_of_its_object_afterwards_does(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        world.central()
        world.kcc()
        world.threshold(5)
        await asyncio.sleep(3)
        world.api.drop(KCCS, "eviction-configuration")
        await asyncio.sleep(2)
        assert await world.settings_of("n1") == 5
        assert world.valid()[:2] == ("False", "MatchMoreOrLessThanOneKCC")
        world.api.drop(EVICTION_CONFIGS, "default")
        await asyncio.sleep(2)
        assert await world.settings_of("n1") is None

    play(story)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"metadata": {"name": "eviction-configuration"}, "spec": {"targetType": 3}}, id="unreadable"),
        pytest.param(
            {
                "metadata": {"name": "eviction-configuration"},
                "spec": {
                    "targetType": {
                        "group": "config.katalyst.kubewharf.io",
                        "resource": "evictionconfigurations",
                        "version": "v9",
                    }
                },
            },
            id="of another version",
        ),
    ],
)
def test_a_broken_kcc_resets_nobody_even_without_objects(play: Playing, broken: dict[str, Any]) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        world.central()
        world.kcc()
        world.threshold(5)
        await asyncio.sleep(3)
        world.api.put(KCCS, broken)
        await asyncio.sleep(2)
        world.api.drop(EVICTION_CONFIGS, "default")
        await asyncio.sleep(2)
        assert await world.settings_of("n1") == 5
        world.kcc()
        await asyncio.sleep(2)
        assert await world.settings_of("n1") is None

    play(story)
