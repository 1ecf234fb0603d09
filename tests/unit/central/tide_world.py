"""A cluster in memory whose nodes change sides: nodes, pods that tolerate a side, and a taint that ends the others."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from cluster_world import World
from fixture_types import Virtual

from services.central.core.tide.marks import BATCH_UNWANTED, ONLINE_POD, POD_LABEL, SERVICES_UNWANTED, standing_of
from services.central.core.tide.pool import POOLS
from services.central.core.tide.roles import Standing
from services.central.core.tide.seen import tide_node_of, tide_pod_of
from shared.contracts.pod import Pod
from shared.core.api_kind import NODES, PODS, ApiKind
from shared.fakes.memory_objects import MemoryObjects

POOL, SELECTOR = "green", {"pool": "green"}
SETTINGS: dict[str, Any] = {"kubernetes": {"tide": {"enabled": True}}}
"""Central with tide pools, else as by default."""
SERVICE = [{"key": BATCH_UNWANTED.key, "operator": "Exists"}]
BATCH = [{"key": SERVICES_UNWANTED.key, "operator": "Exists"}]
LEAD_S, PASS_S = 5.0, 12.0
Json = dict[str, Any]


class TaintedObjects(MemoryObjects):
    """Objects with the one effect of NoExecute: pods that do not tolerate it end, whatever their budgets say."""

    ended: list[str]

    async def patch(self, kind: ApiKind, document: Mapping[str, Any], *, status: bool = False) -> Json | None:
        made = await super().patch(kind, document, status=status)
        if kind == NODES and made is not None:
            self._end(made)
        return made

    def _end(self, document: Json) -> None:
        node = tide_node_of(document)
        for row in self.of(PODS):
            pod = tide_pod_of(row)
            if pod is None or pod.node != node.name:
                continue
            if any(one.effect == "NoExecute" and not pod.placement.tolerates(one) for one in node.taints):
                self.ended.append(pod.key.partition("/")[2])
                self.drop(PODS, row["metadata"]["name"], row["metadata"]["namespace"])


class TideWorld(World):
    """Nodes of 4 CPUs with the pool's label."""

    def __init__(self, **central: Any) -> None:
        super().__init__(**central)
        self.tainted_api = TaintedObjects(self.clock)
        self.tainted_api.ended = []
        self.api = self.evictor.api = self.tainted_api

    @property
    def ended(self) -> list[str]:
        """Pods that a taint has ended."""
        return self.tainted_api.ended

    def machines(self, *names: str, labels: Mapping[str, str] = SELECTOR) -> None:
        for name in names:
            amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
            meta = {"name": name, "labels": {"zone": "z", **labels}}
            taints = [{"key": "gpu", "effect": "PreferNoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}]
            self.api.put(NODES, {"metadata": meta, "spec": {"taints": taints}, "status": {"allocatable": amounts}})

    def pool(self, name: str = POOL, selector: Mapping[str, str] = SELECTOR, **spec: Any) -> None:
        reserve = {"online": spec.pop("online", 0), "offline": spec.pop("offline", 0)}
        configs = {"nodeSelector": dict(selector), "reserve": reserve}
        document = {"metadata": {"name": name}, "spec": {"nodeConfigs": configs, **spec}}
        status = self.api.documents.get((POOLS, "", name), {}).get("status")
        self.api.put(POOLS, {**document, **({} if status is None else {"status": status})})

    def service(self, name: str, node: str | None = None, cpu: str = "1", **more: Any) -> None:
        """A pod of a service; without a node the scheduler has found none."""
        self.work(name, node, cpu, labels={POD_LABEL: ONLINE_POD}, tolerations=more.pop("tolerations", SERVICE), **more)

    def batch(self, name: str, node: str | None, cpu: str = "1") -> None:
        self.work(name, node, cpu, labels={}, tolerations=BATCH)

    def work(
        self, name: str, node: str | None, cpu: str, *, labels: Mapping[str, str], tolerations: list[Json], **meta: Any
    ) -> None:
        waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        container = {"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
        made = self.api.put(
            PODS,
            {
                "metadata": {"name": name, "labels": dict(labels), **meta},
                "spec": {"containers": [container], "tolerations": tolerations, **({"nodeName": node} if node else {})},
                "status": {"phase": "Running"} if node else {"phase": "Pending", "conditions": [waits]},
            },
        )
        self.evictor.run(Pod(uid=made["metadata"]["uid"], name=name))

    def bind(self, name: str, node: str) -> None:
        """The scheduler has found a node for a pod."""
        pod = self.api.documents[PODS, "default", name]
        self.api.put(PODS, {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": {"phase": "Running"}})

    def node_document(self, name: str) -> Json:
        found: Json = self.api.documents[NODES, "", name]
        return found

    def role(self, name: str, pool: str = POOL) -> Standing:
        return standing_of(self.node_document(name)["metadata"]["labels"], pool)

    def roles(self) -> dict[str, Standing]:
        return {row["metadata"]["name"]: self.role(row["metadata"]["name"]) for row in self.api.of(NODES)}

    def taints(self, name: str) -> list[tuple[str, str]]:
        """Those of the pool."""
        rows = self.node_document(name)["spec"].get("taints") or ()
        return [(row["key"].rpartition("/")[2], row["effect"]) for row in rows if row["key"] != "gpu"]

    def status(self, pool: str = POOL) -> Json:
        found: Json = self.api.documents[POOLS, "", pool].get("status", {})
        return found

    def condition(self, kind: str, pool: str = POOL) -> tuple[str, str, str]:
        (one,) = (row for row in self.status(pool)["conditions"] if row["type"] == kind)
        return one["status"], one["reason"], one["message"]

    async def begin(self) -> None:
        self.app = self.central()
        await asyncio.sleep(LEAD_S)


async def passes(count: int = 1) -> None:
    """Let so many passes go by."""
    await asyncio.sleep(PASS_S * count)


async def made(world: TideWorld, *nodes: str, **pool: Any) -> None:
    """A pool of these nodes, all of them marked."""
    world.machines(*nodes)
    world.pool(**pool)
    await world.begin()
    await passes(2)


Story = Callable[[TideWorld], Awaitable[None]]
Play = Callable[..., TideWorld]


def tide_playing(virtual: Virtual) -> Play:
    """Runs a story in a world of its own, in virtual time, with these settings of tide pools."""

    def run(story: Story, **tide: Any) -> TideWorld:
        async def whole() -> TideWorld:
            world = TideWorld(kubernetes={"tide": {**SETTINGS["kubernetes"]["tide"], **tide}})
            async with world.running():
                await story(world)
            return world

        world: TideWorld = virtual(whole())
        return world

    return run
