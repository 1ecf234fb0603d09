"""The story of a service on a real API server: an autoscaler has its bounds by the clock and its own back, pods get in
place what is recommended, one after the other, and a descriptor is made, filled, named on pods, and goes again.

Played are the node and its kubelet; the recommendation is written by hand.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from central_rig import central_on
from kube_rig.cluster import Cluster
from kube_rig.programs import RESIZES_IN_PLACE
from paper_node import PaperNode, make_namespace, remove_namespace
from until_met import until_found

from services.central.core.clock_bounds.autoscaler import AUTOSCALERS, STATUS
from services.central.core.clock_bounds.schedule import SCHEDULE
from services.central.core.recommendation.objects.resource_recommend import RESOURCE_RECOMMENDS
from services.central.core.service_profiles.descriptor import DESCRIPTORS, ENABLE, NAME, SENTINEL
from services.central.core.vertical.vpa_object import KATALYST_VPAS
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

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(240)]

NAMESPACE, HAND, NODE = "profiles-story", "test", "profiles-story"
LOOK_S, PATIENCE_S = 0.1, 50.0
ON = {"enabled": True}
LEASE = {"name": "profiles-story", "namespace": "default", "lease_s": 5, "renew_s": 3, "retry_s": 0.5}
SETTINGS = {"probe_s": 1, "kubernetes": {"lease": LEASE, "agent_labels": "profiles-story=none", "clock_bounds": ON,
                                         "vertical": ON, "service_profiles": ON}}  # fmt: skip
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
AT_ONCE = {"gracePeriodSeconds": 0}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


class OneNamespace(KubeObjects):
    """What a central of this test sees of the cluster: nothing of anybody else's."""

    def mirror(self, kind: ApiKind, keep: Callable[[Mapping[str, Any]], Any], *rest: Any, **more: Any) -> Any:
        def kept(document: Mapping[str, Any]) -> Any:
            meta = document["metadata"]
            ours = meta.get("namespace") == NAMESPACE if kind.namespaced else kind not in (NODES, CNRS, CNCS)
            return keep(document) if ours else None

        return super().mirror(kind, kept, *rest, **more)


async def nothing() -> None:
    """Nothing to close."""


