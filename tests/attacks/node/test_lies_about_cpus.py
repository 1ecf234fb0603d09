"""A node tells the CPUs of another one, tells its own though nobody looks, or tells what no machine has: a viewer of
the live page sees none of it, and the page keeps nothing of it.
"""

import asyncio
import json
from typing import Any

import pytest

from services.central.core.lost_nodes.rules import Rules
from services.central.live_page.intake import CPUS_BOUNDS, LivePageIntake
from shared.adapters.clock import SystemClock
from shared.contracts.bus.subjects import state_subject
from shared.contracts.cluster.cpus import CpuMap, CpuPod, CpuTable
from shared.fakes.memory_bus import MemoryBus
from shared.wire import Wire

TABLE = CpuTable(ids=(0,), sockets=(0,), numas=(0,), l3s=(0,), cores=(0,), busy_percent=(5,))


class Scene:
    """The page, which looks at the victim, and a thief."""

    def __init__(self) -> None:
        self.bus, clock = MemoryBus(), SystemClock()
        self.intake = LivePageIntake(Wire(self.bus, clock, node="page", service="page"), Rules())
        self.thief = Wire(self.bus, clock, node="thief", service="reporter")

    async def say(self, subject: str, **changes: Any) -> None:
        body = self.thief.stamp(CpuMap, table=TABLE).model_dump(mode="json") | changes
        await self.bus.publish(state_subject(CpuMap, subject), json.dumps(body).encode())
        await asyncio.sleep(0)


@pytest.fixture
async def scene() -> Scene:
    """The page listens, and somebody looks at the victim."""
    made = Scene()
    await made.intake.listen()
    made.intake.watch(["victim"])
    return made


async def test_the_cpus_of_another_node_are_not_for_the_telling(scene: Scene) -> None:
    await scene.say("thief", node="victim")
    await scene.say("victim")
    assert scene.intake.cpus == {}


async def test_what_nobody_asked_for_is_not_kept(scene: Scene) -> None:
    for _ in range(100):
        await scene.say("thief")
    assert scene.intake.cpus == {}
    scene.intake.watch(["thief"])
    scene.intake.watch([])
    assert scene.intake.cpus == {}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"table": {"ids": list(range(5000))}}, id="too many CPUs"),
        pytest.param({"table": {"ids": [0, 1]}}, id="columns of other lengths"),
        pytest.param({"table": TABLE.model_dump() | {"busy_percent": [101]}}, id="more than busy"),
        pytest.param({"pools": [{"pool": "x" * 5000, "cpus": "0"}]}, id="a long name"),
        pytest.param({"pools": [{"pool": "x", "cpus": "0-99999999999"}]}, id="a CPU list without an end"),
        pytest.param({"pods": [{"uid": "../x", "namespace": "d", "name": "p", "pool": "s", "cpus": ""}]}, id="no UID"),
        pytest.param({"pods": [CpuPod(uid="aa", namespace="d", name="p", pool="s", cpus="0").model_dump()] * 600},
                     id="too many pods"),
        pytest.param({"table": None}, id="no table"),
        pytest.param({"padding": "x" * CPUS_BOUNDS.max_bytes}, id="too long"),
    ],
)  # fmt: skip
async def test_what_no_machine_has_is_refused(scene: Scene, changes: dict[str, Any]) -> None:
    scene.intake.watch(["thief"])
    await scene.say("thief")
    before = dict(scene.intake.cpus)
    await scene.say("thief", seq=2, **changes)
    assert scene.intake.cpus == before
    assert before
