"""The story of a ResourceRecommend on a real API server and kubelet: what a Deployment uses becomes what it should ask
for, its pods take it in place one after the other without a restart, and what was learned goes with the object.

Played is what the node says of the pods' use, six minutes of it at once; central runs in this process.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from central_rig import central_on
from kube_rig.cluster import Cluster
from kube_rig.node import NODE
from kube_rig.programs import RESIZES_IN_PLACE
from paper_node import make_namespace, remove_namespace
from until_met import until_found

from services.central.adapters.recommendation.recommend_objects import USAGE_CHECKPOINTS
from services.central.core.recommendation.objects.resource_recommend import APPLY, IN_PLACE, RESOURCE_RECOMMENDS
from services.central.main import ClusterAccess, build_cluster
from services.central.settings import CentralSettings
from shared.adapters.clock import SystemClock
from shared.adapters.kube.client import Document, Kube
from shared.adapters.kube.evictor import KubeEvictor
from shared.adapters.kube.objects import KubeObjects
from shared.contracts.cluster.figures import FiguredContainers, FiguredPods, PodFigures
from shared.core.api_kind import LEASES, PODS
from shared.core.node_mode import NodeSwitch
from shared.errors import SubletError
from shared.fakes.memory_bus import MemoryBus
from shared.settings import check
from shared.wire import Wire

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]

SPACE, HAND, NAME = "recommendation-story", "test", "web"
PATIENCE_S = 60.0
LEASE = {"name": "recommendation-story", "namespace": "default", "lease_s": 5, "renew_s": 3, "retry_s": 0.5}
RECOMMENDATION = {"enabled": True, "min_history_s": 240, "checkpoint_s": 2, "pass_s": 1, "resizes_per_minute": 600}
SETTINGS = {
    "probe_s": 1,
    "kubernetes": {"lease": LEASE, "agent_labels": "story=none", "recommendation": RECOMMENDATION},
}
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{SPACE}/deployments"
USED_CORES, USED_BYTES = 0.05, 40 << 20


class WebScene:
    """A Deployment of two pods that run, their node's voice, and a central."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.kube, self.clock, bus = cluster, Kube(cluster.admin), SystemClock(), MemoryBus()
        objects = KubeObjects(self.kube, self.clock, manager="sublet-central")
        settings = check(CentralSettings, SETTINGS, where="central")
        wire = Wire(bus, self.clock, node="hub", service="central")
        self.node = Wire(MemoryBus(bus.broker), self.clock, node=NODE, service="reporter")
        access = ClusterAccess(objects, wire, KubeEvictor(self.kube), "recommendation-story", nothing)
        parts = build_cluster(access, self.clock, settings.kubernetes, NodeSwitch())
        self.central = central_on(wire, self.clock, {"central": SETTINGS}, cluster=parts)
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        await make_namespace(self.kube, SPACE)
        container = {
            "name": "main",
            "image": self.cluster.images.base.name,
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", "trap exit TERM; sleep infinity & wait"],
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "256Mi"}},
        }
        template = {
            "metadata": {"labels": {"app": NAME}},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
        }
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": NAME}}, "template": template}
        await self.kube.create(DEPLOYMENTS, {"metadata": {"name": NAME}, "spec": spec}, manager=HAND)
        await until(self.running, lambda found: len(found) == 2)
        self._task = asyncio.create_task(self.central.run())

    async def running(self) -> list[Document]:
        pods: list[Document] = (await self.kube.get(PODS.collection(SPACE)))["items"]
        return [pod for pod in pods if pod.get("status", {}).get("phase") == "Running"]

    async def speak(self) -> None:
        """Six minutes of use, a message for each half."""
        pods = await self.running()
        told = FiguredPods(
            uids=tuple(pod["metadata"]["uid"] for pod in pods),
            namespaces=(SPACE,) * len(pods),
            names=tuple(pod["metadata"]["name"] for pod in pods),
        )
        series = {"container_cpu_usage": (USED_CORES,) * len(pods), "container_memory_usage": (USED_BYTES,) * len(pods)}
        used = FiguredContainers(pods=tuple(range(len(pods))), names=("main",) * len(pods), series=series)
        for minutes_ago in range(6, 0, -1):
            at = datetime.now(UTC) - timedelta(minutes=minutes_ago)
            message = self.node.stamp(PodFigures, measured_at=at, period_s=15.0, pods=told, containers=used)
            await self.node.publish(message)

    async def status(self) -> Document:
        found = await self.kube.get(RESOURCE_RECOMMENDS.path(NAME, SPACE))
        return dict(found.get("status") or {})

    async def condition(self, kind: str) -> tuple[str, str, str]:
        for one in (await self.status()).get("conditions", ()):
            if one["type"] == kind:
                return one["status"], one["reason"], one["message"]
        return "", "", ""

    async def in_force(self) -> list[tuple[Any, int]]:
        """The requests that kubelet has put into force, and how often the container was started anew."""
        statuses = [pod["status"]["containerStatuses"][0] for pod in await self.running()]
        return [((one.get("resources") or {}).get("requests"), one["restartCount"]) for one in statuses]

    async def checkpoints(self) -> list[str]:
        found = (await self.kube.get(USAGE_CHECKPOINTS.collection(SPACE)))["items"]
        return [one["metadata"]["name"] for one in found]

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        for path in (
            RESOURCE_RECOMMENDS.path(NAME, SPACE),
            LEASES.path("recommendation-story", "default"),
            f"{DEPLOYMENTS}/{NAME}",
        ):
            with contextlib.suppress(SubletError):
                await self.kube.delete(path)
        await remove_namespace(self.kube, SPACE)
        await self.kube.close()


