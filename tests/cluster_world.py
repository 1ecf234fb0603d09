"""Central in a cluster in memory and in virtual time: an API server, a bus, nodes with agents that beat and obey."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from central_rig import central_on
from fixture_types import Virtual
from present import present

from services.central.app import CentralApp
from services.central.cluster import ClusterControllers
from services.central.core.lost_nodes.lost_node import TAINT_KEY
from services.central.main import ClusterAccess, build_cluster
from services.central.settings import CentralSettings
from shared.adapters.clock import LoopClock
from shared.contracts.bus.stored import read_decision
from shared.contracts.bus.subjects import CONFIG_BUCKET, DECISIONS_STREAM, decision_filter
from shared.contracts.cluster.decision import Decision
from shared.contracts.pod import Pod, QosClass
from shared.contracts.readiness import Readiness, ServiceHealth, entry_hash, node_config_key
from shared.core.api_kind import CNCS, CNRS, EVICTION_CONFIGS, KCCS, LEASES, NODES, PODS
from shared.core.node_mode import NodeSwitch
from shared.fakes.fake_evictor import FakeEvictor
from shared.fakes.memory_bus import MemoryBus
from shared.fakes.memory_objects import MemoryObjects
from shared.ports import ActionResult, Entry, Objects
from shared.settings import check
from shared.wire import Wire

CPU = "resource.katalyst.kubewharf.io/reclaimed_millicpu"
OLD_CPU = "katalyst.kubewharf.io/reclaimed_millicpu"
RULES = {"taint_s": 100, "evict_s": 200}
AGENT = {"app.kubernetes.io/name": "sublet", "app.kubernetes.io/component": "node"}


class Kubelet(FakeEvictor):
    """Evictions with their effect on the pods at the API server; `killed` has their names."""

    def __init__(self, clock: LoopClock, api: MemoryObjects) -> None:
        super().__init__(clock)
        self.api, self.most_at_once = api, 0
        self.killed: list[str] = []

    async def evict(self, pod: Pod, **more: Any) -> ActionResult:
        before = len(self.kills)
        result = await super().evict(pod, **more)
        if len(self.kills) > before:
            self.killed.append(pod.name)
            document = self.api.documents[PODS, "default", pod.name]
            if self.lives_on_s:
                self.api.put(PODS, {**document, "metadata": {"name": pod.name, "deletionTimestamp": "2026-01-01"}})
                going = [d for d in self.api.of(PODS) if d["metadata"].get("deletionTimestamp")]
                self.most_at_once = max(self.most_at_once, len(going))
                asyncio.get_running_loop().call_later(self.lives_on_s, self.api.drop, PODS, pod.name)
            else:
                self.api.drop(PODS, pod.name)
        return result


async def nothing() -> None:
    """Nothing to close."""


@dataclass
class Central:
    """One central and what it was built of."""

    app: CentralApp
    cluster: ClusterControllers
    bus: MemoryBus
    task: asyncio.Task[None]

    def state(self) -> Mapping[str, Any]:
        return self.app.state()

    def health(self) -> ServiceHealth:
        return self.app.health()

    async def close(self) -> None:
        await self.app.close()


class World:
    """One API server and one bus; centrals and nodes come as the story wants."""

    def __init__(self, **central: Any) -> None:
        self.clock = LoopClock()
        self.api, self.bus = MemoryObjects(self.clock), MemoryBus()
        self.evictor = Kubelet(self.clock, self.api)
        self.raw = {"central": central}
        self.settings = check(CentralSettings, central, where="central")
        self.silent: set[str] = set()
        self.refusing: set[str] = set()
        self.observing: set[str] = set()
        self.ahead: dict[str, timedelta] = {}
        """By node, how far its clock is ahead."""
        self.switch = NodeSwitch()
        self.wires: dict[str, Wire] = {}
        self.nodes: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.centrals: list[Central] = []
        self._app: Central | None = None

    def central(self, api: Objects | None = None) -> Central:
        bus = MemoryBus(self.bus.broker)
        wire = Wire(bus, self.clock, node="hub", service="central")
        identity = f"central-{len(self.centrals)}"
        access = ClusterAccess(api or self.api, wire, self.evictor, identity, nothing)
        cluster = build_cluster(access, self.clock, self.settings.kubernetes, self.switch)
        app = central_on(wire, self.clock, self.raw, cluster=cluster)
        one = Central(app, cluster, bus, self.start(app.run()))
        self.centrals.append(one)
        return one

    @property
    def app(self) -> Central:
        """The central of a story that has one from the start."""
        assert self._app is not None
        return self._app

    @app.setter
    def app(self, one: Central) -> None:
        self._app = one

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    def node(self, *names: str, beats: bool = True, **labels: str) -> None:
        for name in names:
            allocatable = {"cpu": "48", CPU: "10k", OLD_CPU: "10k"}
            self.api.put(
                NODES,
                {
                    "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
                    "status": {
                        "conditions": [{"type": "Ready", "status": "True"}],
                        "allocatable": allocatable,
                        "capacity": dict(allocatable),
                    },
                },
            )
            self.agent(name, ready=True)
            self.nodes.append(name)
            if beats:
                self.start(self._beat(name))
            self.start(self._renew(name))

    def agent(self, node: str, *, ready: bool) -> None:
        self.api.put(
            PODS,
            {
                "metadata": {"name": f"agent-{node}", "namespace": "sublet-system", "labels": AGENT},
                "spec": {"nodeName": node},
                "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
            },
        )

    def kill_agent(self, node: str) -> None:
        """The agent dies: no heartbeat, and its pod is not ready."""
        self.silent.add(node)
        self.agent(node, ready=False)

    def pod(self, node: str, name: str, qos: QosClass = "reclaimed_cores") -> None:
        made = self.api.put(
            PODS,
            {
                "metadata": {"name": name, "annotations": {"katalyst.kubewharf.io/qos_level": qos}},
                "spec": {"nodeName": node, "containers": [{"name": "c"}]},
                "status": {"phase": "Running", "qosClass": "BestEffort"},
            },
        )
        self.evictor.run(Pod(uid=made["metadata"]["uid"], name=name, qos=qos))

    async def _beat(self, name: str) -> None:
        wire = self.wires[name] = Wire(MemoryBus(self.bus.broker), self.clock, node=name, service="reporter")
        entries: dict[str, str] = {}
        changed = asyncio.Event()

        def take(entry: Entry) -> None:
            if entry.key == node_config_key(name) and name not in self.refusing:
                entries[name] = entry_hash(entry.value)
                changed.set()

        await wire.bus.watch(CONFIG_BUCKET, take)
        while True:
            if name not in self.silent:
                health = ServiceHealth(service="evictor", ok=True, config_hash=entries.get(name))
                mode = "observe" if name in self.observing else "enforce"
                await wire.publish(wire.stamp(Readiness, ready=True, mode=mode, services=(health,)))
            changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), 10)

    async def _renew(self, name: str) -> None:
        while True:
            if self.api.online:
                spec = {"renewTime": (self.clock.wall() + self.ahead.get(name, timedelta())).isoformat()}
                self.api.put(LEASES, {"metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": spec})
            await self.clock.sleep(10)

    def kcc(self, resource: str = "evictionconfigurations", name: str = "eviction-configuration", **spec: Any) -> None:
        target = {"group": "config.katalyst.kubewharf.io", "resource": resource, "version": "v1alpha1"}
        self.api.put(KCCS, {"metadata": {"name": name}, "spec": {"targetType": target, **spec}})

    def threshold(self, ratio: float, name: str = "default", **spec: Any) -> None:
        """The tutorial's EvictionConfiguration."""
        config = {"reclaimedResourcesEvictionPluginConfig": {"evictionThreshold": {OLD_CPU: ratio}}}
        old = self.api.documents.get((EVICTION_CONFIGS, "default", name), {})
        document = {"metadata": {"name": name}, "spec": {"config": {"evictionPluginsConfig": config}, **spec}}
        self.api.put(EVICTION_CONFIGS, {**document, **({"status": old["status"]} if "status" in old else {})})

    async def settings_of(self, node: str) -> float | None:
        """The threshold that a node's entry carries; None: it has none."""
        entry = await self.bus.get(CONFIG_BUCKET, node_config_key(node))
        plugins = json.loads(present(entry.value)).get("evictor", {}).get("plugins", {}) if entry else {}
        threshold: float | None = plugins.get("reclaimed_overcommit", {}).get("eviction_threshold", {}).get(CPU)
        return threshold

    def ec(self, name: str = "default") -> dict[str, Any]:
        status: dict[str, Any] = self.api.documents[EVICTION_CONFIGS, "default", name]["status"]
        return status

    def valid(self, name: str = "default") -> tuple[str, str, str]:
        (condition,) = self.ec(name)["conditions"]
        return condition["status"], condition["reason"], condition["message"]

    def cnc(self, node: str) -> list[dict[str, Any]]:
        status = self.api.documents[CNCS, "", node].get("status", {})
        entries: list[dict[str, Any]] = status.get("katalystCustomConfigList", [])
        return entries

    async def decided(self, area: str) -> list[Decision]:
        """What was said of an area, oldest first."""
        await self.clock.sleep(1)  # in virtual time: the log stores behind who says it
        stored = await self.bus.replay(DECISIONS_STREAM, decision_filter())
        read = [read_decision(one.subject, one.data) for one in stored]
        return [one for one in read if isinstance(one, Decision) and one.area == area]

    def tainted(self, node: str) -> bool:
        taints = self.api.documents[CNRS, "", node].get("spec", {}).get("taints", [])
        return any(taint["key"] == TAINT_KEY for taint in taints)

    def offered(self, node: str) -> str:
        return str(self.api.documents[NODES, "", node]["status"]["allocatable"][CPU])

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["World"]:
        try:
            yield self
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for task in self._tasks:
                if not task.cancelled() and (error := task.exception()) is not None:
                    raise error


