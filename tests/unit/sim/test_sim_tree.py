"""The generated host reads back as the machine it describes, with the shared readers and in the kernel's formats."""

from pathlib import Path

import pytest

from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.sysfs import read_topology
from shared.core.cgroups.knobs import UNLIMITED, Knob
from shared.core.cgroups.layout import QOS_CLASSES, class_group
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Numbering
from sublet.sim.groups import SimGroups
from sublet.sim.machine import SimMachine
from sublet.sim.model import Counters
from sublet.sim.proc import ProcFigures, end_task, start_task, write_node
from sublet.sim.tree import HostFiles, plant

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
CONTAINER = "sublet/shared_cores/pod1a/main"


@pytest.fixture(params=[1, 2], ids=["cgroup-v1", "cgroup-v2"])
def machine(request: pytest.FixtureRequest) -> SimMachine:
    return SimMachine(cgroup_version=request.param)


@pytest.fixture
def groups(tmp_path: Path, machine: SimMachine) -> SimGroups:
    return SimGroups(HostFiles(tmp_path), machine)


def test_the_default_machine_is_the_one_of_the_quick_start(tmp_path: Path) -> None:
    plant(HostFiles(tmp_path), SimMachine())
    assert (tmp_path / CPU / "online").read_text() == "0-47\n"
    assert (tmp_path / NODE / "node0/cpulist").read_text() == "0-11,24-35\n"
    assert (tmp_path / NODE / "node1/cpulist").read_text() == "12-23,36-47\n"
    assert (tmp_path / CPU / "cpu35/topology/thread_siblings_list").read_text() == "11,35\n"
    assert (tmp_path / CPU / "cpu35/topology/core_id").read_text() == "11\n"
    assert (tmp_path / CPU / "cpu36/topology/physical_package_id").read_text() == "1\n"
    assert (tmp_path / CPU / "cpu0/cache/index3/shared_cpu_list").read_text() == "0-11,24-35\n"


@pytest.mark.parametrize("numbering", ["split", "adjacent", "interleaved"])
def test_the_shared_reader_finds_the_machine_that_was_described(tmp_path: Path, numbering: Numbering) -> None:
    machine = SimMachine(sockets=2, numa_per_socket=2, cores_per_numa=2, numbering=numbering)
    plant(HostFiles(tmp_path), machine)
    read, described = read_topology(tmp_path), machine.topology
    assert (read.numas, read.sockets, read.cores) == (described.numas, described.sockets, described.cores)


def test_core_ids_count_within_each_package(tmp_path: Path) -> None:
    plant(HostFiles(tmp_path), SimMachine(sockets=2, numa_per_socket=2, cores_per_numa=3, threads=1))
    ids = [int((tmp_path / f"{CPU}/cpu{cpu}/topology/core_id").read_text()) for cpu in range(12)]
    assert ids == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]


def test_memory_is_what_the_machine_has_minus_what_is_used(tmp_path: Path) -> None:
    machine = SimMachine(memory="195924424Ki")
    plant(HostFiles(tmp_path), machine)
    write_node(HostFiles(tmp_path), machine, ProcFigures(used_bytes=2 << 30))
    rows = dict(line.split(":") for line in (tmp_path / "proc/meminfo").read_text().splitlines())
    assert rows["MemTotal"].strip() == "195924424 kB"
    assert rows["MemFree"].strip() == f"{195924424 - (2 << 20)} kB"
    node = (tmp_path / NODE / "node1/meminfo").read_text().splitlines()
    assert node[0].split() == ["Node", "1", "MemTotal:", "97962212", "kB"]


def test_cpu_time_adds_up_over_the_cpus(tmp_path: Path) -> None:
    machine = SimMachine(sockets=1, cores_per_numa=2, threads=1)
    plant(HostFiles(tmp_path), machine)
    figures = ProcFigures(runnable=2)
    figures.advance({0: 1.0, 1: 0.5}, waiting=0.5, step_s=10)
    write_node(HostFiles(tmp_path), machine, figures)
    lines = (tmp_path / "proc/stat").read_text().splitlines()
    assert lines[:3] == [
        "cpu  1500 0 0 500 0 0 0 0 0 0",
        "cpu0 1000 0 0 0 0 0 0 0 0 0",
        "cpu1 500 0 0 500 0 0 0 0 0 0",
    ]
    assert (tmp_path / "proc/pressure/cpu").read_text().startswith("some avg10=63.21 ")
    assert (tmp_path / "proc/loadavg").read_text().startswith("0.31 0.07 0.02 2/")


def test_a_task_shows_its_state_and_goes_away(tmp_path: Path) -> None:
    host = HostFiles(tmp_path)
    start_task(host, 77, "stress", running=True)
    fields = (tmp_path / "proc/77/stat").read_text().split()
    assert fields[:3] == ["77", "(stress)", "R"]
    assert len(fields) == 52
    end_task(host, 77)
    assert not (tmp_path / "proc/77").exists()


