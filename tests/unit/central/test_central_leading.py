"""Which of several centrals leads in a cluster, and what it and the others do meanwhile."""

import asyncio
from typing import Any

import pytest
from cluster_world import Playing, World, playing
from fixture_types import Virtual

from shared.contracts.bus.subjects import CONFIG_BUCKET
from shared.core.api_kind import LEASES
from shared.fakes.memory_objects import MemoryObjects


@pytest.fixture
def play(virtual: Virtual) -> Playing:
    """Run a story in virtual time."""
    return playing(virtual)


def test_one_leads_and_the_other_only_looks(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        one, two = world.central(), world.central()
        await asyncio.sleep(60)
        assert [app.cluster.leading for app in (one, two)] == [True, False]
        assert world.api.documents[LEASES, "sublet-system", "sublet-central"]["spec"]["holderIdentity"] == "central-0"
        assert two.state()["nodes"]["ready"] == 1
        assert one.health().ok
        assert two.health().ok

    play(story)


def test_without_the_lease_nothing_is_written_anywhere(play: Playing) -> None:
    async def story(world: World) -> None:
        lease = {"holderIdentity": "another", "leaseDurationSeconds": 3600, "leaseTransitions": 4}
        world.api.put(LEASES, {"metadata": {"name": "sublet-central", "namespace": "sublet-system"}, "spec": lease})
        world.node("n1", "n2")
        world.central()
        world.kcc()
        world.threshold(5)
        world.kill_agent("n1")
        await asyncio.sleep(1800)
        assert world.api.writes == []
        assert CONFIG_BUCKET not in world.bus.broker.buckets
        assert not world.bus.broker.streams

    play(story)


def test_a_leader_that_dies_is_followed_with_a_higher_epoch_after_its_lease_has_run_out(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        one, two = world.central(), world.central()
        await asyncio.sleep(10)
        one.task.cancel()
        await asyncio.sleep(11)
        assert not two.cluster.leading
        await asyncio.sleep(9)
        assert (two.cluster.leading, two.cluster.leader.epoch) == (True, 2)

    play(story)


def test_a_leader_that_stops_lets_the_next_one_begin_at_once(play: Playing) -> None:
    async def story(world: World) -> None:
        one, two = world.central(), world.central()
        await asyncio.sleep(10)
        one.task.cancel()
        await asyncio.sleep(0)
        await one.close()
        await asyncio.sleep(2.1)
        assert two.cluster.leading

    play(story)


class Wall:
    """A way to the API server that one central alone can lose."""

    def __init__(self, api: MemoryObjects) -> None:
        self._api, self.open = api, True

    def __getattr__(self, name: str) -> Any:
        if self.open or name == "mirror":
            return getattr(self._api, name)

        async def hang(*_args: object, **_more: object) -> None:
            await asyncio.sleep(3600)

        return hang


def test_a_leader_cut_off_stops_before_another_one_begins(play: Playing) -> None:
    async def story(world: World) -> None:
        world.node("n1")
        wall = Wall(world.api)
        one, two = world.central(wall), world.central()
        await asyncio.sleep(10)
        assert one.cluster.leading
        wall.open = False
        both = 0
        for _ in range(300):
            await asyncio.sleep(0.1)
            both += all(central.cluster.leading for central in (one, two))
        assert both == 0
        assert two.cluster.leading

    play(story)
