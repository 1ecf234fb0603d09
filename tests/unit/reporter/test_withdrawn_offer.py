"""What central has withdrawn the reporter does not offer again: not at its next write, nor at one that crosses."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from fixture_types import Virtual
from kube_api import Api, FakeKube

from shared.adapters.clock import LoopClock
from shared.adapters.files.pods import PodsFile
from shared.adapters.kube.node import CNRS, TRIES, KubeNode
from shared.adapters.kube.pods import WITHDRAWN_S, KubePods
from shared.contracts.kube.node_conditions import WITHDRAWN
from shared.contracts.pod import RECLAIMED_CPU, TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY
from shared.errors import Unavailable

NODE, CNR = "/api/v1/nodes/n1", f"{CNRS}/n1"


def offer(millis: int) -> dict[str, Any]:
    amounts = {TUTORIAL_RECLAIMED_CPU: str(millis), TUTORIAL_RECLAIMED_MEMORY: "1Gi"}
    rows = [{"type": "ServicesReady", "status": "True", "reason": "AllServicesReady"}]
    head = {"apiVersion": "node.katalyst.kubewharf.io/v1alpha1", "kind": "CustomNodeResource"}
    return {**head, "metadata": {"name": "n1"}, "status": {"resourceAllocatable": amounts, "conditions": rows}}


class World:
    """A Node, its reporter, and what central does to both."""

    def __init__(self) -> None:
        self.api = Api()
        self.api.put(NODE, {"spec": {}, "status": {"capacity": {"cpu": "48"}, "allocatable": {"cpu": "48"}}})
        self.kube = FakeKube(self.api)
        self.node = KubeNode(self.kube, "n1", dict)

    def withdraw(self) -> None:
        """In central's order."""
        self.mark("True")
        nothing = dict.fromkeys(self.shown, "0")
        self.api.handle("PATCH", f"{NODE}/status", {}, {"status": {"capacity": nothing, "allocatable": nothing}})

    def mark(self, status: str) -> None:
        rows = [{"type": WITHDRAWN, "status": status, "reason": "Test"}]
        query = {"fieldManager": "sublet-central"}
        self.api.handle("PATCH", f"{CNR}/status", query, {"status": {"conditions": rows}}, "application/apply-patch")

    @property
    def shown(self) -> dict[str, str]:
        status = self.api.objects[NODE]["status"]
        return {name: amount for name, amount in status["allocatable"].items() if name != "cpu"}


@pytest.fixture
async def world() -> World:
    world = World()
    await world.node.write(offer(44_000))
    assert world.shown[RECLAIMED_CPU] == "44k"
    return world


async def test_while_it_is_withdrawn_no_write_and_no_change_of_pods_offers_anything(world: World) -> None:
    world.withdraw()
    await world.node.write(offer(45_000))
    await world.node.show(again=True)
    await world.node.show()
    assert (set(world.shown.values()), world.node.withdrawn) == ({"0"}, True)
    assert world.api.objects[CNR]["status"]["resourceAllocatable"][TUTORIAL_RECLAIMED_CPU] == "45000"


async def test_the_reporters_own_writes_leave_the_mark_where_it_is(world: World) -> None:
    world.withdraw()
    await world.node.write(offer(45_000))
    rows = {row["type"]: row["status"] for row in world.api.objects[CNR]["status"]["conditions"]}
    assert rows == {"ServicesReady": "True", WITHDRAWN: "True"}


async def test_when_the_mark_is_gone_it_is_offered_again_as_it_is_now(world: World) -> None:
    world.withdraw()
    await world.node.write(offer(45_000))
    world.mark("False")
    await world.node.show()
    assert (world.shown[RECLAIMED_CPU], world.node.withdrawn) == ("45k", False)


async def test_an_offer_that_crosses_the_withdrawal_loses(world: World) -> None:
    world.api.before_write = world.withdraw
    await world.node.write(offer(45_000))
    assert (set(world.shown.values()), world.node.withdrawn) == ({"0"}, True)


async def test_who_loses_every_race_says_so_and_offers_nothing_new(world: World) -> None:
    def again() -> None:
        world.api.put(NODE, world.api.objects[NODE])
        world.api.before_write = again

    again()
    before = len(world.api.requests)
    with pytest.raises(Unavailable, match="modified"):
        await world.node.write(offer(45_000))
    assert [method for method, _, _ in world.api.requests[before:]].count("PATCH") == TRIES
    assert world.shown[RECLAIMED_CPU] == "44k"


async def test_where_it_cannot_be_asked_whether_it_is_withdrawn_nothing_is_offered(world: World) -> None:
    world.api.refuse["GET", CNR] = 503
    with pytest.raises(Unavailable, match="the test says so"):
        await world.node.write(offer(45_000))
    assert world.shown[RECLAIMED_CPU] == "44k"


async def test_without_a_cnr_nothing_is_withdrawn(world: World) -> None:
    world.api.remove(CNR)
    await world.node.write(offer(45_000))
    assert world.shown[RECLAIMED_CPU] == "45k"


def test_it_is_asked_every_few_seconds_whether_it_may_be_offered_again(virtual: Virtual, tmp_path: Path) -> None:
    async def main() -> None:
        world = World()
        pods = KubePods(world.kube, "n1", PodsFile(tmp_path), LoopClock(), fallback="shared_cores")
        await world.node.write(offer(44_000))
        world.withdraw()
        await world.node.write(offer(44_000))
        task = asyncio.create_task(pods.run(world.node))
        await asyncio.sleep(3 * WITHDRAWN_S)
        assert set(world.shown.values()) == {"0"}
        world.mark("False")
        await asyncio.sleep(WITHDRAWN_S + 1)
        assert world.shown[RECLAIMED_CPU] == "44k"
        asked = len(world.api.requests)
        await asyncio.sleep(4 * WITHDRAWN_S)
        assert len(world.api.requests) == asked
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    virtual(main())
