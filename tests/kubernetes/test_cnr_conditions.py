"""CNR and CNC on a real API server: their life with the Node, and what central, evictor and reporter say in the CNR.

The Nodes here have no kubelet: the test renews their leases, is their agents' pods and heartbeats, and deletes them.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from central_rig import central_on
from kube_rig.cluster import Cluster
from until_met import until_met

from services.central.app import CentralApp
from services.central.core.objects.nodes import NODE_LEASES, node_of
from services.central.main import ClusterAccess, build_cluster
from services.central.settings import CentralSettings
from shared.adapters.clock import SystemClock
from shared.adapters.kube.client import Document, Kube
from shared.adapters.kube.node import KubeNode
from shared.adapters.kube.objects import KubeObjects
from shared.adapters.kube.taints import KubeTaints
from shared.contracts.kube.node_conditions import AGENT_NOT_FOUND, AGENT_READY, WITHDRAWN
from shared.contracts.kube.taint import Taint
from shared.contracts.pod import (
    BATCH_CPU,
    BATCH_MEMORY,
    RECLAIMED_CPU,
    TUTORIAL_RECLAIMED_CPU,
    TUTORIAL_RECLAIMED_MEMORY,
)
from shared.contracts.readiness import Readiness, ServiceHealth
from shared.core.api_kind import CNCS, CNRS, LEASES, NODES, PODS, ApiKind
from shared.core.node_mode import NodeSwitch
from shared.core.pods.extended_resources import BATCH_NAMES
from shared.errors import SubletError
from shared.fakes.fake_evictor import FakeEvictor
from shared.fakes.memory_bus import MemoryBus
from shared.settings import check
from shared.wire import Wire

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

QUICK_START = Path(__file__).parent / "quick_start"
PREFIX, HAND = "conditions-", "test"
NAMES = tuple(f"{PREFIX}{letter}" for letter in "abcde")
OURS = {"conditions": "agent"}
PATIENCE_S = 60.0
LEASE = {"name": "conditions", "namespace": "default", "lease_s": 5, "renew_s": 3, "retry_s": 0.5}
SETTINGS = {
    "rules": {"late_s": 4, "taint_s": 8, "evict_s": 3600, "clean_s": 1, "actions_per_s": 5},
    "probe_s": 1,
    "kubernetes": {"lease": LEASE, "agent_labels": "conditions=agent", "resync_s": 2},
}


@pytest.fixture(scope="module")
def judged_alone(kinds: Cluster) -> Cluster:
    """A cluster whose central is this test's."""
    deployed = {one["metadata"]["name"] for one in kinds.get("deployments", "--all-namespaces")["items"]}
    assert "sublet-central" not in deployed, "another central would judge the Nodes of this test: uninstall it first"
    return kinds


class OwnNodes(KubeObjects):
    """What a central of this test sees of the cluster: nothing of anybody else's nodes."""

    def mirror(self, kind: ApiKind, keep: Callable[[Mapping[str, Any]], Any], *rest: Any, **more: Any) -> Any:
        """Of kinds that go by the node's name, this test's alone."""
        by_node = kind in (NODES, CNRS, CNCS)

        def kept(document: Mapping[str, Any]) -> Any:
            return keep(document) if not by_node or document["metadata"]["name"].startswith(PREFIX) else None

        return super().mirror(kind, kept, *rest, **more)


async def nothing() -> None:
    """Nothing to close."""