async def nothing() -> None:
    """Nothing to close."""


async def until(look: Callable[[], Awaitable[Any]], holds: Callable[[Any], bool]) -> Any:
    """What is found once it holds."""
    return await until_found(look, holds, PATIENCE_S)


@pytest.fixture
async def web(kinds: Cluster) -> AsyncIterator[WebScene]:
    """Two pods run, central works, and nobody recommends anything yet."""
    scene = WebScene(kinds)
    try:
        await scene.begin()
        yield scene
    finally:
        await scene.end()


def recommend(target: str = NAME) -> Document:
    """Of every container, applied in place."""
    resources = [{"resourceName": "cpu"}, {"resourceName": "memory", "bufferPercent": 50, "maxAllowed": "48Mi"}]
    policy = {"containerName": "*", "controlledResourcesPolicies": resources}
    return {
        **RESOURCE_RECOMMENDS.head,
        "metadata": {"name": NAME, "annotations": {APPLY: IN_PLACE}},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "resourcePolicy": {"algorithmPolicy": {"algorithm": "percentile"}, "containerPolicies": [policy]},
        },
    }


async def test_what_pods_use_becomes_what_they_ask_for_without_a_restart(web: WebScene) -> None:
    await web.kube.create(RESOURCE_RECOMMENDS.collection(SPACE), recommend("webb"), manager=HAND)
    said = await until(lambda: web.condition("Validated"), lambda found: bool(found[0]))
    assert said[:2] == ("False", "WorkloadNotFound")
    right = {"spec": recommend()["spec"]}
    await web.kube.merge(RESOURCE_RECOMMENDS.path(NAME, SPACE), right, manager=HAND)
    await until(lambda: web.condition("Initialized"), lambda found: found[1] == "NoSamples")

    await web.speak()
    await until(lambda: web.condition("RecommendationProvided"), lambda found: found[0] == "True")
    (row,) = (await web.status())["recommendResources"]["containerRecommendations"]
    assert row["requests"]["target"] == {"cpu": "71m", "memory": "48Mi"}
    assert row["requests"]["current"] == {"cpu": "10m", "memory": "16Mi"}

    if RESIZES_IN_PLACE:
        wanted = (row["requests"]["target"], 0)
        await until(web.in_force, lambda found: found == [wanted, wanted])
    outcome = ("True", "WithinBounds") if RESIZES_IN_PLACE else ("False", "ResizeUnsupported")
    await until(lambda: web.condition("Applied"), lambda found: found[:2] == outcome)
    assert {pod["status"]["qosClass"] for pod in await web.running()} == {"Burstable"}

    assert await until(web.checkpoints, bool) == [NAME]
    await web.kube.delete(RESOURCE_RECOMMENDS.path(NAME, SPACE))
    await until(web.checkpoints, lambda found: found == [])
