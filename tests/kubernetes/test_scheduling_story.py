"""The stock kube-scheduler asks the extender about nodes of a real API server.

Hot and tainted ones are left alone, room that falls is not sold twice, and while the extender is away pods are placed
by what Nodes say.
"""

import asyncio
import base64
import json
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from bus_rights_rig import free_port
from kube_rig.cluster import Cluster
from paper_node import PaperNode, make_namespace, real_s, remove_namespace
from slow_machines import patience_s

from services.central.adapters.https.serving_secret import SECRETS
from services.central.extender import Extender
from services.central.settings import ExtenderSettings
from shared.adapters.clock import SystemClock
from shared.adapters.kube.client import Kube
from shared.adapters.kube.objects import KubeObjects
from shared.contracts.bus.subjects import state_subject
from shared.contracts.cluster.decision import Decided
from shared.contracts.cluster.offer import NodeOffer, ResourceAmounts
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.core.api_kind import CNRS, PODS
from shared.fakes.memory_bus import MemoryBus

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(240)]

NAMESPACE, LABEL, HAND, PROFILE = "scheduling-story", "scheduling-story", "test", "sublet-spread"
NAMES = ("story-a", "story-b", "story-c")
CPU_MILLIS, SHOWN_MILLIS, POD_MILLIS = 200_000, 100_000, 25
BURST, FIRST_MILLIS, LAST_MILLIS, FALL_MILLIS = 1000, 7000, 3000, 250
FALL_S, LAG_S, PATIENCE_S = 0.3, 0.3, 60.0
DRAWN = 20
"""Pods to be placed: the scheduler draws lots between nodes of the same score, and of so many each node gets some."""
ROOM = 1 << 40
AT_ONCE = 16
Document = dict[str, Any]


def pod(name: str, requests: Document) -> Document:
    container = {"name": "main", "image": "none", "resources": {"requests": requests, "limits": requests}}
    tolerations = [{"key": LABEL, "operator": "Exists"}]
    spec = {"schedulerName": PROFILE, "nodeSelector": {LABEL: "yes"}, "tolerations": tolerations,
            "containers": [container], "terminationGracePeriodSeconds": 0}  # fmt: skip
    return {"metadata": {"name": name}, "spec": spec}


def batch(name: str) -> Document:
    return pod(name, {RECLAIMED_CPU: str(POD_MILLIS), RECLAIMED_MEMORY: "1Mi"})


class Said:
    """A `DecisionLog` that keeps the last of each pod, and when it was said."""

    def __init__(self) -> None:
        self.of: dict[str, Decided] = {}
        self.at_s: dict[str, float] = {}

    def say(self, decided: Decided) -> None:
        self.of[decided.about.name] = decided
        self.at_s[decided.about.name] = time.monotonic()


@dataclass(frozen=True, slots=True)
class Offered:
    """What a node said at a moment."""

    at_s: float
    millis: int


