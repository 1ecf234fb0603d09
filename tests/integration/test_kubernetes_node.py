"""The five node services in one process on a node of a cluster: a generated host with kubelet's groups, an API server
over real HTTP, a real NATS server.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fixture_types import Until
from kube_api import Api, pod_path, serving
from present import present

from services.metrics.main import PLAN as METRICS
from shared.adapters.clock import SystemClock
from shared.adapters.kube.node import CNRS
from shared.adapters.nats.bus import connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.app import Context, Runner
from shared.contracts.allocation import Allocation
from shared.contracts.kube.taint import TAINT_PREFIX
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, TUTORIAL_RECLAIMED_CPU, Pod
from shared.contracts.sample import NodeSample
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.pods.kube_pod import pod_of
from shared.errors import Unavailable
from shared.fakes.memory_bus import MemoryBus
from shared.settings import common_settings
from shared.wire import Newest, Wire
from sublet.load.demand import SimDemand
from sublet.node import PLANS
from sublet.sim.kernel import Kernel
from sublet.sim.machine import SimMachine

NODE, NODE_PATH, CNR = "n1", "/api/v1/nodes/n1", f"{CNRS}/n1"
CLASS = "katalyst.kubewharf.io/qos_level"
MIB, GIB = 1 << 20, 1 << 30
BUSY = SimDemand(threads=2, memory_bytes=GIB)
RAW = {
    "metrics": {"period_s": 0.2, "probe_s": 0.05},
    "qrm": {"keeper": False, "poll_s": 0.05},
    "reporter": {"tick_s": 0.05},
    "evictor": {"cooling_s": 0.1, "confirm_samples": 2},
}


class ClusterNode:
    """Machine, kubelet and API server: what a pod is there is a document here and groups with tasks below the root."""

    def __init__(self, root: Path, layout: KubeletLayout, version: int) -> None:
        machine = SimMachine(sockets=2, cores_per_numa=4, threads=2, memory=48 * GIB, cgroup_version=version)
        self.api, self.layout, self.kernel = Api(), layout, Kernel(root, machine)
        for home in layout.homes:
            self.kernel.groups.make(home)
        self.api.put(NODE_PATH, {"spec": {}, "status": {"allocatable": {"cpu": "16"}}})

    def run_pod(self, name: str, qos: str, kube: str, demand: SimDemand, **requests: str) -> None:
        """The API server knows of it, and kubelet has started it."""
        uid = name.encode().hex()
        container = f"containerd://{uid.ljust(64, '0')[:64]}"
        resources = {"requests": requests, "limits": requests}
        document = self.api.run_pod(
            name, uid, node=NODE, metadata={"annotations": {CLASS: qos}},
            spec={"containers": [{"name": "main", "resources": resources}], "nodeName": NODE},
            status={"qosClass": kube, "containerStatuses": [{"name": "main", "containerID": container}]},
        )  # fmt: skip
        pod = pod_of(document)
        assert pod is not None
        self.kernel.start(self._container(pod), demand)

    def grow(self, name: str, *, left_bytes: int) -> None:
        """A pod takes all memory of the machine but this."""
        pod = pod_of(self.api.objects[pod_path(name)])
        assert pod is not None
        free = self.kernel.machine.memory_bytes - self.kernel.figures.used_bytes
        self.kernel.add(self._container(pod), SimDemand(memory_bytes=free - left_bytes))

    def runs(self, name: str) -> bool:
        """Whether the kernel has let the pod's container live."""
        pod = pod_of(self.api.objects[pod_path(name)])
        assert pod is not None
        return self.kernel.runs(self._container(pod))

    def _container(self, pod: Pod) -> str:
        group = self.layout.container_group(pod, pod.containers[0])
        assert group is not None
        return group

    def limits(self, name: str) -> tuple[int | None, int | None]:
        """The memory limits of a pod's group and of its container's; None: there is none."""
        pod = pod_of(self.api.objects[pod_path(name)])
        assert pod is not None
        read = self.kernel.groups.memory_limit_bytes
        return read(self.layout.pod_group(pod)), read(self._container(pod))

    def cpus(self, name: str) -> str:
        """The CPUs of a pod's group."""
        pod = pod_of(self.api.objects[pod_path(name)])
        assert pod is not None
        return str(self.kernel.groups.cpus(self.layout.pod_group(pod)))

    @property
    def allocatable(self) -> dict[str, str]:
        amounts: dict[str, str] = self.api.objects[NODE_PATH]["status"]["allocatable"]
        return amounts

    @property
    def taints(self) -> list[str]:
        return [taint["key"] for taint in self.api.objects[NODE_PATH]["spec"].get("taints", ())]

    @property
    def told_taints(self) -> list[str]:
        """As the CNR says them."""
        return [taint["key"] for taint in self.api.objects[CNR].get("spec", {}).get("taints", ())]

    async def live(self) -> None:
        """Let the machine's time pass; kubelet ends what is to end."""
        clock = SystemClock()
        while True:
            self.kernel.step(clock.monotonic())
            for path, one in list(self.api.objects.items()):
                if one["metadata"].get("deletionTimestamp"):
                    pod = pod_of(one)
                    assert pod is not None
                    self.kernel.stop(self.layout.pod_group(pod))
                    self.api.remove(path)
            await clock.sleep(0.05)


