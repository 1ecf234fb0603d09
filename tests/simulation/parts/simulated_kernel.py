"""A cgroup tree in memory, v1 or v2, with the rules that a kernel has, and writes that it refuses or that a crash ends.

What it takes and refuses is as measured (docs/facts/linux-cgroups.md#cpu-sets): v1 wants every child within its
parent at every moment; v2 takes any set and grants what the parent has of it.
"""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from seeded_loop import CURRENT

from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.knobs import V1_FILES, V2_FILES, Knob, Version, to_file
from shared.core.cpus.cpuset import CpuSet

_BORN: dict[Version, dict[str, str]] = {
    1: {
        "cpu/cpu.shares": "1024",
        "cpu/cpu.idle": "0",
        "cpu/cpu.cfs_quota_us": "-1",
        "cpu/cpu.cfs_period_us": "100000",
        "cpu/cpu.cfs_burst_us": "0",
        "memory/memory.limit_in_bytes": "9223372036854771712",
        "memory/memory.usage_in_bytes": "0",
        "memory/memory.stat": "cache 0\ntotal_inactive_file 0",
        "cpuacct/cpuacct.usage": "0",
    },
    2: {
        "cpu.weight": "100",
        "cpu.idle": "0",
        "cpu.max": "max 100000",
        "cpu.max.burst": "0",
        "cpu.stat": "usage_usec 0",
        "memory.max": "max",
        "memory.high": "max",
        "memory.min": "0",
        "memory.low": "0",
        "memory.current": "0",
        "memory.stat": "anon 0\ninactive_file 0",
    },
}


class SimCgroups(Cgroups):
    """The cgroups of one node's kernel; every process of the node sees the same."""

    def __init__(self, host_root: Path, cpus: str, mems: str, version: Version, random: Random) -> None:
        self.host_root, self.root = host_root, host_root / "sys/fs/cgroup"
        self.version: Version = version
        self.files: dict[str, dict[str, str]] = {"": {"cpus": cpus, "mems": mems, **_BORN[version]}}
        self.inode: dict[str, int] = {"": 1}
        self._random, self._made = random, 1
        self.narrowed: set[int] = set()
        """Inodes of the groups that a write has ever left with fewer CPUs."""
        self.refusal = 0.0
        """Chance that the kernel refuses a write for a reason of its own."""
        self.read_only = False
        self.written: Callable[[str, Knob], None] = lambda _group, _knob: None
        """Called after each write that went through."""

    def add(self, group: str) -> None:
        """mkdir by somebody else, such as kubelet: a child begins with its parent's set."""
        parts = group.split("/")
        for depth in range(1, len(parts) + 1):
            here, parent = "/".join(parts[:depth]), "/".join(parts[: depth - 1])
            if here not in self.files:
                sets = {name: self.files[parent][name] if self.version == 1 else "" for name in ("cpus", "mems")}
                self.files[here] = {**sets, **_BORN[self.version]}
                self._made += 1
                self.inode[here] = self._made

    def drop(self, group: str) -> None:
        """rmdir of a group and all below it, by somebody else."""
        for name in [name for name in self.files if name == group or name.startswith(f"{group}/")]:
            del self.files[name], self.inode[name]

    def cpus(self, group: str) -> CpuSet:
        """What the kernel grants a group."""
        own = CpuSet.parse(self.files[group]["cpus"])
        if not group or self.version == 1:
            return own
        above = self.cpus(_parent(group))
        return (own & above) or above

    def exists(self, group: str) -> bool:
        """Whether it is there."""
        return group in self.files

    def text(self, group: str, name: str, controller: str = "") -> str | None:
        """A file as it is."""
        files = self.files.get(group)
        if files is None:
            return None
        match name:
            case "cpuset.effective_cpus" | "cpuset.cpus.effective":
                return f"{self.cpus(group)}\n"
            case "cpuset.effective_mems" | "cpuset.mems.effective":
                return f"{files['mems'] or self.files['']['mems']}\n"
            case "cpuset.cpus" | "cpuset.mems":
                return files[name.removeprefix("cpuset.")] + "\n"
            case "cgroup.procs":
                return "1000\n" if group.count("/") > 2 else ""
        text = files.get(f"{controller}/{name}" if self.version == 1 and controller else name)
        return None if text is None else f"{text}\n"

    def write(self, group: str, knob: Knob, value: str | int) -> bool:
        """Write one setting under the kernel's rules."""
        process = CURRENT.get()
        if process is not None:
            process.step()
        entry = V1_FILES.get(knob) if self.version == 1 else None
        name = f"{entry[0]}/{entry[1]}" if entry else V2_FILES.get(knob, "") if self.version == 2 else ""
        if not name or group not in self.files:
            return False
        text = to_file(knob, value, self.version)
        if not text:
            raise ValueError(f"cgroup {group!r}: an empty {knob} is never written")
        if self.read_only:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        if self.refusal and self._random.random() < self.refusal:
            code = self._random.choice((errno.EBUSY, errno.EACCES, errno.EINVAL, errno.ENOSPC))
            raise OSError(code, os.strerror(code))
        if knob in (Knob.CPUS, Knob.MEMS):
            self._set(group, "cpus" if knob is Knob.CPUS else "mems", text)
        elif name in self.files[group]:
            self.files[group][name] = text
        else:
            return False
        self.written(group, knob)
        if process is not None:
            process.step()
        return True

    def _set(self, group: str, name: str, text: str) -> None:
        wanted = CpuSet.parse(text)
        if not wanted:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.version == 1:
            if not wanted <= CpuSet.parse(self.files[_parent(group)][name]):
                raise OSError(errno.EACCES, os.strerror(errno.EACCES))
            if any(not CpuSet.parse(self.files[child][name]) <= wanted for child in self.below(group)):
                raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        if name == "cpus" and wanted <= self.cpus(group) and wanted != self.cpus(group):
            self.narrowed.add(self.inode[group])
        self.files[group][name] = str(wanted)

    def write_line(self, group: str, name: str, line: str, controller: str = "") -> bool:
        """There are no disks."""
        return False

    def make(self, group: str) -> None:
        """mkdir by a process of ours."""
        if (process := CURRENT.get()) is not None:
            process.step()
        self.add(group)

    def inodes(self, group: str) -> dict[str, int]:
        """Inodes of the groups right below."""
        return {name.rpartition("/")[2]: self.inode[name] for name in sorted(self.below(group))}

    def mark(self, group: str) -> object:
        """Differs once it was made anew, or its children changed."""
        return None if group not in self.files else (self.inode[group], tuple(sorted(self.below(group))))

    def tree(self, group: str) -> Iterator[str]:
        """It and all below, parents first."""
        if group in self.files:
            yield from self._walk(group)

    def _walk(self, group: str) -> Iterator[str]:
        yield group
        for child in sorted(self.below(group)):
            yield from self._walk(child)

    def below(self, group: str) -> list[str]:
        """The groups right below."""
        depth, head = (group.count("/") + 1, f"{group}/") if group else (0, "")
        return [name for name in self.files if name.startswith(head) and name.count("/") == depth and name]


def _parent(group: str) -> str:
    return group.rpartition("/")[0]
