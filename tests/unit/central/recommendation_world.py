"""A cluster in memory with a workload: its Deployment, pods, ResourceRecommend, and nodes that tell figures."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Any

from cluster_world import World
from fixture_types import Virtual

from services.central.adapters.recommendation.recommend_objects import USAGE_CHECKPOINTS
from services.central.core.recommendation.objects.resource_recommend import APPLY, IN_PLACE, RESOURCE_RECOMMENDS
from services.central.core.recommendation.objects.workloads import DEPLOYMENTS
from shared.contracts.cluster.figures import FiguredContainers, FiguredPods, PodFigures
from shared.core.api_kind import PODS
from shared.fakes.memory_bus import MemoryBus
from shared.fakes.memory_objects import Document
from shared.wire import Wire

MIB = 1 << 20
SETTINGS = {"recommendation": {"enabled": True, "min_history_s": 600.0, "refresh_s": 600.0}}
Resources = Mapping[str, Mapping[str, str]]
ASKED: Resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "8", "memory": "4Gi"}}


def policy(container: str = "main", **of: Mapping[str, Any]) -> Document:
    """Of cpu and memory, or of the resources that are named."""
    resources = of or {"cpu": {}, "memory": {}}
    controlled = [{"resourceName": name, **rest} for name, rest in resources.items()]
    return {"containerName": container, "controlledResourcesPolicies": controlled}


class Shop(World):
    """One namespace, `shop`."""

    def __init__(self, **kubernetes: Any) -> None:
        super().__init__(kubernetes={**SETTINGS, **kubernetes})

    def deployment(self, name: str = "web", resources: Resources = ASKED) -> None:
        containers = [{"name": "main", "resources": dict(resources)}]
        spec = {"template": {"spec": {"containers": containers}}}
        self.api.put(DEPLOYMENTS, {"metadata": {"name": name, "namespace": "shop"}, "spec": spec})

    def web(self, *suffixes: str, resources: Resources = ASKED, status: Mapping[str, Any] | None = None) -> list[str]:
        """Pods of `web` on node n1; their UIDs."""
        return [self._pod(f"web-5d9c-{suffix}", resources, status or {}) for suffix in suffixes]

    def _pod(self, name: str, resources: Resources, status: Mapping[str, Any]) -> str:
        owner = {"kind": "ReplicaSet", "name": "web-5d9c", "uid": "rs"}
        made = self.api.put(
            PODS,
            {
                "metadata": {"name": name, "namespace": "shop", "labels": {"pod-template-hash": "5d9c"},
                             "ownerReferences": [owner]},
                "spec": {"nodeName": "n1", "containers": [{"name": "main", "resources": dict(resources)}]},
                "status": {"phase": "Running", **status},
            },
        )  # fmt: skip
        return str(made["metadata"]["uid"])

    def recommend(self, *policies: Document, target: str = "web", apply: bool = False, **more: Any) -> None:
        spec = {
            "targetRef": {"kind": "Deployment", "name": target},
            "resourcePolicy": {"algorithmPolicy": {}, "containerPolicies": list(policies) or [policy("*")]},
        }
        there = self.api.documents.get((RESOURCE_RECOMMENDS, "shop", "web"), {})
        meta = {"name": "web", "namespace": "shop", "annotations": {APPLY: IN_PLACE} if apply else {}}
        self.api.put(RESOURCE_RECOMMENDS, {**there, "metadata": meta, "spec": spec | more})

    async def use(
        self,
        uids: list[str],
        *,
        cores: float,
        memory_bytes: float,
        for_s: float,
        node: str = "n1",
        every_s: float = 60.0,
    ) -> None:
        """These pods use so much for so long, and their node says so."""
        wire = self.wires.setdefault(node, Wire(MemoryBus(self.bus.broker), self.clock, node=node, service="reporter"))
        for _ in range(round(for_s / every_s)):
            await wire.publish(self.figures(wire, uids, cores, memory_bytes))
            await asyncio.sleep(every_s)

    def figures(
        self, wire: Wire, uids: list[str], cores: float, memory_bytes: float, *, late_s: float = 0.0, name: str = "main"
    ) -> PodFigures:
        """What a node says of these pods."""
        count = len(uids)
        pods = FiguredPods(uids=tuple(uids), namespaces=("shop",) * count, names=("p",) * count)
        series = {"container_cpu_usage": (cores,) * count, "container_memory_usage": (memory_bytes,) * count}
        told = FiguredContainers(pods=tuple(range(count)), names=(name,) * count, series=series)
        at = self.clock.wall() - timedelta(seconds=late_s)
        return wire.stamp(PodFigures, measured_at=at, period_s=15.0, pods=pods, containers=told)

    @property
    def status(self) -> Document:
        found: Document = self.api.documents[RESOURCE_RECOMMENDS, "shop", "web"].get("status") or {}
        return found

    def condition(self, kind: str) -> tuple[str, str, str]:
        """Status, reason and message; empty where it is not told."""
        for one in self.status.get("conditions", ()):
            if one["type"] == kind:
                return one["status"], one["reason"], one["message"]
        return "", "", ""

    @property
    def target(self) -> dict[str, str]:
        """Of the container main; empty while nothing is recommended."""
        rows = self.status.get("recommendResources", {}).get("containerRecommendations", ())
        return next((row["requests"]["target"] for row in rows if row["containerName"] == "main"), {})

    def requests(self, suffix: str) -> dict[str, str]:
        """Of a pod that runs."""
        pod = self.api.documents[PODS, "shop", f"web-5d9c-{suffix}"]
        found: dict[str, str] = pod["spec"]["containers"][0]["resources"].get("requests", {})
        return found

    @property
    def checkpoints(self) -> list[Document]:
        return list(self.api.of(USAGE_CHECKPOINTS))


Story = Callable[[Shop], Awaitable[None]]
Tell = Callable[..., None]


def telling(virtual: Virtual) -> Tell:
    """Tells a story of a shop with the Deployment `web`, in virtual time."""

    def run(story: Story, **kubernetes: Any) -> None:
        async def whole() -> None:
            shop = Shop(**kubernetes)
            async with shop.running():
                shop.deployment()
                await story(shop)

        virtual(whole())

    return run


async def led(shop: Shop) -> None:
    """A central begins to lead."""
    shop.app = shop.central()
    await asyncio.sleep(5)
