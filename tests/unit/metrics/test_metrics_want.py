"""What tells waiting for a CPU from other waiting: time that the hypervisor took, and CPUs that a quota held back."""

from pathlib import Path
from typing import Any

import pytest
from kernel_trees import KernelTree, put

from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.targets import LocalTargets
from services.metrics.core.figures.results import LastPass
from services.metrics.core.sample.summary import summarise
from services.metrics.registry import known_sources
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.layout import container_group

POD = Pod(uid="aa", name="web", containers=(Container(name="main"),))
GROUP = container_group(POD, "main")


class Node:
    """A host of files with one pod, measured every two seconds."""

    def __init__(self, root: Path, version: int) -> None:
        self.tree = KernelTree(root, version)
        self.tree.machine(cpus=4, numas=2)
        self.tree.node()
        self._now_s, self._memory = 0.0, LastPass()
        self._collector = Collector(
            HostReader(root, Cgroups(root)), known_sources(), LocalTargets(root), lambda: self._now_s
        )

    def group(self, usage_ns: int, periods: int, throttled_us: int) -> None:
        self.tree.group(GROUP, usage_ns=usage_ns, periods=periods, throttled=periods)
        stat = self.tree.folder(GROUP, "cpu") / "cpu.stat"
        name, time = (
            ("throttled_time", throttled_us * 1000) if self.tree.version == 1 else ("throttled_usec", throttled_us)
        )
        rows = [row for row in stat.read_text().splitlines() if not row.startswith("throttled_")]
        put(stat, "\n".join([*rows, f"{name} {time}", ""]))

    def measure(self) -> dict[str, Any]:
        self._now_s += 2.0
        readings = self._collector.collect([POD]).readings
        fields, self._memory = summarise(self._memory, readings, self._collector.offered, [POD], self._now_s)
        return fields


@pytest.fixture(params=[1, 2])
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    return Node(tmp_path, request.param)


@pytest.mark.parametrize(
    ("line", "usage_cores", "steal_cores"),
    [
        pytest.param("cpu  {busy} 0 0 {idle} 0 0 0 {stolen} 0 0\n", 1.5, 0.5, id="stolen time is not in the usage"),
        pytest.param("cpu  {busy} 0 0 {idle} 0 0 0\n", 1.5, None, id="absent where the kernel does not tell"),
    ],
)
def test_time_that_the_hypervisor_took(node: Node, line: str, usage_cores: float, steal_cores: float | None) -> None:
    for passes in (1, 2):
        put(node.tree.root / "proc/stat", line.format(busy=300 * passes, idle=400 * passes, stolen=100 * passes))
        reading = node.measure()["node_reading"]
    assert (reading.cpu_usage_cores, reading.cpu_steal_cores) == (usage_cores, steal_cores)


@pytest.mark.parametrize(
    ("periods", "throttled_cores"),
    [pytest.param(20, 0.25, id="at its quota"), pytest.param(0, None, id="absent without a quota")],
)
def test_cpus_that_a_quota_held_back(node: Node, periods: int, throttled_cores: float | None) -> None:
    for passes in (1, 2):
        node.group(10**9 * passes, periods * passes, 500_000 * passes)
        container = node.measure()["pods"][0].containers[0]
    assert container.throttled_cores == throttled_cores
