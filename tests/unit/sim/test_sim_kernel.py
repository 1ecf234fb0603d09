"""The simulated kernel: what containers ask for, under what was written to their cgroups, shows in the files."""

from pathlib import Path

import pytest

from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.knobs import Knob
from sublet.load.demand import SimDemand, demand_of
from sublet.sim.kernel import FIRST_PID, Kernel
from sublet.sim.machine import SimMachine

WEB, WEB_POD = "sublet/shared_cores/pod1a/web", "sublet/shared_cores/pod1a"
BATCH = "sublet/reclaimed_cores/pod2b/work"
GIB = 1 << 30


@pytest.fixture(params=[1, 2], ids=["cgroup-v1", "cgroup-v2"])
def kernel(request: pytest.FixtureRequest, tmp_path: Path) -> Kernel:
    machine = SimMachine(sockets=1, cores_per_numa=2, threads=2, memory="8Gi", cgroup_version=request.param)
    kernel = Kernel(tmp_path, machine)
    kernel.step(100.0)
    return kernel


def cgroups(kernel: Kernel) -> Cgroups:
    return Cgroups(kernel.root)


def cpu_s(kernel: Kernel, group: str) -> float:
    if cgroups(kernel).version == 1:
        return int(cgroups(kernel).text(group, "cpuacct.usage", "cpuacct") or "") / 1e9
    text = cgroups(kernel).text(group, "cpu.stat") or ""
    return int(text.split()[1]) / 1e6


def throttled(kernel: Kernel, group: str) -> int:
    text = cgroups(kernel).text(group, "cpu.stat", "cpu") or ""
    return int(text.split("nr_throttled ")[1].split()[0])


def states(kernel: Kernel, group: str) -> list[str]:
    pids = cgroups(kernel).pids(group)
    return [(kernel.root / f"proc/{pid}/stat").read_text().split()[2] for pid in pids]


def test_a_container_uses_what_it_asks_for_and_so_do_the_groups_above_it(kernel: Kernel) -> None:
    kernel.start(WEB, demand_of(["stress", "-c", "1"]))
    kernel.step(110.0)
    assert [cpu_s(kernel, group) for group in (WEB, WEB_POD, "sublet/shared_cores", "sublet", "")] == [10.0] * 5
    assert cpu_s(kernel, "sublet/reclaimed_cores") == 0.0


def test_each_thread_of_the_demand_is_a_runnable_task_and_one_more_sleeps(kernel: Kernel) -> None:
    kernel.start(WEB, SimDemand(1))
    assert states(kernel, WEB) == ["S", "R"]
    kernel.add(WEB, SimDemand(2))
    assert states(kernel, WEB) == ["S", "R", "R", "R"]


def test_a_simulated_pid_cannot_be_the_pid_of_a_real_process() -> None:
    assert FIRST_PID > 4 << 20  # PID_MAX_LIMIT of every 64-bit kernel


def test_the_limit_caps_usage_and_the_threads_stay_runnable(kernel: Kernel) -> None:
    kernel.start(WEB, SimDemand(3))
    cgroups(kernel).write(WEB_POD, Knob.CPU_QUOTA, 2000)
    kernel.step(110.0)
    assert cpu_s(kernel, WEB) == pytest.approx(20.0)
    assert states(kernel, WEB).count("R") == 3
    cgroups(kernel).write(WEB, Knob.CPU_QUOTA, 1000)
    kernel.step(120.0)
    assert cpu_s(kernel, WEB) == pytest.approx(30.0)
    assert throttled(kernel, WEB) == 200


def test_work_stays_within_the_cpus_that_were_written(kernel: Kernel) -> None:
    kernel.start(WEB, SimDemand(4))
    cgroups(kernel).write("sublet/shared_cores", Knob.CPUS, "1,3")
    kernel.step(110.0)
    assert cpu_s(kernel, WEB) == pytest.approx(20.0)
    lines = (kernel.root / "proc/stat").read_text().splitlines()
    assert [line.split()[1] for line in lines[1:5]] == ["0", "1000", "0", "1000"]


def test_idle_class_work_gets_what_tenants_leave(kernel: Kernel) -> None:
    kernel.start(WEB, SimDemand(3))
    kernel.start(BATCH, SimDemand(4))
    cgroups(kernel).write("sublet/reclaimed_cores", Knob.CPU_IDLE, 1)
    kernel.step(110.0)
    assert cpu_s(kernel, WEB) == pytest.approx(30.0)
    assert cpu_s(kernel, BATCH) == pytest.approx(10.0)


def test_memory_is_counted_in_every_group_above_and_missing_from_the_machine(kernel: Kernel) -> None:
    kernel.start(WEB, SimDemand(0, GIB))
    kernel.step(101.0)
    name = "memory.usage_in_bytes" if cgroups(kernel).version == 1 else "memory.current"
    assert cgroups(kernel).text("sublet/shared_cores", name, "memory") == f"{GIB}\n"
    assert "MemFree:         6815744 kB" in (kernel.root / "proc/meminfo").read_text()


def test_a_container_above_its_memory_limit_is_killed_and_named(kernel: Kernel) -> None:
    kernel.start(WEB, SimDemand(1, GIB))
    kernel.start(BATCH, SimDemand(1, GIB))
    cgroups(kernel).write("sublet/reclaimed_cores", Knob.MEMORY_MAX, GIB - 4096)
    assert kernel.step(101.0) == [BATCH]
    assert cgroups(kernel).pids(BATCH) == []
    assert kernel.step(102.0) == []


def test_a_stopped_pod_leaves_neither_group_nor_task_and_its_parents_keep_their_counters(kernel: Kernel) -> None:
    kernel.start(WEB, SimDemand(1))
    kernel.step(110.0)
    kernel.stop(WEB_POD)
    kernel.step(120.0)
    assert not cgroups(kernel).exists(WEB_POD)
    assert [entry.name for entry in (kernel.root / "proc").iterdir() if entry.name.isdecimal()] == []
    assert cpu_s(kernel, "sublet/shared_cores") == 10.0


def test_time_that_stands_still_or_goes_back_adds_nothing(kernel: Kernel) -> None:
    kernel.start(WEB, SimDemand(1))
    kernel.step(100.0)
    kernel.step(90.0)
    assert cpu_s(kernel, WEB) == 0.0


def test_the_load_average_follows_the_runnable_tasks(kernel: Kernel) -> None:
    kernel.start(WEB, SimDemand(2))
    for second in range(1, 61):
        kernel.step(100.0 + second)
    assert (kernel.root / "proc/loadavg").read_text().startswith("1.26 ")