class Heard:
    """The node, its services at work, and what they said last."""

    def __init__(
        self, node: ClusterNode, samples: Newest[NodeSample], allocations: Newest[Allocation], runner: Runner
    ) -> None:
        self.node, self._samples, self._allocations, self.runner = node, samples, allocations, runner

    @property
    def sample(self) -> NodeSample | None:
        return self._samples.value

    @property
    def allocation(self) -> Allocation | None:
        return self._allocations.value

    def used(self, pool: str) -> float:
        """Cores that a pool uses; negative where nothing is known."""
        reading = self.sample.pool(pool) if self.sample else None
        return -1.0 if reading is None or reading.cpu_usage_cores is None else reading.cpu_usage_cores


@pytest.fixture(params=[("systemd", 2), ("cgroupfs", 1)], ids=["systemd, v2", "cgroupfs, v1"])
async def heard(request: pytest.FixtureRequest, nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Heard]:
    driver, version = request.param
    node, clock, stop = ClusterNode(tmp_path / "host", KubeletLayout(driver), version), SystemClock(), asyncio.Event()
    node.run_pod("web", "shared_cores", "Burstable", BUSY, cpu="2", memory="2Gi")
    node.run_pod("encode", "reclaimed_cores", "BestEffort", SimDemand(1, GIB), **{TUTORIAL_RECLAIMED_CPU: "2k"})
    node.api.run_pod("elsewhere", "ab", node="n2")
    async with serving(node.api, tmp_path) as kubeconfig:
        common = common_settings({
            "node": NODE, "substrate": "kubernetes", "kubeconfig": kubeconfig, "host_root": tmp_path / "host",
            "state_dir": tmp_path / "state", "heartbeat_s": 0.2,
        })  # fmt: skip
        bus = await connect(nats_server.url, name="node", connect_timeout_s=10, clock=clock)
        others = await connect(nats_server.url, name="others", connect_timeout_s=10, clock=clock)
        wire = Wire(others, clock, node=NODE, service="test")
        runner = Runner(PLANS, bus, clock, common, RAW)
        tasks = [asyncio.create_task(node.live()), asyncio.create_task(runner.run(stop))]
        try:
            yield Heard(node, await wire.newest(NodeSample), await wire.newest(Allocation), runner)
        finally:
            stop.set()
            assert await tasks[1] == 0
            tasks[0].cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await tasks[0]
            await wire.stop()
            await others.drain()


async def test_a_cluster_node_is_measured_placed_and_told_of(heard: Heard, until: Until) -> None:
    node = heard.node
    await until(lambda: heard.used("share") > 1.5 and heard.used("reclaim") > 0.5)
    assert {reading.pod.name for reading in present(heard.sample).pods} == {"web", "encode"}
    await until(lambda: heard.allocation and heard.allocation.status == "applied")
    pool = present(present(heard.allocation).pool("reclaim"))
    await until(lambda: node.cpus("encode") == present(present(heard.allocation).pool("reclaim")).cpus)
    assert pool.cpus
    assert node.cpus("web") != node.cpus("encode")

    await until(lambda: all(app.health().ok for app in heard.runner.apps.values()))
    await until(lambda: CNR in node.api.objects and "status" in node.api.objects[CNR])
    await until(lambda: RECLAIMED_CPU in node.allocatable)
    assert set(node.api.objects[CNR]["status"]["resourceAllocatable"]) >= {TUTORIAL_RECLAIMED_CPU}
    assert node.allocatable["cpu"] == "16"
    assert {TUTORIAL_RECLAIMED_CPU, RECLAIMED_CPU} <= node.allocatable.keys()