class Scene:
    """Some Nodes with agents, and a central."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kube, self.clock, self.bus = Kube(kubeconfig), SystemClock(), MemoryBus()
        self.objects = OwnNodes(self.kube, self.clock, manager="sublet-central")
        self.silent: set[str] = set()
        self.asked: dict[str, int] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, work: Any) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def make(self, *names: str) -> None:
        """Nodes that are ready, each with an agent's pod."""
        for name in names:
            await self.kube.create(
                NODES.collection(), {**NODES.head, "metadata": {"name": name, "labels": OURS}}, manager=HAND
            )
            ready = [{"type": "Ready", "status": "True", "reason": "Test"}]
            await self.kube.merge(f"{NODES.path(name)}/status", {"status": {"conditions": ready}}, manager=HAND)
            meta = {"name": name, "labels": OURS}
            spec = {"nodeName": name, "containers": [{"name": "agent", "image": "none"}], "hostNetwork": True}
            await self.kube.create(
                PODS.collection("default"), {**PODS.head, "metadata": meta, "spec": spec}, manager=HAND
            )
            await self.pod_ready(name, "True")
            self.start(self._renew(name))

    async def pod_ready(self, name: str, status: str) -> None:
        body = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": status}]}}
        await self.kube.merge(f"{PODS.path(name, 'default')}/status", body, manager=HAND)

    async def _renew(self, name: str) -> None:
        while True:
            spec = {"holderIdentity": name, "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
            lease = {**LEASES.head, "metadata": {"name": name}, "spec": {"leaseDurationSeconds": 40, **spec}}
            await self.kube.apply(LEASES.path(name, NODE_LEASES), lease, manager=HAND)
            await self.clock.sleep(2)

    async def beat(self, name: str) -> None:
        """An agent that is well, while it is not silent."""
        wire = Wire(MemoryBus(self.bus.broker), self.clock, node=name, service="reporter")
        while True:
            if name not in self.silent:
                health = ServiceHealth(service="qrm", ok=True)
                await wire.publish(wire.stamp(Readiness, ready=True, services=(health,)))
            await self.clock.sleep(0.5)

    def lead(self) -> CentralApp:
        """Start a central over these nodes."""
        settings = check(CentralSettings, SETTINGS, where="central")
        bus = MemoryBus(self.bus.broker)
        wire = Wire(bus, self.clock, node="hub", service="central")
        access = ClusterAccess(self.objects, wire, FakeEvictor(self.clock), "conditions", nothing)
        cluster = build_cluster(access, self.clock, settings.kubernetes, NodeSwitch())
        app = central_on(wire, self.clock, {"central": SETTINGS}, cluster=cluster)
        self.start(app.run())
        return app

    async def get(self, kind: ApiKind, name: str) -> Document:
        """As it is now; empty where it is not there."""
        return dict(await self.objects.get(kind, name) or {})

    async def conditions(self, name: str) -> dict[str, tuple[str, str]]:
        rows = (await self.get(CNRS, name)).get("status", {}).get("conditions", [])
        return {row["type"]: (row["status"], row["reason"]) for row in rows}

    async def taints(self, name: str) -> list[Document]:
        found: list[Document] = (await self.get(CNRS, name)).get("spec", {}).get("taints", [])
        return found

    async def offered(self, name: str) -> str | None:
        """What the scheduler sees of reclaimed CPU."""
        found: str | None = (await self.get(NODES, name))["status"].get("allocatable", {}).get(RECLAIMED_CPU)
        return found

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        for name in NAMES:
            for path in (
                f"{PODS.path(name, 'default')}",
                NODES.path(name),
                LEASES.path(name, NODE_LEASES),
                CNRS.path(name),
                CNCS.path(name),
            ):
                with contextlib.suppress(SubletError):
                    await self.kube.delete(path, {"gracePeriodSeconds": 0})
        with contextlib.suppress(SubletError):
            await self.kube.delete(LEASES.path("conditions", "default"))
        await self.kube.close()
        for one in ended:
            if isinstance(one, Exception):
                raise one


@pytest.fixture
async def scene(judged_alone: Cluster) -> AsyncIterator[Scene]:
    scene = Scene(judged_alone.admin)
    try:
        yield scene
    finally:
        await scene.end()


async def until(holds: Callable[[], Any]) -> None:
    """Ask until the answer is true; the last one is told where it never is."""
    try:
        await until_met(holds, PATIENCE_S)
    except TimeoutError:
        raise AssertionError(f"not within {PATIENCE_S:g} s") from None


def offer(name: str, millis: int) -> Document:
    amounts = {TUTORIAL_RECLAIMED_CPU: str(millis), TUTORIAL_RECLAIMED_MEMORY: "1Gi"}
    properties = [{"propertyName": "numa", "propertyQuantity": "2"}]
    rows = [{"type": "ServicesReady", "status": "True", "reason": "AllServicesReady"}]
    return {
        **CNRS.head,
        "metadata": {"name": name},
        "spec": {"nodeResourceProperties": properties},
        "status": {"resourceAllocatable": amounts, "conditions": rows},
    }


def pressure(name: str) -> Taint:
    return Taint.model_validate(
        {"key": f"node.katalyst.kubewharf.io/{name}", "effect": "NoSchedule", "timeAdded": "2023-01-09T06:32:08Z"}
    )


LOST = [{"effect": "NoScheduleForReclaimedTasks", "key": "node.kubernetes.io/unschedulable"}]


async def test_cnr_and_cnc_come_with_their_node_follow_its_labels_and_go_with_it(scene: Scene) -> None:
    await scene.make(NAMES[0])
    scene.lead()
    node = await scene.get(NODES, NAMES[0])
    for kind in (CNRS, CNCS):
        await until(partial(scene.get, kind, NAMES[0]))
        meta = (await scene.get(kind, NAMES[0]))["metadata"]
        (owner,) = meta["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Node", node["metadata"]["uid"], True)
        assert meta["labels"] == node["metadata"]["labels"]
    await scene.kube.merge(NODES.path(NAMES[0]), {"metadata": {"labels": {"pool": "batch"}}}, manager=HAND)

    async def labelled() -> bool:
        return bool((await scene.get(CNCS, NAMES[0]))["metadata"]["labels"].get("pool") == "batch")

    await until(labelled)
    await scene.kube.delete(NODES.path(NAMES[0]))

    async def gone() -> bool:
        return not await scene.get(CNRS, NAMES[0]) and not await scene.get(CNCS, NAMES[0])

    await until(gone)


async def test_a_lost_agent_is_told_withdrawn_and_tainted_and_all_of_it_ends_when_it_is_back(scene: Scene) -> None:
    await scene.make(*NAMES)
    lost = NAMES[2]
    for name in NAMES:
        scene.start(scene.beat(name))
        await KubeNode(scene.kube, name, dict).write(offer(name, 4000))
    scene.lead()
    well = {AGENT_NOT_FOUND: ("False", "AllAgentsFound"), AGENT_READY: ("True", "AllAgentsReady"),
            WITHDRAWN: ("False", "AgentHeard"), "ServicesReady": ("True", "AllServicesReady")}  # fmt: skip

    async def all_well() -> bool:
        return [await scene.conditions(name) for name in NAMES] == [well] * len(NAMES)

    await until(all_well)
    scene.silent.add(lost)
    await scene.pod_ready(lost, "False")
    reporter = KubeNode(scene.kube, lost, dict)

    async def tainted() -> bool:
        return await scene.taints(lost) == LOST

    await until(tainted)
    assert await scene.conditions(lost) == well | {
        AGENT_READY: ("False", "WithAgentsNotReady"),
        WITHDRAWN: ("True", "AgentSilent"),
    }
    assert await scene.offered(lost) == "0"
    assert [await scene.offered(name) for name in NAMES if name != lost] == ["4k"] * 4
    assert [await scene.taints(name) for name in NAMES if name != lost] == [[]] * 4
    await reporter.write(offer(lost, 4000))
    await reporter.show(again=True)
    assert (reporter.withdrawn, await scene.offered(lost)) == (True, "0")

    scene.silent.clear()
    await scene.pod_ready(lost, "True")

    async def back() -> bool:
        return await scene.conditions(lost) == well and not await scene.taints(lost)

    await until(back)
    await reporter.show()
    assert (reporter.withdrawn, await scene.offered(lost)) == (False, "4k")


async def test_a_reporter_that_is_only_cut_off_from_the_bus_never_offers_what_is_withdrawn(scene: Scene) -> None:
    """Its pod is ready and it reaches the API server: it writes as often as it can, and central takes away once."""
    await scene.make(*NAMES)
    cut = NAMES[0]
    for name in NAMES:
        scene.start(scene.beat(name))
    reporter = KubeNode(scene.kube, cut, dict)
    await reporter.write(offer(cut, 4000))
    scene.lead()

    async def well() -> bool:
        return (await scene.conditions(cut)).get(WITHDRAWN) == ("False", "AgentHeard")

    await until(well)
    writes = 0

    async def write_all_the_time() -> None:
        nonlocal writes
        while True:
            await reporter.write(offer(cut, 4000 + writes % 2))
            writes += 1
            await scene.clock.sleep(0.02)

    scene.start(write_all_the_time())
    scene.silent.add(cut)

    async def withdrawn() -> bool:
        return await scene.offered(cut) == "0"

    await until(withdrawn)
    before, amounts = writes, set[str | None]()
    while writes < before + 50:
        amounts.add(await scene.offered(cut))
    assert amounts == {"0"}


async def test_each_writer_has_its_own_entries_and_nobody_wipes_anothers(scene: Scene, kinds: Cluster) -> None:
    name = NAMES[1]
    await scene.make(name)
    node = KubeNode(scene.kube, name, dict)
    taints = KubeTaints(scene.kube, name, scene.objects)
    (memory, cpu, central) = (
        row["taints"] for row in yaml.safe_load_all((QUICK_START / "node-taints.yaml").read_text())
    )
    await node.write(offer(name, 4000))
    await taints.write([pressure("MemoryPressure")])
    await taints.show([pressure("MemoryPressure")])
    assert await scene.taints(name) == memory
    foreign = {"key": "example.org/by-hand", "effect": "NoSchedule", "value": "x"}
    change = {"spec": {"taints": [*memory, foreign]}}
    kinds.kubectl("patch", "kcnr", name, "--type=merge", "--patch", json.dumps(change))
    body = {"metadata": {"name": name}, "spec": {"taints": central}}
    await scene.objects.apply(CNRS, body, manager="sublet-central")
    await node.write(offer(name, 5000))
    await taints.show([pressure("CPUPressure")])
    said = {row["key"]: row for row in await scene.taints(name)}
    cpu_said = {**cpu[0], "timeAdded": "2023-01-09T06:32:08Z"}
    assert said == {row["key"]: row for row in (cpu_said, foreign, *central)}
    await taints.show([])
    await node.write(offer(name, 6000))
    assert {row["key"] for row in await scene.taints(name)} == {foreign["key"], central[0]["key"]}
    await scene.objects.apply(CNRS, {"metadata": {"name": name}}, manager="sublet-central")
    assert await scene.taints(name) == [foreign]
    assert (await scene.get(CNRS, name))["spec"]["nodeResourceProperties"] != []


async def test_batch_resources_go_with_their_offer_and_koordinators_own_stay(scene: Scene) -> None:
    """Who wrote them the API server tells, also to a reporter that has just started."""
    name = NAMES[3]
    await scene.make(name)
    with_batch = offer(name, 4000)
    with_batch["status"]["resources"] = {"allocatable": {BATCH_CPU: "4541", BATCH_MEMORY: "17236565027"}}

    async def shown() -> dict[str, str]:
        status = (await scene.get(NODES, name))["status"]
        assert status["capacity"] == status["allocatable"]
        return {one: amount for one, amount in status["allocatable"].items() if one in BATCH_NAMES}

    await KubeNode(scene.kube, name, dict).write(with_batch)
    assert await shown() == {one: "4541" if "cpu" in one else "17236565027" for one in BATCH_NAMES}
    assert node_of(await scene.get(NODES, name)).offered > BATCH_NAMES
    next_life = KubeNode(scene.kube, name, dict)
    await next_life.write(offer(name, 4000))
    assert await shown() == {}
    amounts = {BATCH_CPU: "5001"}
    change = {"status": {"capacity": amounts, "allocatable": amounts}}
    await scene.kube.merge(f"{NODES.path(name)}/status", change, manager="koord-manager")
    await next_life.write(offer(name, 5000))
    assert await shown() == amounts
    assert not node_of(await scene.get(NODES, name)).offered & BATCH_NAMES