class Scene:
    """Three nodes on paper, the extender over them, and who was placed where when."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kube, self.clock, self.bus, self.said = Kube(kubeconfig), SystemClock(), MemoryBus(), Said()
        objects = KubeObjects(self.kube, self.clock, manager="sublet-extender")
        self.settings = ExtenderSettings(host="127.0.0.1", port=free_port(), namespace=NAMESPACE, wake_s=2)
        self.objects, self.extender = objects, Extender(objects, self.clock, self.settings, self.said)
        amounts = {"cpu": str(CPU_MILLIS // 1000), "memory": "64Gi", "pods": "2000",
                   RECLAIMED_CPU: str(SHOWN_MILLIS), RECLAIMED_MEMORY: "1Ti"}  # fmt: skip
        self.nodes = [PaperNode(self.kube, name, LABEL, amounts) for name in NAMES]
        self.offers: dict[str, list[Offered]] = {name: [] for name in NAMES}
        self.bound: dict[str, tuple[float, str]] = {}
        self.above: list[str] = []
        self._sums = Counter[str]()
        self._seq = 0
        self._tasks: list[asyncio.Task[Any]] = []
        self._answers: asyncio.Task[int] | None = None

    async def begin(self) -> None:
        await make_namespace(self.kube, NAMESPACE)
        for node in self.nodes:
            await node.register()
            self._tasks.append(asyncio.create_task(node.breathe()))
        process = self.extender.process("story", self._bus, {})
        self._answers = asyncio.create_task(process.run(asyncio.Event()))
        mirror = self.objects.mirror_each(PODS, _placed, self._see)
        self._tasks.append(asyncio.create_task(mirror.run()))
        await holds(lambda: process.health().ok)
        for name in NAMES:
            await self.offer(name, SHOWN_MILLIS)

    async def end(self) -> None:
        await self.leave()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await remove_namespace(self.kube, NAMESPACE)
        for node in self.nodes:
            await node.remove()
        await self.kube.close()

    async def leave(self) -> None:
        """The extender is gone, without a word."""
        if self._answers is not None:
            self._answers.cancel()
            await asyncio.gather(self._answers, return_exceptions=True)

    async def offer(self, name: str, millis: int, used_millis: int = 500) -> None:
        """A node says what it offers and uses; what stands on its Node is another matter."""
        self._seq += 1
        said = NodeOffer(
            node=name, boot_id="0" * 16, seq=self._seq, sent_at=datetime.now(UTC), usage_age_s=0.0,
            reclaimed=ResourceAmounts(cpu_millis=millis, memory_bytes=ROOM),
            used=ResourceAmounts(cpu_millis=used_millis, memory_bytes=1 << 30),
        )  # fmt: skip
        # More may be sold from the moment it is said, and less once it is heard.
        rises = not self.offers[name] or millis > self.offers[name][-1].millis
        if rises:
            self.offers[name].append(Offered(time.monotonic(), millis))
        await self.bus.publish(state_subject(NodeOffer, name), said.encode())
        await holds(lambda: self.told(name) == millis)
        if not rises:
            self.offers[name].append(Offered(time.monotonic(), millis))

    def told(self, name: str) -> int | None:
        known = self.extender.view.heard.get(name)
        return None if known is None or known.offered is None else known.offered[RECLAIMED_CPU]

    async def make(self, *pods: Document) -> None:
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        # Who waits for a connection of the client is given up after five seconds, which a crowded machine needs.
        connections = asyncio.Semaphore(AT_ONCE)

        async def create(one: Document) -> None:
            async with connections:
                await self.kube.create(path, one, manager=HAND)

        await asyncio.gather(*map(create, pods))

    async def placed(self, *names: str) -> Counter[str]:
        """Where pods of these beginnings are, once all of them are somewhere."""
        await holds(lambda: all(name in self.bound for name in names))
        return Counter(self.bound[name][1] for name in names)

    def _see(self, _uid: str, found: tuple[str, str, int] | None) -> None:
        if found is None or found[0] in self.bound:
            return
        name, node, millis = found
        now_s = time.monotonic()
        self.bound[name] = now_s, node
        if not millis:
            return
        self._sums[node] += millis
        # How long a binding takes is the scheduler's and the API server's own: what was offered at the answer counts.
        since_s = self.said.at_s.get(name, now_s) - LAG_S
        before = [one.millis for one in self.offers[node] if one.at_s <= since_s][-1:]
        most = max(before + [one.millis for one in self.offers[node] if one.at_s > since_s])
        if self._sums[node] > most:
            answered = (
                f"answered {now_s - since_s - LAG_S:.2f} s before" if name in self.said.at_s else "never answered"
            )
            self.above.append(f"{node}: {self._sums[node]} of {most}, with {name}, {answered}")

    async def _bus(self) -> MemoryBus:
        return self.bus


def _placed(document: Mapping[str, Any]) -> tuple[str, str, int] | None:
    meta, spec = document["metadata"], document["spec"]
    if meta["namespace"] != NAMESPACE or not spec.get("nodeName"):
        return None
    requests = spec["containers"][0]["resources"].get("requests", {})
    return meta["name"], spec["nodeName"], POD_MILLIS if RECLAIMED_CPU in requests else 0


async def holds(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(patience_s(PATIENCE_S)):
        while not condition():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def scheduling(cluster: Cluster, scene: Scene, folder: Path) -> AsyncIterator[None]:
    """The stock scheduler with one profile, which asks the extender as the chart's does."""
    secret = await scene.objects.get(SECRETS, scene.settings.secret, NAMESPACE)
    assert secret is not None
    config = folder / "scheduler.json"
    for name in ("ca.crt", "tls.crt", "tls.key"):
        (folder / name).write_bytes(base64.b64decode(secret["data"][name]))
    shown = {"caFile": str(folder / "ca.crt"), "certFile": str(folder / "tls.crt"), "keyFile": str(folder / "tls.key")}
    extender = {
        "urlPrefix": f"https://127.0.0.1:{scene.settings.port}/v1", "filterVerb": "filter",
        "prioritizeVerb": "prioritize", "preemptVerb": "preempt", "weight": 5, "enableHTTPS": True,
        "tlsConfig": {**shown, "serverName": scene.settings.names[0]},
        # An extender that a crowded machine keeps waiting is not one that is away: that is tried by itself.
        "httpTimeout": "30s", "nodeCacheCapable": True, "ignorable": True,
    }  # fmt: skip
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
                "clientConnection": {"kubeconfig": str(cluster.admin), "qps": 500, "burst": 500},
                "leaderElection": {"leaderElect": False}, "extenders": [extender],
                "podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 2,
                "profiles": [{"schedulerName": PROFILE}],
            }
        )
    )  # fmt: skip
    words: list[str | Path] = [cluster.programs["kube-scheduler"], f"--config={config}", f"--secure-port={free_port()}",
             "--bind-address=127.0.0.1", f"--authentication-kubeconfig={cluster.admin}",
             f"--authorization-kubeconfig={cluster.admin}"]  # fmt: skip
    with (folder / "scheduler.log").open("wb") as log:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 20)