async def test_a_pod_that_comes_is_seen_placed_and_counted_and_one_that_goes_is_forgotten(
    heard: Heard, until: Until
) -> None:
    node = heard.node
    await until(lambda: heard.allocation and heard.allocation.status == "applied")
    node.run_pod("batch", "reclaimed_cores", "BestEffort", SimDemand(1, GIB), **{TUTORIAL_RECLAIMED_CPU: "1k"})
    await until(lambda: heard.sample and "batch" in {reading.pod.name for reading in heard.sample.pods})
    await until(lambda: node.cpus("batch") == present(present(heard.allocation).pool("reclaim")).cpus)
    node.api.put(pod_path("batch"), {**node.api.objects[pod_path("batch")],
                                     "metadata": {**node.api.objects[pod_path("batch")]["metadata"],
                                                  "deletionTimestamp": "2026-01-01T00:00:00Z"}})  # fmt: skip
    await until(lambda: "batch" not in {reading.pod.name for reading in present(heard.sample).pods})


async def test_a_reclaimed_pod_is_held_to_the_memory_that_it_asked_for_or_to_a_share_and_no_tenant_is(
    heard: Heard, until: Until
) -> None:
    node = heard.node
    node.run_pod("batch", "reclaimed_cores", "BestEffort", SimDemand(1, GIB), **{RECLAIMED_MEMORY: "2Gi"})
    await until(lambda: node.limits("batch") == (2 * GIB, 2 * GIB))
    node.grow("batch", left_bytes=4 * GIB)
    await until(lambda: not node.runs("batch"))
    assert node.runs("encode")
    await until(lambda: None not in node.limits("encode"))
    assert node.limits("web") == (None, None)


async def test_pressure_on_memory_evicts_the_reclaimed_pod_through_the_api_and_taints_the_node(
    heard: Heard, until: Until
) -> None:
    node, call = heard.node, f"{pod_path('encode')}/eviction"
    await until(lambda: heard.allocation and heard.allocation.status == "applied")
    await until(lambda: heard.used("share") > 1.5)
    node.grow("web", left_bytes=MIB)
    await until(lambda: pod_path("encode") not in node.api.objects)
    options = [present(body)["deleteOptions"] for _, path, body in node.api.requests if path == call]
    assert all(one["preconditions"] == {"uid": b"encode".hex()} for one in options)
    assert ["dryRun" in one for one in options] == [True, False]
    await until(lambda: f"{TAINT_PREFIX}MemoryPressure" in node.taints)
    await until(lambda: f"{TAINT_PREFIX}MemoryPressure" in node.told_taints)
    assert pod_path("web") in node.api.objects


async def test_while_the_api_server_is_away_the_node_goes_on_and_only_afterwards_somebody_goes(
    heard: Heard, until: Until
) -> None:
    node, call = heard.node, f"{pod_path('encode')}/eviction"
    await until(lambda: heard.allocation and heard.allocation.status == "applied")
    await until(lambda: heard.used("share") > 1.5)
    node.api.failing = 503
    node.grow("web", left_bytes=MIB)
    await until(lambda: present(present(heard.sample).node_reading.memory_free_bytes) < 2 * MIB)
    seen = present(heard.sample).seq
    await until(lambda: "TaintsNotWritten" in str(heard.runner.apps["evictor"].state()))
    await until(lambda: present(heard.sample).seq > seen + 5)
    await until(lambda: heard.used("share") > 1.5)
    assert pod_path("encode") in node.api.objects
    assert not [path for _, path, _ in node.api.requests if path == call]
    node.api.failing = 0
    await until(lambda: pod_path("encode") not in node.api.objects)
    await until(lambda: f"{TAINT_PREFIX}MemoryPressure" in node.taints)


async def test_without_kubelets_groups_metrics_does_not_start_and_says_why(tmp_path: Path) -> None:
    Kernel(tmp_path, SimMachine(cgroup_version=2))
    clock = SystemClock()
    wire = Wire(MemoryBus(), clock, node=NODE, service="metrics")
    common = common_settings({"node": NODE, "substrate": "kubernetes", "host_root": tmp_path, "state_dir": tmp_path})
    with pytest.raises(Unavailable, match="does kubelet run on this host"):
        METRICS.build(Context(wire, clock, common))
