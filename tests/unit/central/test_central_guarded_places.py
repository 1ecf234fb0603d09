"""Guards of pools and zones in a cluster: what is lost there is left alone while the cluster as a whole is well."""

import asyncio
from functools import partial

import pytest
from cluster_world import TenNodes, World, ten_nodes
from fixture_types import Virtual

from services.central.core.objects.nodes import ZONE_LABEL
from shared.contracts.cluster.pauses import POOL_LABEL
from shared.core.api_kind import NODES


@pytest.fixture
def play(virtual: Virtual) -> TenNodes:
    return partial(ten_nodes, virtual)


@pytest.mark.parametrize("label", [POOL_LABEL, ZONE_LABEL])
@pytest.mark.parametrize(("dead", "lost"), [(("n8",), ["n8"]), (("n8", "n9"), [])])
def test_a_pool_and_a_zone_have_guards_of_their_own_also_for_nodes_that_join_them_later(
    play: TenNodes, label: str, dead: tuple[str, ...], lost: list[str]
) -> None:
    async def story(world: World) -> None:
        for name in ("n8", "n9"):
            node = world.api.documents[NODES, "", name]
            labels = {**node["metadata"]["labels"], label: "small"}
            world.api.put(NODES, {**node, "metadata": {**node["metadata"], "labels": labels}})
        await asyncio.sleep(5)
        for name in dead:
            world.kill_agent(name)
        await asyncio.sleep(600)
        assert [name for name in world.nodes if world.tainted(name)] == lost
        assert sorted(world.evictor.killed) == [f"batch-{name}" for name in lost]

    play(story)
