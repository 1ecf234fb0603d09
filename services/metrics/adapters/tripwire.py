"""Read the tripwire's figures: a few small files, many times between two passes.

Where each pod has a group of its own, tenants have as many files as there are pods. The group that holds all pods is
read first: while it has hardly moved, no tenant has moved more (docs/facts/linux-cpu.md#cpu-time-of-a-group), and their
last sum stands. Where it has moved, the groups of kubelet's classes say whose pods need not be read: in one that has
not moved at all nobody has, such as pods that sleep beside an agent that works.
"""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from services.metrics.sources.cpu_usage import FILES, usage_ns
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.hostfs import KeptFiles
from shared.core.cgroups.layout import class_group
from shared.core.text.kernel_text import meminfo_bytes
from shared.errors import Refused

UNSEEN_NS = 5_000_000
"""CPU time that all pods together may use before the tenants are read again. Over one probe of the default 0.1 s it is
0.05 cores: a tenth of the step that wakes a pass. A sum that stands is too low by less than this, so that the next rise
looks larger than it is, and never smaller."""

_CLASS = (class_group("shared_cores"),)


def _one_group() -> Sequence[str]:
    return _CLASS


class HostTripwire:
    """Reads the CPU time of the tenants' cgroups, and free memory."""

    def __init__(
        self, host_root: Path, cgroups: Cgroups, tenants: Callable[[], Sequence[str]] = _one_group, all_pods: str = ""
    ) -> None:  # fmt: skip
        """`tenants`: the groups that hold the tenants; the very same sequence as long as they do not change.
        `all_pods`: the group that holds these groups and everybody else; empty if there is none."""
        self._files = KeptFiles()
        self._cgroups, self._tenants = cgroups, tenants
        self._meminfo_path = str(host_root / "proc/meminfo")
        self._groups: Sequence[str] = tenants()
        self._usage_paths = self._paths(self._groups)
        self._homes = _by_home(self._usage_paths)
        self._sums: dict[str, tuple[int, int]] = {}
        """By file of a home, its CPU time and the sum of its tenants when they were last read."""
        self._all_paths = self._paths([all_pods] if all_pods else [])
        self._last: tuple[int, int] | None = None
        """CPU time of all pods and of the tenants when the tenants were last read; None: they must be read."""

    def probe(self) -> tuple[int | None, int | None]:
        """Return the tenants' CPU time so far in nanoseconds, and free bytes; None for what cannot be read.

        Missing groups are left out, unless all are missing. Sums over different groups cannot be compared, so the first
        probe after a change is ignored.
        """
        changed = self._tenants() is not self._groups
        if changed:
            self._follow()
        try:
            free = meminfo_bytes(self._files.read(self._meminfo_path) or "", ("MemFree",)).get("MemFree")
            return (None if changed else self._usage()), free
        except (OSError, ValueError):
            # The next full pass meets the same file and reports what is wrong with it.
            return None, None

    def forget(self) -> None:
        """Take nothing over from earlier probes: a pass is about to read the same counters."""
        self._last = None
        self._sums.clear()

    def close(self) -> None:
        """Close the files that are kept open."""
        self._files.close()

    def _usage(self) -> int | None:
        all_ns = self._all_pods()
        if all_ns is not None and self._last is not None and 0 <= all_ns - self._last[0] < UNSEEN_NS:
            return self._last[1]
        tenants_ns = self._tenants_sum()
        self._last = None if all_ns is None or tenants_ns is None else (all_ns, tenants_ns)
        return tenants_ns

    def _all_pods(self) -> int | None:
        """Return the CPU time of all pods; None if unknown. Read before the tenants': what is used in between counts
        as unseen."""
        return self._read_or_none(self._all_paths[0]) if self._all_paths else None

    def _tenants_sum(self) -> int | None:
        found = [self._sum_in(home, paths) for home, paths in self._homes.items()]
        known = [sum_ns for is_there, sum_ns in found if is_there]
        if None in known:
            return None
        return sum(filter(None, known)) if known or not self._usage_paths else None

    def _sum_in(self, home: str, paths: Sequence[str]) -> tuple[bool, int | None]:
        """Return whether any of the tenants in a home is there, and their sum; None if one's CPU time is not known."""
        # Before the tenants: what is used in between makes the next reading another one. Not worth it for one alone.
        all_ns = self._read_or_none(home) if len(paths) > 1 else None
        last = self._sums.get(home)
        if all_ns and last is not None and last[0] == all_ns:
            return True, last[1]
        self._sums.pop(home, None)
        total, there = 0, 0
        for path in paths:
            is_there, usage = self._read(path)
            # A pod that has ended meanwhile; the list of pods will show it.
            if not is_there:
                continue
            if usage is None:
                return True, None
            total, there = total + usage, there + 1
        if all_ns and there:
            self._sums[home] = all_ns, total
        return there > 0, total

    def _read_or_none(self, path: str) -> int | None:
        with contextlib.suppress(OSError, ValueError):
            return self._read(path)[1]
        return None

    def _read(self, path: str) -> tuple[bool, int | None]:
        """Return whether a group is there, and its CPU time; None if its file does not say it."""
        if self._cgroups.version == 1:
            usage = self._files.number(path)
            return usage is not None, usage
        text = self._files.read(path)
        return text is not None, usage_ns(text, 2)

    def _follow(self) -> None:
        before, self._groups, self._last = self._usage_paths, self._tenants(), None
        self._usage_paths = self._paths(self._groups)
        self._homes, self._sums = _by_home(self._usage_paths), {}
        self._files.drop({path.rpartition("/")[0] for path in set(before) - set(self._usage_paths)})

    def _paths(self, groups: Sequence[str]) -> list[str]:
        """The files of the groups; a pass names the group whose name is not allowed."""
        controller, name = FILES[self._cgroups.version]
        paths = []
        for group in groups:
            try:
                paths.append(str(self._cgroups.folder(group, controller) / name))
            except Refused:
                continue
        return paths


def _by_home(paths: Sequence[str]) -> dict[str, list[str]]:
    """The files by that of the group above theirs."""
    found: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        found.setdefault(f"{folder.rpartition('/')[0]}/{name}", []).append(path)
    return found
