"""The cgroup tree of a generated host, v1 or v2: the files of a new cgroup, counters, removal.

It differs from a kernel in one thing: a new cgroup starts with its parent's CPUs and memory nodes, on v2 too, and what
is written to `cpuset.cpus` is granted at once (`cpuset.cpus.effective` is the same file under a second name). A set
that a kernel would not grant, because it exceeds the parent's or is empty, is reported by `violations` instead.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from shared.adapters.host.cgroup import V2_CONTROLLERS, Cgroups
from shared.core.cgroups.knobs import MIN_SHARES, UNLIMITED, Knob, from_file, weight_of_shares
from shared.core.cgroups.layout import QOS_CLASSES, ROOT, class_group
from shared.core.cpus.cpuset import CpuSet
from sublet.sim.machine import SimMachine
from sublet.sim.model import Counters, ancestors
from sublet.sim.proc import CALM_PSI, PAGE_BYTES, psi_text
from sublet.sim.tree import HostFiles

V1_NO_LIMIT = "9223372036854771712"  # the largest page-aligned number: how v1 prints "no limit"
_ALL_V2 = " ".join((*V2_CONTROLLERS, "io", "pids"))
_TOP = "sys/fs/cgroup"
_TASK_FILES = {"cgroup.procs": ""}
_TRIES, _PAUSE_S = 20, 0.0005
_NO_REFAULTS = {"workingset_refault_anon": 0, "workingset_refault_file": 0}

_BORN_V1: dict[str, dict[str, str]] = {
    "cpuset": {"cpuset.cpu_exclusive": "0", "cpuset.mem_exclusive": "0", "cpuset.memory_migrate": "0"},
    "cpu": {
        "cpu.shares": "1024",
        "cpu.idle": "0",
        "cpu.cfs_quota_us": "-1",
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_burst_us": "0",
    },
    "cpuacct": {},
    "memory": {"memory.limit_in_bytes": V1_NO_LIMIT, "memory.soft_limit_in_bytes": V1_NO_LIMIT},
}
_BORN_V2 = {
    "cgroup.subtree_control": "",
    "cgroup.controllers": _ALL_V2,
    "cpu.weight": "100",
    "cpu.idle": "0",
    "cpu.max": "max 100000",
    "cpu.max.burst": "0",
    "memory.max": "max",
    "memory.high": "max",
    "memory.min": "0",
    "memory.low": "0",
    "memory.pressure": CALM_PSI,
    "io.pressure": CALM_PSI,
    "io.stat": "",
}


class SimGroups:
    """Plays the kernel's part below `<root>/sys/fs/cgroup`; reads what the services wrote there."""

    def __init__(self, host: HostFiles, machine: SimMachine) -> None:
        self._host, self._machine = host, machine
        self._known: set[str] = set()
        if machine.cgroup_version == 2:
            host.put(f"{_TOP}/cgroup.controllers", _ALL_V2 + "\n")
        else:
            for controller in _BORN_V1:
                host.put(f"{_TOP}/{controller}/cgroup.procs", "")
        self.cgroups = Cgroups(host.root)
        self._adopt("")
        self.make(ROOT)
        for qos in QOS_CLASSES:
            self.make(class_group(qos))

    def make(self, group: str) -> None:
        """Create a cgroup, and its parents, with all their files, as a kernel would."""
        self.cgroups.make(group)
        *below_root, _ = ancestors(group)
        for part in reversed(below_root):
            self._adopt(part)

    def adopt_new(self) -> None:
        """Fill cgroups that somebody else made, with mkdir, since the last time."""
        present = set(self.cgroups.tree(ROOT))
        for group in sorted(present - self._known):
            self._adopt(group)
        self._known = present

    def remove(self, group: str) -> None:
        """Take a cgroup and everything below it away; a plain folder's files do not vanish by themselves."""
        for controller in self.cgroups.controllers:
            self._host.remove(self._name(group, controller))

    def set_pids(self, group: str, pids: Sequence[int]) -> None:
        """Say which processes are in the cgroup."""
        text = "".join(f"{pid}\n" for pid in pids)
        threads = "tasks" if self._machine.cgroup_version == 1 else "cgroup.threads"
        for controller in self.cgroups.controllers:
            for name in ("cgroup.procs", threads):
                self._put(group, controller, name, text)

    def cpus(self, group: str) -> CpuSet:
        """CPUs that tasks of the cgroup may use: its own set, within those of everything above it."""
        if not group:
            return self._machine.topology.all
        own = CpuSet.parse(str(self._read(group, Knob.CPUS) or ""))
        above = self.cpus(group.rpartition("/")[0])
        # As on v2: a set that has nothing in common with the parent's falls back to the parent's.
        return (own & above) or above

    def limit_cores(self, group: str) -> float | None:
        """The CPU limit of this cgroup alone."""
        millis = self._read(group, Knob.CPU_QUOTA)
        return None if millis in (None, UNLIMITED) else int(millis) / 1000

    def memory_limit_bytes(self, group: str) -> int | None:
        """The memory limit of this cgroup alone; `memory.high` slows work down and kills nobody, it is not played."""
        limit = self._read(group, Knob.MEMORY_MAX)
        return None if limit in (None, UNLIMITED) else int(limit)

    def idle(self, group: str) -> bool:
        """Whether the cgroup has so little weight that its siblings go first."""
        weakest = MIN_SHARES if self._machine.cgroup_version == 1 else weight_of_shares(MIN_SHARES)
        idle, weight = self._read(group, Knob.CPU_IDLE), self._read(group, Knob.CPU_SHARES)
        return idle == 1 or (weight is not None and int(weight) <= weakest)

    def violations(self) -> Iterator[str]:
        """CPU sets that a kernel would refuse or silently replace: empty ones, and those that leave the parent's."""
        for group in self.cgroups.tree(ROOT):
            parent = group.rpartition("/")[0]
            own = CpuSet.parse(str(self._read(group, Knob.CPUS) or ""))
            above = CpuSet.parse(_settled(partial(self.cgroups.effective_cpus, parent)))
            if not own or not own <= above:
                yield f"cgroup {group} has CPUs {str(own) or 'none'!r} below a parent with {above}"

    def write(self, group: str, counters: Counters) -> None:
        """Show a cgroup's counters."""
        if self._machine.cgroup_version == 1:
            self._write_v1(group, counters)
        else:
            self._write_v2(group, counters)

    def _write_v1(self, group: str, c: Counters) -> None:
        throttling = f"nr_periods {int(c.periods)}\nnr_throttled {int(c.throttled_periods)}\n"
        self._put(group, "cpu", "cpu.stat", f"{throttling}throttled_time {int(c.throttled_s * 1e9)}\n")
        self._put(group, "cpuacct", "cpuacct.usage", f"{int(c.cpu_s * 1e9)}\n")
        self._put(group, "cpuacct", "cpuacct.stat", f"user {int(c.cpu_s * 100)}\nsystem 0\n")
        rows = {"cache": 0, "rss": c.memory_bytes, "shmem": 0, "inactive_file": 0, "active_file": 0, **_NO_REFAULTS}
        lines = [f"{prefix}{name} {value}\n" for prefix in ("", "total_") for name, value in rows.items()]
        self._put(group, "memory", "memory.stat", "".join(lines))
        self._put(group, "memory", "memory.usage_in_bytes", f"{c.memory_bytes}\n")
        spread, nothing = self._spread(c.memory_bytes // PAGE_BYTES), self._spread(0)
        lines = [f"hierarchical_total={spread}\n", f"hierarchical_file={nothing}\n", f"hierarchical_anon={spread}\n"]
        self._put(group, "memory", "memory.numa_stat", "".join(lines))

    def _write_v2(self, group: str, c: Counters) -> None:
        used_us = int(c.cpu_s * 1e6)
        usage = f"usage_usec {used_us}\nuser_usec {used_us}\nsystem_usec 0\n"
        throttling = f"nr_periods {int(c.periods)}\nnr_throttled {int(c.throttled_periods)}\n"
        self._put(group, "", "cpu.stat", f"{usage}{throttling}throttled_usec {int(c.throttled_s * 1e6)}\n")
        self._put(group, "", "cpu.pressure", psi_text(c.stall, full=True))
        rows = {"anon": c.memory_bytes, "file": 0, "shmem": 0, "inactive_file": 0, "active_file": 0, **_NO_REFAULTS}
        self._put(group, "", "memory.stat", "".join(f"{name} {value}\n" for name, value in rows.items()))
        if group:  # the root has no counter of its own
            self._put(group, "", "memory.current", f"{c.memory_bytes}\n")
            spread, nothing = (self._spread(amount).partition(" ")[2] for amount in (c.memory_bytes, 0))
            self._put(group, "", "memory.numa_stat", f"anon {spread}\nfile {nothing}\n")

    def _read(self, group: str, knob: Knob) -> str | int | None:
        """A setting; None where there is none, or where its writer was killed between emptying and writing the file."""
        text = _settled(partial(self.cgroups.raw, group, knob))
        return from_file(knob, text, self.cgroups.version) if text else None

    def _spread(self, amount: int) -> str:
        """An amount and its even parts on the NUMA nodes, as `memory.numa_stat` on v1 writes them."""
        numas = list(self._machine.topology.numas)
        return " ".join([str(amount), *(f"N{numa}={amount // len(numas)}" for numa in numas)])

    def _put(self, group: str, controller: str, name: str, text: str) -> None:
        self._host.put(f"{self._name(group, controller)}/{name}", text)

    def _name(self, group: str, controller: str) -> str:
        """The folder of a cgroup below the host's root; `controller` matters on v1 only."""
        on_v1 = controller if self._machine.cgroup_version == 1 else ""
        return "/".join(part for part in (_TOP, on_v1, group) if part)

    def _adopt(self, group: str) -> None:
        if self._machine.cgroup_version == 2:
            folder = self.cgroups.folder(group)
            _create(folder, _TASK_FILES | {"cgroup.threads": ""} | ({} if not group else _BORN_V2))
            self._adopt_cpuset(folder, group, "cpuset.cpus.effective", "cpuset.mems.effective")
        else:
            for controller, files in _BORN_V1.items():
                folder = self.cgroups.folder(group, controller)
                folder.mkdir(exist_ok=True)
                _create(folder, _TASK_FILES | {"tasks": ""} | files)
            self._adopt_cpuset(
                self.cgroups.folder(group, "cpuset"), group, "cpuset.effective_cpus", "cpuset.effective_mems"
            )
        if not (self._usage_file(group)).exists():
            self.write(group, Counters())

    def _usage_file(self, group: str) -> Path:
        if self._machine.cgroup_version == 2:
            return self.cgroups.folder(group) / "cpu.stat"
        return self.cgroups.folder(group, "cpuacct") / "cpuacct.usage"

    def _adopt_cpuset(self, folder: Path, group: str, effective_cpus: str, effective_mems: str) -> None:
        parent = group.rpartition("/")[0]
        for knob, effective, whole in (
            (Knob.CPUS, effective_cpus, str(self._machine.topology.all)),
            (Knob.MEMS, effective_mems, self._machine.mems),
        ):
            granted, own = folder / effective, folder / knob.value
            if not group:
                granted.write_text(f"{whole}\n")
            if (group or self._machine.cgroup_version == 1) and not (own.exists() and _settled(own.read_text)):
                own.write_text((self.cgroups.text(parent, effective, "cpuset") or "") if group else f"{whole}\n")
            if not granted.exists():
                os.link(own, granted)


def _settled(read: Callable[[], str | None]) -> str:
    """A file's text; "" for one that is not there, or stays empty.

    A plain file is empty, or of two texts, for a moment while somebody replaces it, which no file of a kernel ever is:
    so it must say the same twice.
    """
    before = None
    for _ in range(_TRIES):
        text = read()
        if text is None:
            return ""
        if text.strip():
            if text == before:
                return text
            before = text
            continue
        time.sleep(_PAUSE_S)
    return before or ""


def _create(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        if not path.exists():
            path.write_text(f"{text}\n" if text and not text.endswith("\n") else text)
