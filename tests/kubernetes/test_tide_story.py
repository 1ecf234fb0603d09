"""The story of a tide pool on a real API server, scheduler and controllers: a node goes to batch work when the services
fit on the others, comes back for a pod that waits, and loses its marks with the pool.

Played are the nodes and their kubelets: pods that are bound become ready, and end when they are asked to.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from central_rig import central_on
from kube_rig.cluster import Cluster
from paper_node import PaperNode, make_namespace, remove_namespace
from until_met import until_found

from services.central.core.tide.marks import BATCH_UNWANTED, ONLINE_POD, POD_LABEL, SERVICES_UNWANTED, standing_of
from services.central.core.tide.pool import POOLS
from services.central.main import ClusterAccess, build_cluster
from services.central.settings import CentralSettings
from shared.adapters.clock import SystemClock
from shared.adapters.kube.client import Document, Kube
from shared.adapters.kube.evictor import KubeEvictor
from shared.adapters.kube.objects import KubeObjects
from shared.core.api_kind import CNCS, CNRS, LEASES, NODES, PODS, ApiKind
from shared.core.node_mode import NodeSwitch
from shared.errors import SubletError
from shared.fakes.memory_bus import MemoryBus
from shared.settings import check
from shared.wire import Wire

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

POOL, NAMESPACE, HAND, LABEL = "tide-story", "tide-story", "test", "tide-story"
NAMES = ("tide-a", "tide-b", "tide-c")
LOOK_S, PATIENCE_S = 0.1, 60.0
LEASE = {"name": "tide-story", "namespace": "default", "lease_s": 5, "renew_s": 3, "retry_s": 0.5}
TIDE = {"enabled": True, "pass_s": 1, "settle_s": 0.1, "hold_s": 1, "empty_limit_s": 600, "give_back_limit_s": 60}
SETTINGS = {"probe_s": 1, "kubernetes": {"lease": LEASE, "agent_labels": "tide-story=none", "tide": TIDE}}
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
AT_ONCE = {"gracePeriodSeconds": 0}


class TideNodesAlone(KubeObjects):
    """What a central of this test sees of the cluster: nothing of anybody else's nodes."""

    def mirror(self, kind: ApiKind, keep: Callable[[Mapping[str, Any]], Any], *rest: Any, **more: Any) -> Any:
        def kept(document: Mapping[str, Any]) -> Any:
            by_node = kind in (NODES, CNRS, CNCS)
            return keep(document) if not by_node or document["metadata"]["name"] in NAMES else None

        return super().mirror(kind, kept, *rest, **more)


async def nothing() -> None:
    """Nothing to close."""


