"""One Node whose every write the API server refuses: all others get what they should, in every kind of work."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from cluster_world import World
from fixture_types import Virtual

from shared.core.api_kind import CNCS, CNRS, NODES, ApiKind
from shared.errors import Conflict, Refused, Unavailable
from shared.fakes.memory_objects import Document, MemoryObjects

HOSTILE = "n0"
"""First by name: whoever stopped at it would do nothing for the others."""
ANSWERS = [
    Refused("403: a policy says no", reason="Forbidden"),
    Conflict("409: the object has been modified", reason="Conflict"),
    Refused("413: request entity too large", reason="RequestEntityTooLarge"),
    Refused("422: Invalid value", reason="Invalid"),
    Unavailable("500: etcdserver: request is too large", reason="InternalError"),
]


class OneRefused(MemoryObjects):
    """Writes of one node's objects fail."""

    answer: Exception | None = None

    def _no(self, kind: ApiKind, document: Mapping[str, Any]) -> None:
        if self.answer is not None and kind in (NODES, CNRS, CNCS) and document["metadata"]["name"] == HOSTILE:
            raise self.answer

    async def create(self, kind: ApiKind, document: Mapping[str, Any]) -> Document:
        if not isinstance(self.answer, Conflict):  # of a new object that would mean that it is there
            self._no(kind, document)
        return await super().create(kind, document)

    async def patch(self, kind: ApiKind, document: Mapping[str, Any], *, status: bool = False) -> Document | None:
        self._no(kind, document)
        return await super().patch(kind, document, status=status)

    async def apply(
        self, kind: ApiKind, document: Mapping[str, Any], *, manager: str, status: bool = False
    ) -> Document:
        self._no(kind, document)
        return await super().apply(kind, document, manager=manager, status=status)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: str(answer)[:3])
def test_all_other_nodes_get_companions_conditions_configuration_withdrawal_and_taint(
    virtual: Virtual, answer: Exception
) -> None:
    async def story() -> None:
        world = World(rules={"taint_s": 100, "evict_s": 200})
        refusing = OneRefused(world.clock)
        world.api = world.evictor.api = refusing
        refusing.answer = answer
        async with world.running():
            names = [f"n{n}" for n in range(10)]
            world.node(*names)
            for name in names:
                world.pod(name, f"batch-{name}")
            world.kcc()
            world.threshold(2.0)
            app = world.central()
            await asyncio.sleep(60)
            assert {name for _, _, name in world.api.documents if name.startswith("n")} >= set(names)
            made = names if isinstance(answer, Conflict) else names[1:]
            for kind in (CNRS, CNCS):
                assert [n for n in names if (kind, "", n) in world.api.documents] == made
            assert all(world.cnc(name) for name in names[1:])
            assert set(app.state()["cluster"]["nodes_not_written"]) == {HOSTILE}
            assert app.health().ok
            for name in (HOSTILE, "n1"):
                world.kill_agent(name)
            await asyncio.sleep(40)
            assert [world.offered(name) for name in names] == ["10k", "0", *["10k"] * 8]
            await asyncio.sleep(90)
            assert world.tainted("n1")
            await asyncio.sleep(120)
            assert world.evictor.killed == ["batch-n1"]

    virtual(story())