def test_the_class_groups_are_there_with_every_file_that_the_writer_needs(groups: SimGroups, tmp_path: Path) -> None:
    cgroups = Cgroups(tmp_path)
    for qos in QOS_CLASSES:
        group = class_group(qos)
        assert cgroups.read(group, Knob.CPUS) == "0-47"
        assert cgroups.read(group, Knob.MEMS) == "0-1"
        assert cgroups.read(group, Knob.CPU_QUOTA) == UNLIMITED
        assert cgroups.read(group, Knob.MEMORY_MAX) == UNLIMITED
        assert cgroups.read(group, Knob.CPU_IDLE) == 0
        assert cgroups.pids(group) == []


def test_what_is_written_to_a_cpuset_is_effective_at_once(groups: SimGroups, tmp_path: Path) -> None:
    cgroups = Cgroups(tmp_path)
    cgroups.write("sublet/shared_cores", Knob.CPUS, "11,35")
    assert cgroups.effective_cpus("sublet/shared_cores") == "11,35"
    cgroups.make(CONTAINER)
    groups.adopt_new()
    assert cgroups.read(CONTAINER, Knob.CPUS) == "11,35"
    assert str(groups.cpus(CONTAINER)) == "11,35"


def test_a_group_made_by_others_gets_its_files_and_keeps_what_they_wrote(groups: SimGroups, tmp_path: Path) -> None:
    cgroups = Cgroups(tmp_path)
    cgroups.make(CONTAINER)
    groups.adopt_new()
    cgroups.write(CONTAINER, Knob.CPU_QUOTA, 1500)
    groups.adopt_new()
    assert groups.limit_cores(CONTAINER) == 1.5
    assert groups.memory_limit_bytes(CONTAINER) is None
    cgroups.write(CONTAINER, Knob.MEMORY_MAX, 4096)
    assert groups.memory_limit_bytes(CONTAINER) == 4096


def test_the_lowest_weight_counts_as_idle_class(groups: SimGroups, tmp_path: Path) -> None:
    cgroups = Cgroups(tmp_path)
    assert not groups.idle(CONTAINER.rpartition("/")[0])
    cgroups.write("sublet/reclaimed_cores", Knob.CPU_IDLE, 1)
    cgroups.write("sublet/system_cores", Knob.CPU_SHARES, 2)
    assert [qos for qos in QOS_CLASSES if groups.idle(class_group(qos))] == ["reclaimed_cores", "system_cores"]


def test_counters_are_shown_in_the_kernels_units(groups: SimGroups, machine: SimMachine, tmp_path: Path) -> None:
    groups.make(CONTAINER)
    groups.write(CONTAINER, Counters(cpu_s=1.5, periods=10, throttled_periods=4, throttled_s=0.25, memory_bytes=4096))
    cgroups = Cgroups(tmp_path)
    if machine.cgroup_version == 1:
        assert cgroups.text(CONTAINER, "cpuacct.usage", "cpuacct") == "1500000000\n"
        assert cgroups.text(CONTAINER, "cpu.stat", "cpu") == "nr_periods 10\nnr_throttled 4\nthrottled_time 250000000\n"
        assert cgroups.text(CONTAINER, "memory.usage_in_bytes", "memory") == "4096\n"
    else:
        text = cgroups.text(CONTAINER, "cpu.stat") or ""
        assert text.startswith("usage_usec 1500000\n")
        assert "throttled_usec 250000\n" in text
        assert cgroups.text(CONTAINER, "memory.current") == "4096\n"


def test_a_removed_group_is_gone_with_everything_below_it(groups: SimGroups, tmp_path: Path) -> None:
    groups.make(CONTAINER)
    groups.remove(CONTAINER.rpartition("/")[0])
    assert not Cgroups(tmp_path).exists(CONTAINER)
    assert Cgroups(tmp_path).exists("sublet/shared_cores")


def test_sets_that_a_kernel_would_not_grant_are_reported(groups: SimGroups, tmp_path: Path) -> None:
    cgroups = Cgroups(tmp_path)
    groups.make(CONTAINER)
    assert list(groups.violations()) == []
    cgroups.write("sublet/shared_cores", Knob.CPUS, "0-3")
    assert [line.split()[1] for line in groups.violations()] == ["sublet/shared_cores/pod1a"]
    assert groups.cpus(CONTAINER) == CpuSet.parse("0-3")
    (cgroups.folder("sublet/reclaimed_cores", "cpuset") / "cpuset.cpus").write_text("\n")
    assert "cgroup sublet/reclaimed_cores has CPUs 'none' below a parent with 0-47" in list(groups.violations())
