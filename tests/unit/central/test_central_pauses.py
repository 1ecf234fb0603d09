"""Pauses in a cluster: an operator's ConfigMap reaches the bucket of all nodes, and central follows it itself."""

import asyncio
from datetime import timedelta
from functools import partial

import pytest
from cluster_world import TenNodes, World, ten_nodes
from fixture_types import Virtual

from shared.contracts.bus.subjects import CONFIG_BUCKET
from shared.contracts.cluster.pauses import CONFIG_MAP, PAUSES_KEY, PausePart, Pauses
from shared.core.api_kind import CONFIG_MAPS
from shared.fakes.memory_objects import MemoryObjects


@pytest.fixture
def play(virtual: Virtual) -> TenNodes:
    return partial(ten_nodes, virtual)


def say(api: MemoryObjects, **data: str) -> None:
    """An operator writes these keys."""
    meta = {"name": CONFIG_MAP, "namespace": "sublet-system"}
    api.put(CONFIG_MAPS, {"metadata": meta, "data": {key.replace("_", "."): text for key, text in data.items()}})


async def handed(world: World) -> list[str]:
    entry = await world.bus.get(CONFIG_BUCKET, PAUSES_KEY)
    return [] if entry is None or entry.value is None else [one.words for one in Pauses.decode(entry.value).pauses]


def test_a_pause_reaches_all_nodes_within_a_second_and_ends_by_itself(play: TenNodes) -> None:
    async def story(world: World) -> None:
        assert await world.bus.get(CONFIG_BUCKET, PAUSES_KEY) is None
        until = world.clock.wall() + timedelta(seconds=60)
        say(world.api, pool_green=PausePart(reason="rebuild", until=until, by="alice").model_dump_json())
        await asyncio.sleep(1)
        (words,) = await handed(world)
        assert words.startswith("pool green: rebuild (by alice, until ")
        assert len(world.app.state()["cluster"]["pauses"]["in_force"]) == 1
        await asyncio.sleep(66)
        assert await handed(world) == []

    play(story)


def test_central_evicts_nothing_of_a_lost_node_while_its_pool_or_the_cluster_is_paused(play: TenNodes) -> None:
    async def story(world: World) -> None:
        say(world.api, cluster="{}")
        world.kill_agent("n3")
        await asyncio.sleep(260)
        assert world.evictor.calls == []
        assert world.tainted("n3")
        wanted = world.app.state()["cluster"]["lost_nodes"]["wanted"]["n3"]
        assert wanted["action"] == "evict"
        assert "evictions are paused: the whole cluster" in wanted["objection"]
        say(world.api, pool_green="{}")  # n3 is in no pool
        await asyncio.sleep(30)
        assert world.evictor.killed == ["batch-n3"]

    play(story)


def test_what_cannot_be_read_pauses_and_what_names_nobody_is_told(play: TenNodes) -> None:
    async def story(world: World) -> None:
        say(world.api, cluster="soon", colour="blue")
        await asyncio.sleep(1)
        assert await handed(world) == [
            "the whole cluster: the pause cannot be read, and counts (by nobody who says so)"
        ]
        assert world.app.state()["cluster"]["pauses"]["not_understood"] == ["colour"]

    play(story)


def test_a_bucket_that_lost_the_pause_gets_it_again(play: TenNodes) -> None:
    async def story(world: World) -> None:
        say(world.api, cluster="{}")
        await asyncio.sleep(1)
        await world.bus.put(CONFIG_BUCKET, PAUSES_KEY, Pauses().encode())
        await asyncio.sleep(6)
        assert len(await handed(world)) == 1

    play(story)
