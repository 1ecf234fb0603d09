"""The simulator's host answers every source: its files are read by the same readers as a kernel's."""

from pathlib import Path

import pytest

from services.metrics.adapters.collector import Collector
from services.metrics.adapters.host import HostReader
from services.metrics.adapters.targets import LocalTargets
from services.metrics.core.figures.results import LastPass
from services.metrics.core.figures.target import NODE, TENANTS, Target
from services.metrics.core.sample.summary import summarise
from services.metrics.registry import known_sources
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Container, Pod
from shared.core.cgroups.layout import container_group
from sublet.load.demand import SimDemand
from sublet.sim.kernel import Kernel
from sublet.sim.machine import SimMachine

POD = Pod(uid="aa", name="web", containers=(Container(name="main"),))
MEMORY = 1 << 30
CPUS = 4


@pytest.mark.parametrize("version", [1, 2])
def test_every_figure_of_a_running_pod(tmp_path: Path, version: int) -> None:
    machine = SimMachine(sockets=2, cores_per_numa=1, threads=2, memory=8 << 30, cgroup_version=version)
    kernel, now_s = Kernel(tmp_path, machine), 0.0
    kernel.start(container_group(POD, "main"), SimDemand(threads=CPUS + 2, memory_bytes=MEMORY))
    collector = Collector(
        HostReader(tmp_path, Cgroups(tmp_path)), known_sources(), LocalTargets(tmp_path), lambda: now_s
    )
    memory, pods = LastPass(), [POD]
    for now_s in (0.0, 10.0, 20.0):
        kernel.step(now_s)
        collected = collector.collect(pods)
        assert not collected.failures
        fields, memory = summarise(memory, collected.readings, collector.offered, pods, now_s)
    assert memory.rejected == {}
    node, container = fields["node_reading"], fields["pods"][0].containers[0]
    assert set(node.cpus.by_cpu().values()) == {100}
    assert node.cpu_usage_cores == pytest.approx(CPUS, abs=0.01)
    assert node.sched_wait_tasks == pytest.approx(2, abs=0.01)
    assert container.sched_wait_tasks == fields["pools"][-1].sched_wait_tasks == pytest.approx(2, abs=0.01)
    assert [numa.anon_bytes for numa in container.memory_numa] == [MEMORY // 2] * 2
    for numa in fields["numas"]:
        assert 0 < numa.watermark_min_bytes < numa.watermark_low_bytes < numa.watermark_high_bytes
        assert numa.file_bytes == 0
    rates = ("kswapd_steal_pages_per_s", "refault_pages_per_s", "disk_read_bytes_per_s", "network_receive_bytes_per_s")
    assert [getattr(node, name) for name in rates] == [0, 0, 0, 0]
    assert node.extra == {"nic_up.eth0": 1, "nic_speed_bytes_per_s.eth0": 1.25e9}, "a disk is not played"
    assert container.cpu_sys_cores == 0
    assert {target for target in memory.results if target.kind == "pool"} >= {TENANTS}
    assert {NODE, Target("numa", "0"), Target("numa", "1")} <= memory.results.keys()
