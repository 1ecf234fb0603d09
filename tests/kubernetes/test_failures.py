"""Parts of the cluster and of Sublet die, and nobody is evicted for it; an agent that stays away costs reclaimed pods
alone. All on a real kubelet, killed with SIGKILL.
"""

import asyncio
import base64
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from kube_rig.cluster import Cluster, CommandError, ready
from kube_rig.component import Component
from kube_rig.installation import NAMESPACE
from kube_rig.product import Product
from rig_parts import until
from slow_machines import patience_s

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY
from shared.contracts.readiness import Readiness, ServiceHealth
from shared.wire import Wire

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(420)]

NOTICE_LIMIT_S, BACK_LIMIT_S, WITHDRAWN_LIMIT_S = 60.0, 120.0, 45.0
LATE_S, TAINT_S, EVICT_S, BEAT_S = 18.0, 22.0, 27.0, 3.0
SHORTENED = {
    "bus": {"tls": False},  # the peer knows the hub by its address, for which no certificate is made
    "settings": {
        "central": {
            "rules": {"late_s": LATE_S, "taint_s": TAINT_S, "evict_s": EVICT_S, "actions_per_s": 1, "pods_per_min": 60}
        },
        "reporter": {"rise_window_s": 5, "refresh_s": 5},
    },
}
PEER = "peer"
STAYING, BATCH = "service", ("batch-1", "batch-2")
LOST = {"key": "node.kubernetes.io/unschedulable", "effect": "NoScheduleForReclaimedTasks"}
"""As the tutorial prints it."""

Document = dict[str, Any]


def pod(name: str, base: str, level: str, resources: Document) -> Document:
    """A pod at rest."""
    container = {"name": "main", "image": base, "imagePullPolicy": "Never", "command": ["sleep", "infinity"],
                 "resources": {"requests": resources, "limits": resources}}  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"katalyst.kubewharf.io/qos_level": level}},
        "spec": {
            "schedulerName": "katalyst-scheduler",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }


@pytest.fixture(scope="module")
def sublet(cluster: Cluster, product: str) -> Iterator[Product]:
    """Installed, with a service and two batch pods, and a second node: without a peer none is judged."""
    installed = Product(cluster)
    cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": PEER}})
    installed.install(SHORTENED)
    base = cluster.images.base.name
    batch = {RECLAIMED_CPU: "100", RECLAIMED_MEMORY: "256Mi"}
    service = pod(STAYING, base, "shared_cores", {"cpu": "100m", "memory": "64Mi"})
    installed.start(service, *(pod(name, base, "reclaimed_cores", batch) for name in BATCH))
    with Peer(installed):
        yield installed
    cluster.kubectl("delete", "node", PEER)
    installed.end(*installed.pods())
    installed.uninstall()
    installed.leave()


@dataclass(frozen=True)
class Part:
    """Something that can die: how, how one sees that Sublet has noticed, and what brings it back."""

    kill: Callable[[Product], object]
    noticed: Callable[[Product], object]
    back: Callable[[Product], object] = lambda _: None


def component(name: str) -> Callable[[Product], Component]:
    """A program of the cluster."""
    return lambda sublet: getattr(sublet.cluster.control_plane, name, None) or getattr(sublet.cluster.node, name)


class Peer(threading.Thread):
    """The heartbeat of the second node, as its agent would send it."""

    def __init__(self, sublet: Product) -> None:
        super().__init__(name=PEER, daemon=True)
        secret = sublet.cluster.get("secret", "sublet-bus", "--namespace", NAMESPACE)["data"]["central"]
        (hub,) = sublet.pods_of("bus")
        self._url = f"nats://central:{base64.b64decode(secret).decode()}@{hub['status']['podIP']}:4222"
        self._ended = threading.Event()

    def __enter__(self) -> "Peer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join()

    def run(self) -> None:
        """Beat until the end."""
        asyncio.run(self._beat())

    async def _beat(self) -> None:
        clock = SystemClock()
        bus = await connect(self._url, name=PEER, connect_timeout_s=BEAT_S, clock=clock)
        wire = Wire(bus, clock, node=PEER, service="reporter")
        while not self._ended.is_set():
            health = ServiceHealth(service="reporter", ok=True, input_age_s=0.0)
            await wire.publish(wire.stamp(Readiness, ready=True, services=(health,)))
            await asyncio.to_thread(self._ended.wait, BEAT_S)
        await bus.drain()


def agent_is_troubled(sublet: Product) -> bool:
    """Whether the agent says of itself that something is missing; asked from outside, as a probe asks."""
    try:
        with urllib.request.urlopen(f"http://{sublet.agent_address}:8080/readyz", timeout=patience_s(5)) as answer:
            return not json.loads(answer.read())["ready"]
    except urllib.error.HTTPError:
        return True


