"""Pods for measuring metrics: real cgroups with sleeping tasks where this machine allows, else a generated tree."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests/trees"))

from kernel_trees import KernelTree

from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.targets import LocalTargets
from services.metrics.adapters.tripwire import HostTripwire
from services.metrics.core.figures.results import LastPass
from services.metrics.core.figures.target import Target
from services.metrics.core.figures.values import Raw
from services.metrics.core.sample.summary import summarise
from services.metrics.core.source import Host, Source
from services.metrics.registry import known_sources
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import NodeSample
from shared.core.cgroups.layout import ROOT, container_group
from shared.settings import CommonSettings
from sublet.host.preflight import check_host

PERIOD_S, REST_PERIOD_S, PROBE_S = 2.0, 3.0, 0.1
TASKS = 5
TOP = "sublet-bench-metrics"
MEMORY_FOLDER = Path("/dev/shm")


@dataclass
class Rig:
    """A host with pods, and passes over it on a clock that moves a period from pass to pass."""

    what: str
    root: Path
    pods: list[Pod]
    top: str = ROOT
    now_s: float = 0.0
    memory: LastPass = field(default_factory=LastPass)

    def __post_init__(self) -> None:
        self.cgroups = Cgroups(self.root)
        self.targets = LocalTargets(self.root, self.top)
        self.tripwire = HostTripwire(self.root, self.cgroups)
        self.start(known_sources())

    def start(self, sources: Mapping[str, Source]) -> None:
        """Begin anew with these sources."""
        self.host, self.memory = HostReader(self.root, self.cgroups), LastPass()
        self.collector = Collector(self.host, sources, self.targets, lambda: self.now_s)

    def one_pass(self) -> bytes:
        """What the service does once a period, up to the bytes that it sends."""
        self.now_s += PERIOD_S
        readings = self.collector.collect(self.pods).readings
        fields, self.memory = summarise(self.memory, readings, self.collector.offered, self.pods, self.now_s)
        return NodeSample(node="bench", boot_id="0" * 8, seq=1, sent_at="2026-01-01T00:00:00Z", **fields).encode()


def moving() -> dict[str, Source]:
    """The sources as they are where every container works and its memory grows, from pass to pass."""
    found = known_sources()
    for name, raw_name, step in (("cpu_usage", "cpu_usage_ns", 10**8), ("memory", "memory_usage_bytes", 4 << 20)):
        found[name] = _growing(found[name], raw_name, step)
    return found


def _growing(source: Source, raw_name: str, step: int) -> Source:
    def read(host: Host, target: Target) -> Raw:
        raw = source.read(host, target)
        counter = raw.get(raw_name)
        return {**raw, raw_name: counter + host.passes * step} if isinstance(counter, int) else raw

    return replace(source, read=read)


def pods_of(count: int) -> list[Pod]:
    """Half tenants, half batch, one container each."""
    return [
        Pod(
            uid=f"{number:032x}",
            name=f"pod-{number}",
            qos="reclaimed_cores" if number % 2 else "shared_cores",
            containers=(Container(name="main"),),
        )
        for number in range(count)
    ]


@contextmanager
def rig(count: int) -> Iterator[Rig]:
    """Real cgroups of this machine where that can be, else a generated tree of its cgroup version."""
    made = _real(count) if not check_host(CommonSettings()) else generated(1, count)
    with made as ready:
        yield ready


@contextmanager
def generated(version: int, count: int, cpus: int = 48) -> Iterator[Rig]:
    """A tree of plain files in memory. They are opened for each reading, which kernel files are not."""
    with tempfile.TemporaryDirectory(dir=MEMORY_FOLDER if MEMORY_FOLDER.is_dir() else None) as folder:
        tree = KernelTree(Path(folder), version)
        tree.machine(cpus=cpus)
        tree.node(cpus=cpus)
        pods = pods_of(count)
        for number, pod in enumerate(pods):
            tree.group(container_group(pod, "main"), usage_ns=number, tids=tree.tasks("S" * TASKS))
        yield Rig(f"generated tree, cgroup v{version}, {cpus} CPUs", tree.root, pods)


@contextmanager
def _real(count: int) -> Iterator[Rig]:
    cgroups, pods = Cgroups(Path("/")), pods_of(count)
    tasks: list[subprocess.Popen[bytes]] = []
    try:
        for pod in pods:
            group = container_group(pod, "main", TOP)
            cgroups.make(group)
            for _ in range(TASKS):
                tasks.append(subprocess.Popen(["sleep", "3600"]))
                cgroups.attach(group, tasks[-1].pid)
        yield Rig(f"this kernel, cgroup v{cgroups.version}, {os.cpu_count()} CPUs", Path("/"), pods, TOP)
    finally:
        for task in tasks:
            task.kill()
        for task in tasks:
            task.wait()
        cgroups.remove(TOP)