Story = Callable[[World], Awaitable[None]]


class Playing(Protocol):
    """Runs a story in a world of its own, in virtual time, with these settings of central."""

    def __call__(self, story: Story, **central: Any) -> World: ...


class TenNodes(Protocol):
    """Runs a story of ten nodes, or so many, in virtual time."""

    def __call__(self, story: Story, nodes: int = 10, rules: Mapping[str, int] = RULES) -> World: ...


def ten_nodes(virtual: Virtual, story: Story, nodes: int = 10, rules: Mapping[str, int] = RULES) -> World:
    """Tell a story of ten nodes with a reclaimed and a shared pod each; it begins when all of them have been heard."""

    async def whole() -> World:
        world = World(rules=rules)
        async with world.running():
            names = [f"n{i}" for i in range(nodes)]
            world.node(*names)
            for name in names:
                world.pod(name, f"batch-{name}")
                world.pod(name, f"tenant-{name}", "shared_cores")
            world.app = world.central()
            await world.clock.sleep(60)
            await story(world)
        return world

    world: World = virtual(whole())
    return world


def playing(virtual: Virtual) -> Playing:
    """Runs a story in a world of its own, in virtual time."""

    def run(story: Story, **central: Any) -> World:
        async def whole() -> World:
            world = World(**central)
            async with world.running():
                await story(world)
            return world

        played: World = virtual(whole())
        return played

    return run