def workload(name: str, replicas: int, labels: Mapping[str, str], tolerated: str) -> Document:
    """Pods of one CPU for the pool's nodes."""
    tolerations = [{"key": key, "operator": "Exists"} for key in (LABEL, tolerated)]
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    spec = {"nodeSelector": {LABEL: "yes"}, "tolerations": tolerations, "containers": [container],
            "terminationGracePeriodSeconds": 1}  # fmt: skip
    template = {"metadata": {"labels": {"app": name, **labels}}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


class TideScene:
    """Three nodes of two CPUs, a service of three pods of which two must stay, and a central."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kube, self.clock, bus = Kube(kubeconfig), SystemClock(), MemoryBus()
        self.objects = TideNodesAlone(self.kube, self.clock, manager="sublet-central")
        amounts = {"cpu": "2", "memory": "8Gi", "pods": "110"}
        self.nodes = [PaperNode(self.kube, name, LABEL, amounts) for name in NAMES]
        self.least_ready = 3
        self._tasks: list[asyncio.Task[None]] = []
        settings = check(CentralSettings, SETTINGS, where="central")
        wire = Wire(bus, self.clock, node="hub", service="central")
        access = ClusterAccess(self.objects, wire, KubeEvictor(self.kube), "tide-story", nothing)
        cluster = build_cluster(access, self.clock, settings.kubernetes, NodeSwitch())
        self.central = central_on(wire, self.clock, {"central": SETTINGS}, cluster=cluster)

    async def begin(self) -> None:
        await make_namespace(self.kube, NAMESPACE)
        for node in self.nodes:
            await node.register()
            self._start(node.breathe())
        self._start(self._kubelets())
        budget = {"minAvailable": 2, "selector": {"matchLabels": {"app": "service"}}}
        await self.kube.create(BUDGETS, {"metadata": {"name": "service"}, "spec": budget}, manager=HAND)
        service = workload("service", 3, {POD_LABEL: ONLINE_POD}, BATCH_UNWANTED.key)
        await self.kube.create(DEPLOYMENTS, service, manager=HAND)
        await until(lambda: self.ready("service"), lambda found: len(found) == 3)
        self._start(self._watch_budget())
        self._start(self.central.run())

    def _start(self, work: Any) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _kubelets(self) -> None:
        """Pods that have a node become ready, and those that are asked to end do."""
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        while True:
            for pod in await self.pods():
                path, status = PODS.path(pod["metadata"]["name"], NAMESPACE), pod.get("status", {})
                with contextlib.suppress(SubletError):
                    if pod["metadata"].get("deletionTimestamp"):
                        await self.kube.delete(path, AT_ONCE)
                    elif pod["spec"].get("nodeName") and status.get("phase") != "Running":
                        await self.kube.merge(f"{path}/status", {"status": ready}, manager="kubelet")
            await asyncio.sleep(LOOK_S)

    async def _watch_budget(self) -> None:
        while True:
            self.least_ready = min(self.least_ready, len(await self.ready("service")))
            await asyncio.sleep(LOOK_S)

    async def pods(self) -> list[Document]:
        found: list[Document] = (await self.kube.get(PODS.collection(NAMESPACE)))["items"]
        return found

    async def ready(self, app: str) -> list[str]:
        """Nodes of the pods of a workload that run."""
        return [
            pod["spec"]["nodeName"]
            for pod in await self.pods()
            if pod["metadata"]["labels"].get("app") == app
            and pod.get("status", {}).get("phase") == "Running"
            and not pod["metadata"].get("deletionTimestamp")
        ]

    async def scale(self, replicas: int) -> None:
        await self.kube.merge(f"{DEPLOYMENTS}/service", {"spec": {"replicas": replicas}}, manager=HAND)

    async def roles(self) -> dict[str, Any]:
        nodes = [await self.kube.get(NODES.path(name)) for name in NAMES]
        return {node["metadata"]["name"]: standing_of(node["metadata"]["labels"], POOL) for node in nodes}

    async def taints(self, name: str) -> list[tuple[str, str]]:
        """Those of the pool, by key and effect."""
        rows = (await self.kube.get(NODES.path(name)))["spec"].get("taints", [])
        return [(row["key"], row["effect"]) for row in rows if "/" in row["key"] and "tide" in row["key"]]

    async def status(self) -> Document:
        return dict((await self.kube.get(POOLS.path(POOL))).get("status", {}))

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(SubletError):
            await self.kube.merge(POOLS.path(POOL), {"metadata": {"finalizers": None}}, manager=HAND)
        for path in (POOLS.path(POOL), LEASES.path("tide-story", "default"), f"{DEPLOYMENTS}/service"):
            with contextlib.suppress(SubletError):
                await self.kube.delete(path)
        for node in self.nodes:
            await node.remove()
        await remove_namespace(self.kube, NAMESPACE)
        await self.kube.close()
        for one in ended:
            if isinstance(one, Exception):
                raise one


@pytest.fixture
async def tide(kinds: Cluster) -> AsyncIterator[TideScene]:
    """Central works, and there is no pool yet."""
    scene = TideScene(kinds.admin)
    try:
        await scene.begin()
        yield scene
    finally:
        await scene.end()


async def until(look: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool]) -> Any:
    """What is found once it holds."""
    return await until_found(look, holds, PATIENCE_S)


async def test_a_node_goes_to_batch_work_and_comes_back_for_a_service_that_waits(tide: TideScene) -> None:
    configs = {"nodeSelector": {LABEL: "yes"}, "reserve": {"online": 1, "offline": "0%"}}
    pool = {**POOLS.head, "metadata": {"name": POOL}, "spec": {"nodeConfigs": configs}}
    await tide.kube.create(POOLS.collection(), pool, manager=HAND)

    # Three pods of one CPU fit on two nodes of two: one node is emptied, under a budget of two that stay.
    roles = await until(tide.roles, lambda found: "tide_offline" in found.values())
    (away,) = (name for name, role in roles.items() if role == "tide_offline")
    assert await tide.taints(away) == [(SERVICES_UNWANTED.key, "NoExecute")]
    assert away not in await until(lambda: tide.ready("service"), lambda found: len(found) == 3)
    assert tide.least_ready >= 2

    await tide.kube.create(DEPLOYMENTS, workload("batch", 1, {}, SERVICES_UNWANTED.key), manager=HAND)
    assert await until(lambda: tide.ready("batch"), bool) == [away]
    status = await until(tide.status, lambda found: found.get("offlineCount") == 1)
    assert status["tideNodes"]["offlineNodes"] == [away]

    # A fourth pod has room, a fifth has none: the node comes back, and batch work leaves it.
    await tide.scale(5)
    await until(lambda: tide.ready("service"), lambda found: len(found) == 5)
    assert (await tide.roles())[away] == "tide_online"
    assert await tide.taints(away) == [(BATCH_UNWANTED.key, "NoExecute")]
    assert away not in await tide.ready("batch")

    await tide.kube.delete(POOLS.path(POOL))
    await until(tide.roles, lambda found: set(found.values()) == {None})
    assert [await tide.taints(name) for name in NAMES] == [[], [], []]
    await until(lambda: tide.kube.get(POOLS.collection()), lambda found: found["items"] == [])
    assert tide.least_ready >= 2


async def test_the_api_server_keeps_what_a_pool_says_and_its_fault_is_in_the_status(tide: TideScene) -> None:
    spec = {"nodeConfigs": {"nodeSelector": {LABEL: "yes"}, "onlineLabel": {"key": "mine", "value": "yes"}}}
    await tide.kube.create(POOLS.collection(), {**POOLS.head, "metadata": {"name": POOL}, "spec": spec}, manager=HAND)
    status = await until(tide.status, lambda found: bool(found.get("conditions")))
    (valid,) = (row for row in status["conditions"] if row["type"] == "Valid")
    assert (valid["status"], valid["reason"]) == ("False", "Unreadable")
    assert "onlineLabel" in valid["message"]
    assert set((await tide.roles()).values()) == {None}