async def test_a_scheduler_places_by_what_nodes_offer_and_use_now(kinds: Cluster, tmp_path: Path) -> None:
    scene = Scene(kinds.admin)
    try:
        await scene.begin()
        async with scheduling(kinds, scene, tmp_path):
            await hot_nodes_are_avoided(scene)
            await a_taint_of_a_cnr_is_respected(scene)
            await room_that_falls_is_not_sold_twice(scene)
            await without_the_extender_nodes_speak_for_themselves(scene)
    finally:
        await scene.end()


async def hot_nodes_are_avoided(scene: Scene) -> None:
    await scene.offer("story-a", SHOWN_MILLIS, used_millis=180_000)
    services = [f"service-{number}" for number in range(DRAWN)]
    await scene.make(*(pod(name, {"cpu": "100m", "memory": "16Mi"}) for name in services))
    where = await scene.placed(*services)
    assert set(where) == {"story-b", "story-c"}, where
    said = scene.said.of["service-0"]
    assert any(one.rule == "load" and one.numbers["node"] == "story-a" for one in said.why)
    await scene.offer("story-a", SHOWN_MILLIS)


async def a_taint_of_a_cnr_is_respected(scene: Scene) -> None:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoScheduleForReclaimedTasks"}
    await scene.objects.create(CNRS, {"metadata": {"name": "story-b"}, "spec": {"taints": [taint]}})
    try:
        await holds(lambda: scene.extender.view.state("story-b", time.monotonic()).taints)
        jobs = [f"job-{number}" for number in range(DRAWN)]
        await scene.make(*map(batch, jobs))
        assert set(await scene.placed(*jobs)) == {"story-a", "story-c"}
    finally:
        await scene.kube.delete(CNRS.path("story-b"))
    await holds(lambda: not scene.extender.view.state("story-b", time.monotonic()).taints)


async def room_that_falls_is_not_sold_twice(scene: Scene) -> None:
    """Every Node shows room for all of the pods; what the nodes say falls while they are placed."""
    for name in NAMES:
        await scene.offer(name, FIRST_MILLIS)
    burst = [f"burst-{number}" for number in range(BURST)]

    async def fall() -> None:
        for millis in range(FIRST_MILLIS, LAST_MILLIS - 1, -FALL_MILLIS):
            await real_s(FALL_S)
            for name in NAMES:
                await scene.offer(name, millis)

    falling = asyncio.create_task(fall())
    await scene.make(*map(batch, burst))
    await falling
    there = Counter(node for name, (_, node) in scene.bound.items() if name.startswith(("burst", "job")))
    assert scene.above == []
    waiting = [name for name in burst if name not in scene.bound]
    assert waiting, there
    assert sum(there.values()) * POD_MILLIS >= 0.9 * len(NAMES) * LAST_MILLIS, there
    # As the reporter writes it: the message first, and the Node's amounts, which wake the scheduler.
    await scene.offer("story-c", SHOWN_MILLIS)
    shown = {
        "status": {
            "allocatable": {RECLAIMED_CPU: str(SHOWN_MILLIS + 1)},
            "capacity": {RECLAIMED_CPU: str(SHOWN_MILLIS + 1)},
        }
    }
    await scene.kube.merge("/api/v1/nodes/story-c/status", shown, manager=HAND)
    assert set(await scene.placed(*waiting)) == {"story-c"}
    assert scene.above == []


async def without_the_extender_nodes_speak_for_themselves(scene: Scene) -> None:
    await scene.leave()
    await scene.make(batch("orphan"), pod("service-late", {"cpu": "100m"}))
    await scene.placed("orphan", "service-late")
