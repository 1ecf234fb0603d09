"""A central that dies behind any of its writes: the next one goes on from what the objects say, and ends where it would
have ended anyway."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from fixture_types import Virtual
from tide_world import POOL, SELECTOR, TideWorld

from services.central.core.tide.change import CHANGE
from services.central.core.tide.pool import POOLS
from shared.contracts.pod import Pod
from shared.core.api_kind import NODES, ApiKind
from shared.fakes.memory_objects import MemoryObjects
from shared.ports import ActionResult

SETTINGS = {"enabled": True, "hold_s": 1}
LONG_S = 60.0
"""A lease that runs out, a mirror that fills, and every step of a change."""


class DyingWorld(TideWorld):
    """The first central dies right behind the write of this number; a second one is ready from the start."""

    def __init__(self, dies_behind: int) -> None:
        super().__init__(kubernetes={"tide": SETTINGS})
        self.dies_behind, self.written = dies_behind, 0
        world, evict = self, self.evictor.evict

        async def counted(pod: Pod, **more: Any) -> ActionResult:
            result = await evict(pod, **more)
            if not more.get("dry_run"):
                await world.wrote()
            return result

        self.evictor.evict = counted  # type: ignore[method-assign]

    async def wrote(self) -> None:
        self.written += 1
        if self.written == self.dies_behind:
            self.centrals[0].task.cancel()
            await asyncio.sleep(0)


class CountedObjects:
    """An API server whose writes of nodes and pools are counted."""

    def __init__(self, api: MemoryObjects, world: DyingWorld) -> None:
        self._api, self._world = api, world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def patch(self, kind: ApiKind, document: Mapping[str, Any], *, status: bool = False) -> Any:
        made = await self._api.patch(kind, document, status=status)
        if kind in (NODES, POOLS):
            await self._world.wrote()
        return made


async def story(world: DyingWorld) -> None:
    """A pool is made, a node goes to batch work and comes back for a pod that waits, and the pool is deleted."""
    world.machines("n1", "n2", "n3")
    for name in ("n1", "n2", "n3"):
        world.service(f"s-{name}", name)
    world.pool(online=1, offline=0)
    api = CountedObjects(world.api, world)
    world.app = world.central(api)
    world.central(api)
    await asyncio.sleep(LONG_S)
    assert world.roles() == {"n1": "online_reserve", "n2": "tide_offline", "n3": "tide_online"}
    assert world.taints("n2") == [("online-not-used", "NoExecute")]
    world.batch("b", "n2")
    world.service("large", None, cpu="4")
    await asyncio.sleep(LONG_S)
    assert world.role("n2") == "tide_online"
    world.bind("large", "n2")
    await asyncio.sleep(LONG_S)
    assert world.roles() == {"n1": "online_reserve", "n2": "tide_online", "n3": "tide_offline"}
    assert sorted(world.evictor.killed) == ["b", "s-n2", "s-n3"]
    notes = [world.node_document(name)["metadata"]["annotations"] for name in ("n2", "n3")]
    assert not any(CHANGE in one for one in notes)
    document = world.api.documents[POOLS, "", POOL]
    world.api.put(POOLS, {**document, "metadata": {"name": POOL, "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    await asyncio.sleep(LONG_S)
    assert not world.api.documents[POOLS, "", POOL]["metadata"].get("finalizers")
    for name in ("n1", "n2", "n3"):
        meta = world.node_document(name)["metadata"]
        assert (meta["labels"], world.taints(name)) == ({"zone": "z", **SELECTOR}, [])
        assert not meta.get("annotations")
    assert world.centrals[0].task.done() == bool(world.dies_behind)


def play(virtual: Virtual, dies_behind: int) -> DyingWorld:
    async def whole() -> DyingWorld:
        world = DyingWorld(dies_behind)
        async with world.running():
            await story(world)
        return world

    world: DyingWorld = virtual(whole())
    # A taint ends whom nobody asked: it never met one.
    assert world.ended == []
    return world


WRITES = 34
"""Of nodes and pools, and evictions."""


def test_so_many_writes_there_are(virtual: Virtual) -> None:
    assert play(virtual, 0).written == WRITES


@pytest.mark.parametrize("dies_behind", range(1, WRITES + 1))
def test_it_may_die_behind_each_of_them(virtual: Virtual, dies_behind: int) -> None:
    play(virtual, dies_behind)