class ProfileScene:
    """A node on paper, a service of two pods on it, and a central."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kube, clock, bus = Kube(kubeconfig), SystemClock(), MemoryBus()
        objects = OneNamespace(self.kube, clock, manager="sublet-central")
        self.node = PaperNode(self.kube, NODE, NODE, {"cpu": "8", "memory": "8Gi", "pods": "110"})
        self._tasks: list[asyncio.Task[None]] = []
        settings = check(CentralSettings, SETTINGS, where="central")
        wire = Wire(bus, clock, node="hub", service="central")
        access = ClusterAccess(objects, wire, KubeEvictor(self.kube), "profiles-story", nothing)
        cluster = build_cluster(access, clock, settings.kubernetes, NodeSwitch())
        self.central = central_on(wire, clock, {"central": SETTINGS}, cluster=cluster)
        self.slow_kubelet = False

    async def begin(self) -> None:
        await make_namespace(self.kube, NAMESPACE)
        await self.node.register()
        for work in (self.node.breathe(), self._kubelet()):
            self._tasks.append(asyncio.create_task(work))
        amounts = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "2", "memory": "1Gi"}}
        spec = {"nodeName": NODE, "containers": [{"name": "main", "image": "none", "resources": amounts}],
                "terminationGracePeriodSeconds": 1}  # fmt: skip
        template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
        selector = {"matchLabels": {"app": "web"}}
        spec = {"replicas": 2, "selector": selector, "template": template}
        await self.create(DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
        await until(self.pods, lambda found: len(found) == 2 and all(one["status"].get("phase") == "Running"
                                                                    for one in found))  # fmt: skip
        self._tasks.append(asyncio.create_task(self.central.run()))

    async def create(self, path: str, document: Document) -> None:
        await self.kube.create(path, document, manager=HAND)

    async def get(self, kind: ApiKind, name: str = "web") -> Document:
        return dict(await self.kube.get(kind.path(name, NAMESPACE)))

    async def change(self, path: str, document: Document) -> None:
        await self.kube.merge(path, document, manager=HAND)

    async def pods(self) -> list[Document]:
        found: list[Document] = (await self.kube.get(PODS.collection(NAMESPACE)))["items"]
        return sorted(found, key=lambda pod: pod["metadata"]["name"])

    async def requests(self) -> list[str]:
        return sorted(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in await self.pods())

    async def _kubelet(self) -> None:
        """Pods become ready with what they ask for, unless it is slow; those that are asked to end do."""
        while True:
            for pod in await self.pods():
                path, one = PODS.path(pod["metadata"]["name"], NAMESPACE), pod["spec"]["containers"][0]
                row = {"name": "main", "image": "none", "imageID": "", "restartCount": 0, "ready": True,
                       "resources": one["resources"]}  # fmt: skip
                known = pod.get("status", {}).get("containerStatuses")
                with contextlib.suppress(SubletError):
                    if pod["metadata"].get("deletionTimestamp"):
                        await self.kube.delete(path, AT_ONCE)
                    elif not known or (known[0].get("resources") != one["resources"] and not self.slow_kubelet):
                        status = {"phase": "Running", "containerStatuses": [row]}
                        await self.kube.merge(f"{path}/status", {"status": status}, manager="kubelet")
            await asyncio.sleep(LOOK_S)

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        ended = await asyncio.gather(*self._tasks, return_exceptions=True)
        for path in (f"{DEPLOYMENTS}/web", LEASES.path("profiles-story", "default")):
            with contextlib.suppress(SubletError):
                await self.kube.delete(path)
        await remove_namespace(self.kube, NAMESPACE)
        await self.node.remove()
        await self.kube.close()
        for one in ended:
            if isinstance(one, Exception):
                raise one


@pytest.fixture
async def scene(kinds: Cluster) -> AsyncIterator[ProfileScene]:
    """Central works, and the service runs."""
    made = ProfileScene(kinds.admin)
    try:
        await made.begin()
        yield made
    finally:
        await made.end()


async def until(look: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool]) -> Any:
    """What is found once it holds."""
    return await until_found(look, holds, PATIENCE_S, not_yet=(SubletError,))


def bounds(autoscaler: Document) -> tuple[int, int]:
    return autoscaler["spec"].get("minReplicas", 1), autoscaler["spec"]["maxReplicas"]


async def test_a_service_is_bounded_resized_and_described(scene: ProfileScene) -> None:
    # An autoscaler, whose bounds are those of a cron that fires every minute, until the annotation goes.
    cron = {"cronTab": "* * * * *", "minReplicas": 2, "maxReplicas": 7}
    schedule = json.dumps({"timeZone": "Europe/Berlin", "timeBounds": [{"bounds": [cron]}]})
    own = {"minReplicas": 1, "maxReplicas": 3, "scaleTargetRef": TARGET}
    hpa = AUTOSCALERS.path("web", NAMESPACE)
    await scene.create(AUTOSCALERS.collection(NAMESPACE),
                       {"metadata": {"name": "web", "annotations": {SCHEDULE: schedule}}, "spec": own})  # fmt: skip
    found = await until(lambda: scene.get(AUTOSCALERS), lambda one: bounds(one) == (2, 7))
    assert "2 to 7 replicas" in found["metadata"]["annotations"][STATUS]
    await scene.change(hpa, {"metadata": {"annotations": {SCHEDULE: schedule.replace("* * *", "* * 99")}}})
    refused = await until(lambda: scene.get(AUTOSCALERS),
                          lambda one: "refused" in one["metadata"]["annotations"].get(STATUS, ""))  # fmt: skip
    assert bounds(refused) == (2, 7)
    await scene.change(hpa, {"metadata": {"annotations": {SCHEDULE: None}}})
    await until(lambda: scene.get(AUTOSCALERS), lambda one: bounds(one) == (1, 3))

    # A recommendation and an autoscaler that applies it: one pod, and the other once kubelet is done with it.
    scene.slow_kubelet = True
    policies = [{"containerName": "*", "controlledResources": ["cpu", "memory"], "maxAllowed": {"cpu": "400m"}}]
    await scene.create(RESOURCE_RECOMMENDS.collection(NAMESPACE), {
        **RESOURCE_RECOMMENDS.head, "metadata": {"name": "web"},
        "spec": {"targetRef": TARGET, "resourcePolicy": {"containerPolicies": []}},
    })  # fmt: skip
    row = {"containerName": "main", "requests": {"target": {"cpu": "500m"}}}
    path = f"{RESOURCE_RECOMMENDS.path('web', NAMESPACE)}/status"
    await scene.change(path, {"status": {"recommendResources": {"containerRecommendations": [row]}}})
    await scene.create(KATALYST_VPAS.collection(NAMESPACE), {
        **KATALYST_VPAS.head, "metadata": {"name": "web"},
        "spec": {"targetRef": TARGET, "updatePolicy": {"podUpdatingStrategy": "Inplace"},
                 "resourcePolicy": {"containerPolicies": policies}},
    })  # fmt: skip
    if RESIZES_IN_PLACE:
        await until(scene.requests, lambda found: "400m" in found)
        assert await scene.requests() == ["100m", "400m"]
        scene.slow_kubelet = False
        await until(scene.requests, lambda found: found == ["400m", "400m"])
    outcome = "AsRecommended" if RESIZES_IN_PLACE else "ResizeUnsupported"
    await until(lambda: scene.get(KATALYST_VPAS), lambda one: applied(one) == outcome)

    # A descriptor, its sentinel, its name on the pods; and nothing of it once nobody asks for it.
    deployment = f"{DEPLOYMENTS}/web"
    await scene.change(deployment, {"metadata": {"annotations": {ENABLE: "true"}}})
    await until(lambda: scene.get(DESCRIPTORS), lambda one: one["spec"]["targetRef"]["name"] == "web")
    await scene.change(DESCRIPTORS.path("web", NAMESPACE), {"spec": {"baselinePercent": 50}})
    marked = await until(lambda: scene.get(DESCRIPTORS), lambda one: SENTINEL in one["metadata"].get("annotations", {}))
    oldest = min(await scene.pods(), key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))
    assert json.loads(marked["metadata"]["annotations"][SENTINEL])["podName"] == oldest["metadata"]["name"]
    await until(scene.pods, lambda found: [named(one) for one in found] == ["web", "web"])
    await scene.change(deployment, {"metadata": {"annotations": {ENABLE: None}}})
    await until(scene.pods, lambda found: [named(one) for one in found] == [None, None])


def applied(vpa: Document) -> str | None:
    conditions = vpa.get("status", {}).get("conditions", [])
    return next((one["reason"] for one in conditions if one["type"] == "Applied"), None)


def named(pod: Document) -> str | None:
    name: str | None = pod["metadata"].get("annotations", {}).get(NAME)
    return name
