"""A node's cgroups: one root in each of this machine's hierarchies, and below it the daemons and `kubepods`."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slow_machines import patience_s

DAEMONS = "system"
"""Below the root, the group of everything that is no pod."""
END_LIMIT_S = patience_s(20.0)
POLL_S = 0.02
_CONTROLLERS = {"cpu", "cpuset", "memory", "pids", "io"}
_CPUSET_FILES = ("cpuset.mems", "cpuset.cpus")
_COMMON_OPTIONS = {"rw", "ro", "nosuid", "nodev", "noexec", "relatime"}


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted hierarchy of cgroups."""

    mounted_at: Path
    kind: str
    """`cgroup` or `cgroup2`."""
    chosen: str
    """The mount options that tell those of version 1 apart."""
    name: str
    """Of the node's root in it."""

    @property
    def root(self) -> Path:
        """The node's root in it."""
        return self.mounted_at / self.name

    def make(self) -> None:
        """Make the node's root and the group of its daemons, which processes may join."""
        if self.kind == "cgroup2":
            present = set((self.mounted_at / "cgroup.controllers").read_text().split())
            for name in sorted(_CONTROLLERS & present):
                (self.mounted_at / "cgroup.subtree_control").write_text(f"+{name}")
        for group in (self.root, self.root / DAEMONS):
            group.mkdir(exist_ok=True)
            for name in _CPUSET_FILES:  # version 1 leaves them empty, and then nothing may join
                if self.kind == "cgroup" and (group / name).exists():
                    (group / name).write_text((group.parent / name).read_text())


class Groups:
    """All of them."""

    def __init__(self, mounts: str, root: str) -> None:
        self.root = root
        self.hierarchies = list(_hierarchies(mounts, root))
        """Those that a text as /proc/self/mounts names."""

    def make(self) -> None:
        """Make the roots and the groups of the daemons."""
        for one in self.hierarchies:
            one.make()

    def remove(self) -> None:
        """End what runs there, and take all groups away.

        Raises:
            TimeoutError: a process does not end.
        """
        self.end_processes()
        for one in self.hierarchies:
            for folder, _, _ in os.walk(one.root, topdown=False):
                Path(folder).rmdir()

    def find(self, pattern: str) -> list[Path]:
        """The groups of a name (`kubepods/**/pod*`), as they lie in this machine's hierarchies."""
        while True:
            with contextlib.suppress(FileNotFoundError):  # one went while it was looked into, others were not looked at
                found = [place for one in self.hierarchies for place in one.root.glob(pattern)]
                return sorted(group for group in found if group.is_dir())

    def processes(self, below: str = "") -> Iterator[int]:
        """The process ids in all groups, or in those of one name."""
        for one in self.hierarchies:
            for folder, _, _ in os.walk(one.root / below):
                with contextlib.suppress(OSError):  # gone by now
                    yield from map(int, (Path(folder) / "cgroup.procs").read_text().split())

    def end_processes(self, below: str = "") -> None:
        """Kill what runs in all groups, or in those of one name (`kubepods`), until nothing is left there.

        Raises:
            TimeoutError: a process does not end.
        """
        end = time.monotonic() + END_LIMIT_S
        while pids := set(self.processes(below)):
            if time.monotonic() > end:
                raise TimeoutError(f"processes {sorted(pids)} of {self.root}: alive after {END_LIMIT_S:g} s of SIGKILL")
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(POLL_S)


def _hierarchies(mounts: str, root: str) -> Iterator[Hierarchy]:
    for line in mounts.splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup":
            chosen = ",".join(word for word in options.split(",") if word not in _COMMON_OPTIONS)
            yield Hierarchy(Path(place), kind, chosen, root)
        elif kind == "cgroup2":
            yield Hierarchy(Path(place), kind, "", root)
