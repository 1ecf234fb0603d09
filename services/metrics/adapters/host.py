"""Read the host for the sources: every file at most once in a pass, cgroup folders found once."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, cast

from services.metrics.core.counters import Counts
from services.metrics.core.figures.target import Target
from services.metrics.core.reads.tally import CounterTally, tallied
from services.metrics.core.source import Host
from services.metrics.ports import PerfCounters
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.hostfs import KeptFiles, read_record, read_text, root_file_system
from shared.core.cgroups.knobs import Version
from shared.core.cgroups.layout import RECLAIM
from shared.core.file_system import FileSystem

_IDENTITY: dict[Version, tuple[str, str]] = {1: ("cpuacct", "cpuacct.usage"), 2: ("", "cpu.stat")}
"""v1: the hierarchy of the usage counter, the figure that a re-made cgroup would spoil."""

MOST_TASKS = 512
"""Tasks read in one pass by each source that looks at them, about 15 us each, if every container works; shared evenly.
Of each container at least four all the same: on 250 containers they are up to 1000."""
_LEAST_OF_ONE, _MOST_OF_ONE = 4, 64

T = TypeVar("T")


class HostReader:
    """Reads below one host root; `begin` opens a pass. Sources see it as `services.metrics.core.source.Host`."""

    def __init__(
        self,
        host_root: Path,
        cgroups: Cgroups,
        file_system: Callable[[str], FileSystem | None] = root_file_system,
        counters: PerfCounters | None = None,
    ) -> None:
        self.root = str(host_root).rstrip("/")
        self._file_system, self._counters = file_system, counters
        self._cgroups = cgroups
        self._files = KeptFiles()
        self._targets: Sequence[Target] = ()
        self._counted: Sequence[str] = ()
        self._folders: dict[tuple[str, str], str] = {}
        self._texts: dict[str, str | None] = {}
        self._found: dict[tuple[object, str], object] = {}
        self._tallies: dict[str, CounterTally] = {}
        self._turns: dict[str, dict[str, int]] = {}
        self.sees_tasks = _same_numbers(self.root)
        """Whether the tasks that its cgroups list can be found in `proc`. Not from another PID namespace, where those
        lists are empty: the load is unknown then, and not zero."""
        self.most_tasks = 0
        """How many tasks of one container may be read in this pass."""
        self.passes = 0
        """Number of this pass."""
        self.now_s = 0.0
        """When the target that is being read began to be read, by the monotonic clock."""

    @property
    def version(self) -> Version:
        """Which cgroup version the host has."""
        return self._cgroups.version

    def begin(self, targets: Sequence[Target]) -> None:
        """Forget what was read in the last pass, and the folders of cgroups that are no longer measured."""
        self.passes += 1
        self._texts.clear()
        self._found.clear()
        if self._counters is not None:
            self._follow(self._counters, targets)
        # The very same list as long as nothing has changed (`LayoutTargets`), so this is the usual end.
        if targets is self._targets:
            return
        self._targets = targets
        containers = sum(target.kind == "container" for target in targets)
        self.most_tasks = min(_MOST_OF_ONE, max(_LEAST_OF_ONE, MOST_TASKS // max(1, containers)))
        wanted = {target.group for target in targets}
        gone = {key: folder for key, folder in self._folders.items() if key[0] not in wanted}
        self._files.drop(gone.values())
        for key, folder in gone.items():
            del self._folders[key]
            self._tallies.pop(folder, None)
            self._turns.pop(folder, None)

    def _follow(self, counters: PerfCounters, targets: Sequence[Target]) -> None:
        """Count containers, tenants' first; the counts of pods and pools are their sums."""
        if targets is not self._targets:
            containers = [target for target in targets if target.kind == "container"]
            self._counted = [one.group for one in sorted(containers, key=lambda one: one.pool == RECLAIM)]
        counters.follow(self._counted)

    @property
    def uncounted(self) -> str:
        """Return why enabled performance counters have no figures; "" if nothing is wrong."""
        return "" if self._counters is None else self._counters.failure

    def counts(self, target: Target) -> Counts | None:
        """Return the counts of the target's cgroup in the last window. None if unknown."""
        return None if self._counters is None else self._counters.counts(target.group)

    def text(self, path: str) -> str | None:
        """A file below the host root ("proc/meminfo"); None where it does not exist."""
        return self.file(f"{self.root}/{path}")

    def group_text(self, target: Target, name: str, controller: str, *, seldom: bool = False) -> str | None:
        """A file of the target's cgroup; `controller` names the v1 hierarchy. None where it does not exist.

        One that is read `seldom` is not worth being kept open.
        """
        path = f"{self.group_folder(target, controller)}/{name}"
        return read_text(path) if seldom else self.file(path)

    def file(self, path: str) -> str | None:
        """A file by its whole path; None where it does not exist."""
        try:
            return self._texts[path]
        except KeyError:
            text = self._texts[path] = self._files.read(path)
            return text

    def record(self, path: str) -> str | None:
        """A short file below the host root that is read once and closed; None where it does not exist."""
        return read_record(f"{self.root}/{path}")

    def names(self, path: str) -> Sequence[str]:
        """Return the names in a folder below the host root, ascending; empty if it does not exist."""
        try:
            return sorted(os.listdir(f"{self.root}/{path}"))  # noqa: PTH208 - half the cost of a Path
        except FileNotFoundError:
            return ()

    def exists(self, path: str) -> bool:
        """Return whether a path below the host root exists, even as a dangling link."""
        return os.path.lexists(f"{self.root}/{path}")

    def groups_below(self, folder: str) -> Sequence[str]:
        """The folders of the cgroups directly below one."""
        try:
            # A folder's link count is 2 plus its folders: most cgroups are leaves and need no listing.
            if os.stat(folder).st_nlink == 2:  # noqa: PTH116 - half the cost of a Path
                return ()
            with os.scandir(folder) as entries:
                return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return ()

    def root_file_system(self) -> FileSystem | None:
        """Return how full the host's root file system is, the one figure that no file contains. None if unknown."""
        return self._file_system(self.root)

    def once(self, find: Callable[[Host, str], T], about: str) -> T:
        """Return the result of `find` for a folder or file, computed once a pass, because several targets may ask."""
        key = (find, about)
        if key not in self._found:
            self._found[key] = find(self, about)
        return cast("T", self._found[key])

    def tally(self, about: str, counters: Mapping[str, int], members: Collection[str], most_per_s: float) -> float:
        """The growth so far of a set of counters whose members come and go (`services.metrics.core.reads.tally`).

        `about` is a folder of a target and is forgotten with it.
        """
        before = self._tallies.get(about) or CounterTally(self.now_s)
        now = self._tallies[about] = tallied(before, counters, members, self.now_s, most_per_s)
        return now.total

    def turn(self, source: str, about: str) -> int:
        """How often the source has asked so before about a folder of a target; forgotten with it."""
        turns = self._turns.setdefault(about, {})
        turns[source] = turns.get(source, -1) + 1
        return turns[source]

    def group_folder(self, target: Target, controller: str) -> str:
        """The folder of the target's cgroup in a v1 hierarchy (the only one on v2).

        Raises:
            Refused: the cgroup's name is not allowed.
        """
        key = (target.group, controller)
        folder = self._folders.get(key)
        if folder is None:
            folder = self._folders[key] = str(self._cgroups.folder(*key))
        return folder

    def identity(self, target: Target) -> int | None:
        """Return a number that a recreated cgroup does not share; None if there is no cgroup.

        It is the inode of the usage file if that is open and has just answered, otherwise the inode of the folder.

        Raises:
            OSError: the folder is not accessible.
            Refused: the cgroup's name is not allowed.
        """
        controller, name = _IDENTITY[self.version]
        folder = self.group_folder(target, controller)
        path = f"{folder}/{name}"
        try:
            self.file(path)
        except OSError:
            pass  # the source of this file meets the same error and is named for it
        else:
            inode = self._files.inode(path)
            if inode is not None:
                return inode
        try:
            return os.stat(folder).st_ino  # noqa: PTH116 - half the cost
        except FileNotFoundError:
            return None

    def close(self) -> None:
        """Close the files that are kept open, and count no more."""
        self._files.close()
        if self._counters is not None:
            self._counters.close()


def _same_numbers(root: str) -> bool:
    """Return whether this process has the same process id on the host."""
    try:
        return os.readlink(f"{root}/proc/self") == str(os.getpid())  # noqa: PTH115 - as everywhere here
    except OSError:
        return True  # not a kernel's /proc: a tree of the simulator