def of_cluster(name: str, noticed: Callable[[Product], object]) -> Part:
    """A program of the cluster that a test starts again."""
    part = component(name)
    return Part(lambda sublet: part(sublet).kill(), noticed, lambda sublet: part(sublet).start())


def of_product(workload: str, container: str) -> Part:
    """A container that kubelet starts again."""
    return Part(lambda sublet: sublet.kill(workload, container), lambda sublet: _restarts(sublet, workload, container))


def _restarts(sublet: Product, workload: str, container: str) -> int:
    return sum(
        status["restartCount"]
        for one in sublet.pods_of(workload)
        for key in ("initContainerStatuses", "containerStatuses")
        for status in one["status"].get(key, [])
        if status["name"] == container
    )


PARTS = {
    "API server": of_cluster("apiserver", agent_is_troubled),
    "kubelet": of_cluster("kubelet", lambda _: True),
    "NATS hub": of_product("bus", "bus"),
    "NATS leaf": of_product("node", "bus"),
    "agent": of_product("node", "agent"),
    "central": of_product("central", "central"),
    "events": of_product("events", "bridge"),
}


def standing(sublet: Product) -> dict[str, tuple[str, int]]:
    """The pods of the users: UID and restarts of each."""
    found = sublet.cluster.get("pods")["items"]
    return {
        one["metadata"]["name"]: (one["metadata"]["uid"], one["status"]["containerStatuses"][0]["restartCount"])
        for one in found
    }


def well(sublet: Product) -> bool:
    """Everything is ready, and the node has heard of it."""
    try:
        conditions = sublet.resource().get("status", {}).get("conditions", [])
        true = {one["type"] for one in conditions if one["status"] == "True"}
        return ready(sublet.cluster) and {"AgentReady", "ServicesReady"} < true and bool(sublet.offer_millis())
    except CommandError:
        return False


@pytest.mark.parametrize("name", PARTS)
def test_whatever_dies_nobody_is_evicted_for_it_and_all_recovers(sublet: Product, name: str) -> None:
    before, part = standing(sublet), PARTS[name]
    part.kill(sublet)
    until(lambda: part.noticed(sublet), NOTICE_LIMIT_S, f"a killed {name}")
    part.back(sublet)
    until(lambda: well(sublet), BACK_LIMIT_S, f"recovery from a killed {name}")
    sublet.wait_ready()
    assert standing(sublet) == before
    assert sublet.evict_lines() == []
    assert sublet.resource()["spec"].get("taints", []) == []


def test_an_agent_that_stays_away_costs_its_node_the_offer_then_reclaimed_pods_and_nobody_else(sublet: Product) -> None:
    before = sublet.pods()
    sublet.in_system("set", "image", "daemonset/sublet-node", "agent=sublet:of-another-time")
    until(lambda: sublet.sold_millis() == 0, WITHDRAWN_LIMIT_S, "an offer that is taken back")
    assert sublet.pods() == before
    until(lambda: lost_taints(sublet), TAINT_S + NOTICE_LIMIT_S, "the taint of a node without an agent")
    assert sublet.pods() == before
    until(lambda: not sublet.pods().keys() & set(BATCH), EVICT_S + NOTICE_LIMIT_S, "the end of its reclaimed pods")
    assert sublet.pods() == {STAYING: before[STAYING]}
    until(lambda: all(told_of(sublet, name) for name in BATCH), NOTICE_LIMIT_S, "the bridge's Events of both")
    assert not told_of(sublet, STAYING)


def test_an_agent_that_comes_back_offers_again_and_its_taint_goes(sublet: Product) -> None:
    sublet.in_system("set", "image", "daemonset/sublet-node", "agent=sublet:test")
    until(lambda: well(sublet) and not lost_taints(sublet), BACK_LIMIT_S, "a node that is well again")
    until(lambda: sublet.sold_millis() > 0, BACK_LIMIT_S, "an offer to the scheduler")
    assert sublet.pods().keys() == {STAYING}


def told_of(sublet: Product, pod: str) -> bool:
    """Whether an Event says that a pod was evicted; the bridge writes it after the eviction."""
    return any(f"pod/{pod} " in line for line in sublet.evict_lines())


def lost_taints(sublet: Product) -> list[Document]:
    """Those of the CustomNodeResource that say that nobody looks after the node."""
    found = sublet.resource().get("spec", {}).get("taints", [])
    return [one for one in found if LOST.items() <= one.items()]
