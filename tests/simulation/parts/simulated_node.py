"""One node of the simulated world: its kernel, its pods, what presses on it, and the lives of its agent and watchdog.

The agent is the product's own: the runner with advisor, qrm, evictor and reporter over the cluster's adapters. Only the
measuring service is played, for a host's files would be most of the work of a world.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from fake_resctrl import FakeResctrl
from seeded_loop import Process
from simulated_api import Route, SimKube
from simulated_bus import Link, SimBus
from simulated_kernel import SimCgroups
from simulated_parts import SAMPLE_S, NodeClock, QuietWatchdog, Sampler, SimLease, SimLedger

from services.advisor.app import AdvisorApp
from services.advisor.ports import AdvisorPorts
from services.advisor.settings import AdvisorSettings
from services.evictor.app import EvictorApp
from services.evictor.ports import EvictorPorts
from services.evictor.settings import EvictorSettings
from services.qrm.adapters.checkpoint.file import CheckpointFile
from services.qrm.adapters.checkpoint.former_values import FormerValuesFile
from services.qrm.adapters.checkpoint.writer import CheckpointWriter
from services.qrm.adapters.kernel.groups import CgroupGroups
from services.qrm.adapters.kernel.machine import HostMachine
from services.qrm.adapters.kernel.start_watch import StartWatch
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.adapters.lease.file import LOCK
from services.qrm.adapters.lease.lock import acquire_lock
from services.qrm.adapters.lease.watchdog import TICK_S
from services.qrm.adapters.offload.loop import OffloadLoop
from services.qrm.adapters.offload.offloader import CgroupOffloader
from services.qrm.adapters.resctrl.bandwidth_loop import BandwidthLoop
from services.qrm.app import QrmApp
from services.qrm.ports import QrmPorts
from services.qrm.settings import QrmSettings
from services.reporter.app import ReporterApp
from services.reporter.ports import ReporterPorts, SideTask
from services.reporter.settings import ReporterSettings
from shared.adapters.files.pause import PauseFile
from shared.adapters.files.pods import PodsFile
from shared.adapters.kube.evictor import KubeEvictor
from shared.adapters.kube.node import KubeNode
from shared.adapters.kube.objects import KubeObjects
from shared.adapters.kube.pods import KubePods
from shared.adapters.kube.taints import KubeTaints
from shared.app import App, Context, Plan, Runner
from shared.contracts.pod import Pod
from shared.contracts.sample import (
    ContainerReading,
    NodeReading,
    NumaReading,
    PodReading,
    PoolReading,
)
from shared.core.cgroups.knobs import Version
from shared.core.cgroups.kubelet_layout import KubeletLayout
from shared.core.cgroups.layout import Layout
from shared.core.cpus.topology import Topology, UniformShape
from shared.core.pods.kube_pod import pod_of
from shared.settings import CommonSettings, section
from shared.standalone_bus import StandaloneBus

if TYPE_CHECKING:
    from simulated_world import World

GIB = 1 << 30
TOTAL_BYTES = 64 * GIB
CALM_BYTES, SHORT_BYTES = 30 * GIB, GIB // 4
"""Free memory in calm, and while the node is short of it."""
SHAPE = UniformShape(sockets=1, numa_per_socket=2, cores_per_numa=4, threads=2)
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "advisor": {"period_s": 6.0, "policy": "canonical"},
    "qrm": {"poll_s": 1.0, "lease_s": 10.0},
    "reporter": {"ready_s": 3.0, "tick_s": 2.0, "refresh_s": 20.0},
    "evictor": {
        "cooling_s": 4.0,
        "announce_s": 0.5,
        "call_timeout_s": 5.0,
        "intent_deadline_s": 20.0,
        "condition_transition_s": 5.0,
    },
}


@dataclass
class Machine:
    """A node over all its boots."""

    world: "World"
    name: str
    random: Random
    version: Version = 2
    layout: Layout = field(default_factory=lambda: KubeletLayout("cgroupfs"))
    link: Link = field(default_factory=Link)
    route: Route = field(default_factory=Route)
    agent: Process | None = None
    keeper: Process | None = None
    boots: int = 0
    booted_at_s: float = 0.0
    skew_s: float = 0.0
    metrics_silent: bool = False
    short_since_s: float | None = None
    """Since when the node is short of memory; None: it is not."""
    short_until_s: float = float("-inf")
    renewed_s: float = float("-inf")
    """When its kubelet has last renewed its lease."""
    unready: bool = False
    """Kubelet's probe of the agent fails."""
    kubelet_down: bool = False
    down: bool = False
    """The agent does not come back."""
    disk_full: bool = False
    runner: Runner | None = None
    stop: asyncio.Event | None = None
    usage_cores: dict[str, float] = field(default_factory=dict)
    """Of pods, by UID."""
    bus: SimBus | None = None
    _pods: tuple[int, list[Pod]] | None = None
    _read: dict[tuple[str, str], Pod | None] = field(default_factory=dict)
    """Pods by UID and version of their documents."""

    def __post_init__(self) -> None:
        self.folder = self.world.folder / self.name
        self.root, self.state = self.folder / "host", self.folder / "state"
        for place in (self.root / "proc/sys/kernel/random", self.state):
            place.mkdir(parents=True)
        self.topology = Topology.uniform(SHAPE)
        self.boot()

    def boot(self) -> None:
        """The machine starts anew: an empty cgroup tree, another boot, a monotonic clock from zero."""
        self.boots += 1
        self.booted_at_s = self.world.now_s
        (self.root / "proc/sys/kernel/random/boot_id").write_text(f"boot-{self.name}-{self.boots}\n")
        self.kernel = SimCgroups(self.root, str(self.topology.all), "0-1", self.version, self.random)
        for home in self.layout.homes:
            self.kernel.add(home)
        self.kernel.written = lambda group, knob: self.world.checks.kernel_written(self, group, knob)
        for pod in self.pods():
            self.make_groups(pod)

    @property
    def boottime_s(self) -> float:
        """CLOCK_BOOTTIME of the node."""
        return self.world.now_s - self.booted_at_s

    def pods(self) -> list[Pod]:
        """What runs here, as the API server knows it."""
        version = self.world.api.pods_version
        if self._pods is None or self._pods[0] != version:
            found = [pod for document in self.world.pods_of(self.name) if (pod := self._pod(document)) is not None]
            self._pods = version, found
        return self._pods[1]

    def _pod(self, document: Mapping[str, Any]) -> Pod | None:
        key = document["metadata"]["uid"], document["metadata"]["resourceVersion"]
        if key not in self._read:
            self._read[key] = pod_of(document)
        return self._read[key]

    def make_groups(self, pod: Pod) -> None:
        """Kubelet and the runtime make a pod's groups."""
        self.kernel.add(self.layout.pod_group(pod))
        for container in pod.containers:
            if (group := self.layout.container_group(pod, container)) is not None:
                self.kernel.add(group)

    @property
    def short(self) -> bool:
        """Whether the node is short of memory now."""
        return self.short_since_s is not None

    def sample(self, *, first: bool) -> dict[str, Any]:
        """The fields of a sample of this moment."""
        free = SHORT_BYTES if self.short else CALM_BYTES
        readings, total = [], 0.5
        pools = {"share": 0.0, "reclaim": 0.0}
        for pod in self.pods():
            used = self.usage_cores.get(pod.uid, 0.2)
            total += used
            if pod.qos != "dedicated_cores":
                pools["reclaim" if pod.qos == "reclaimed_cores" else "share"] += used
            containers = tuple(
                ContainerReading(
                    name=one.name,
                    cpu_usage_cores=used,
                    load1=used,
                    memory_usage_bytes=GIB,
                    memory_rss_bytes=GIB,
                    memory_cache_bytes=0,
                )
                for one in pod.containers
            )
            readings.append(PodReading(pod=pod, containers=containers))
        node = NodeReading(
            online_cpus=str(self.topology.all),
            cpu_usage_cores=min(total, len(self.topology.all)),
            memory_total_bytes=TOTAL_BYTES,
            memory_free_bytes=free,
            memory_available_bytes=free,
            watermark_scale_factor=100,
            kswapd_steal_pages=0,
        )
        numas = tuple(
            NumaReading(numa=numa, cpus=str(cpus), memory_total_bytes=TOTAL_BYTES // 2, memory_free_bytes=free // 2)
            for numa, cpus in self.topology.numas.items()
        )
        return {
            "window_s": None if first else SAMPLE_S,
            "node_reading": node,
            "numas": numas,
            "pods": tuple(readings),
            "pools": tuple(PoolReading(pool=name, cpu_usage_cores=used) for name, used in sorted(pools.items())),
        }

    def start_agent(self) -> Process:
        """Begin a life of the agent."""
        process = self.agent = Process(f"{self.name}/agent", node=self.name, skew_s=self.skew_s)
        random = Random(self.random.random())
        self.bus = bus = SimBus(self.world.broker, process, self.link, random, echo=False)
        bus.sent = lambda message: self.world.checks.node_sent(self, message)
        kube = SimKube(self.world.api, process, self.route, random)
        kube.asked = lambda request: self.world.checks.node_asks(self, process, request)
        clock = NodeClock(process, self.booted_at_s)
        common = CommonSettings(
            node=self.name, substrate="kubernetes", host_root=self.root, state_dir=self.state, heartbeat_s=4.0
        )
        self.runner = runner = Runner(self._plans(process, kube, clock), StandaloneBus(bus), clock, common, SETTINGS)
        self.stop = stop = asyncio.Event()
        task = process.start(runner.run(stop), f"{self.name}-agent")
        task.add_done_callback(lambda done: self.world.agent_ended(self, process, done))
        return process

    def start_keeper(self) -> None:
        """Begin a life of the lease's watchdog."""
        process = self.keeper = Process(f"{self.name}/keeper", node=self.name)
        process.start(self._watch(process), f"{self.name}-keeper")

    async def _watch(self, process: Process) -> None:
        watchdog, held = QuietWatchdog(self.state, self.root), None
        watchdog.say = lambda line: self.world.tell(f"{self.name} watchdog: {line}")
        while True:
            if held is None:
                held = acquire_lock(self.state / LOCK, tries=1)
                if held is not None:
                    process.on_kill.append(lambda descriptor=held: os.close(descriptor))  # type: ignore[misc]
            if held is not None:
                watchdog.check(self.boottime_s)
            await asyncio.sleep(2 * TICK_S)

    def _plans(self, process: Process, kube: SimKube, clock: NodeClock) -> tuple[Plan, ...]:
        def advisor(context: Context) -> App:
            return AdvisorApp(context, AdvisorPorts(self.topology), section(AdvisorSettings, context.raw, "advisor"))

        def qrm(context: Context) -> App:
            machine = HostMachine(
                self.kernel, lambda: self.topology, lambda: {0: TOTAL_BYTES // 2, 1: TOTAL_BYTES // 2}
            )
            former = FormerValuesFile(self.state, f"boot-{self.name}-{self.boots}")
            groups = CgroupGroups(CgroupWriter(self.kernel, self.layout.top), machine, self.layout, None, former)
            ports = QrmPorts(
                machine=machine,
                groups=groups,
                pods=PodsFile(self.state),
                lease=SimLease(self, process),
                offloader=OffloadLoop(CgroupOffloader(self.kernel), self.layout, clock),
                bandwidth=BandwidthLoop(FakeResctrl(), lambda: machine.whole, clock),
                starts=StartWatch(self.kernel, self.layout, lambda _pid: "batch"),
                checkpoints=CheckpointWriter(CheckpointFile(self.state, self.name)),
            )
            return QrmApp(context, ports, section(QrmSettings, context.raw, "qrm"))

        def evictor(context: Context) -> App:
            ledger = SimLedger(self.state, self, process)
            taints = KubeTaints(kube, self.name, KubeObjects(kube, clock, manager="sublet-evictor"))
            ports = EvictorPorts(ledger, KubeEvictor(kube), PauseFile(self.state).why, taints)
            return EvictorApp(context, ports, section(EvictorSettings, context.raw, "evictor"))

        def reporter(context: Context) -> App:
            pods = KubePods(kube, self.name, PodsFile(self.state), clock, fallback="shared_cores")
            node = KubeNode(kube, self.name, pods.asked)
            side = SideTask(lambda: pods.run(node), pods.failure)
            ports = ReporterPorts(node, side, lambda: node.seen, lambda: node.withdrawn)
            return ReporterApp(context, ports, section(ReporterSettings, context.raw, "reporter"))

        return (
            Plan("metrics", lambda context: Sampler(context, self)),
            Plan("advisor", advisor),
            Plan("qrm", qrm),
            Plan("evictor", evictor),
            Plan("reporter", reporter),
        )

    def disconnect(self) -> Callable[[], None]:
        """Lose the connection to the bus, and notice it."""
        bus = self.bus
        if bus is None:
            return lambda: None
        bus.go_offline()
        return bus.go_online

    def crash(self) -> None:
        """`kill -9` of the agent."""
        if self.agent is not None:
            self.agent.kill()

    def reboot(self) -> None:
        """Power off and on: agent and watchdog die, the kernel begins anew."""
        for process in (self.agent, self.keeper):
            if process is not None:
                process.kill()
        self.agent = self.keeper = None
        self.boot()
        self.start_keeper()

    def remove(self) -> None:
        """Let go of what the world was made of."""
        shutil.rmtree(self.folder, ignore_errors=True)
