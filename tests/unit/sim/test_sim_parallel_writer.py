"""Another process writes a cgroup's files while the simulator reads them: it sees the old value or the new one."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import class_group
from shared.core.cpus.cpuset import CpuSet
from sublet.sim import groups as sim_groups
from sublet.sim.groups import SimGroups
from sublet.sim.machine import SimMachine
from sublet.sim.tree import HostFiles

GROUP = class_group("reclaimed_cores")
ROUNDS = 400
WRITER = """
import sys
from pathlib import Path
from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.knobs import Knob
cgroups, group = Cgroups(Path(sys.argv[1])), sys.argv[2]
print("writing", flush=True)
while True:
    for cpus, millis, size in (("0-3", 1500, 1 << 30), ("0-7", 44000, 1 << 31)):
        cgroups.write(group, Knob.CPUS, cpus)
        cgroups.write(group, Knob.CPU_QUOTA, millis)
        cgroups.write(group, Knob.MEMORY_MAX, size)
        cgroups.write(group, Knob.CPU_IDLE, 1)
"""


@pytest.fixture(params=[1, 2], ids=["cgroup-v1", "cgroup-v2"])
def groups(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SimGroups]:
    made = SimGroups(HostFiles(tmp_path), SimMachine(cgroup_version=request.param))
    for knob, value in ((Knob.CPUS, "0-3"), (Knob.CPU_QUOTA, 1500), (Knob.MEMORY_MAX, 1 << 30), (Knob.CPU_IDLE, 1)):
        made.cgroups.write(GROUP, knob, value)
    command = [sys.executable, "-c", WRITER, str(tmp_path), GROUP]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "writing\n"
    yield made
    writer.kill()
    writer.communicate()


def test_every_reading_is_a_value_that_was_written(groups: SimGroups, monkeypatch: pytest.MonkeyPatch) -> None:
    # However busy the machine is: the writer gets the time that it needs between emptying a file and filling it.
    monkeypatch.setattr(sim_groups, "_TRIES", 10_000)
    for _ in range(ROUNDS):
        assert groups.limit_cores(GROUP) in (1.5, 44.0)
        assert groups.memory_limit_bytes(GROUP) in (1 << 30, 1 << 31)
        assert groups.idle(GROUP)
        assert groups.cpus(GROUP) in (CpuSet.parse("0-3"), CpuSet.parse("0-7"))
        assert list(groups.violations()) == []


@pytest.mark.parametrize("name", ["cpu.cfs_quota_us", "memory.limit_in_bytes"])
def test_a_file_that_stays_empty_says_nothing(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    groups = SimGroups(HostFiles(tmp_path), SimMachine(cgroup_version=1))
    groups.cgroups.folder(GROUP, name.partition(".")[0]).joinpath(name).write_text("")
    read: Callable[[str], object] = groups.limit_cores if "cpu" in name else groups.memory_limit_bytes
    assert read(GROUP) is None
    assert pauses
