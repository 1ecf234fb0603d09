"""Read the tripwire's figures: a few small files, many times between two passes."""

from collections.abc import Callable, Sequence
from pathlib import Path

from services.metrics.sources.cpu_usage import FILES, usage_ns
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.hostfs import KeptFiles
from shared.core.cgroups.layout import class_group
from shared.core.text.kernel_text import meminfo_bytes
from shared.errors import Refused

_CLASS = (class_group("shared_cores"),)


def _one_group() -> Sequence[str]:
    return _CLASS


class HostTripwire:
    """Reads the CPU time of the tenants' cgroups, and free memory."""

    def __init__(
        self, host_root: Path, cgroups: Cgroups, tenants: Callable[[], Sequence[str]] = _one_group
    ) -> None:  # fmt: skip
        """`tenants`: the groups that hold the tenants; the very same sequence as long as they do not change."""
        self._files = KeptFiles()
        self._cgroups, self._tenants = cgroups, tenants
        self._meminfo_path = str(host_root / "proc/meminfo")
        self._groups: Sequence[str] = tenants()
        self._usage_paths = self._paths()

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

    def close(self) -> None:
        """Close the files that are kept open."""
        self._files.close()

    def _usage(self) -> int | None:
        total, there = 0, 0
        for path in self._usage_paths:
            is_there, usage = self._read(path)
            # A pod that has ended meanwhile; the list of pods will show it.
            if not is_there:
                continue
            if usage is None:
                return None
            total, there = total + usage, there + 1
        return total if there or not self._usage_paths else None

    def _read(self, path: str) -> tuple[bool, int | None]:
        """Return whether a group is there, and its CPU time; None if its file does not say it."""
        if self._cgroups.version == 1:
            usage = self._files.number(path)
            return usage is not None, usage
        text = self._files.read(path)
        return text is not None, usage_ns(text, 2)

    def _follow(self) -> None:
        before, self._groups = self._usage_paths, self._tenants()
        self._usage_paths = self._paths()
        self._files.drop({path.rpartition("/")[0] for path in set(before) - set(self._usage_paths)})

    def _paths(self) -> list[str]:
        """The files of the groups; a pass names the group whose name is not allowed."""
        controller, name = FILES[self._cgroups.version]
        paths = []
        for group in self._groups:
            try:
                paths.append(str(self._cgroups.folder(group, controller) / name))
            except Refused:
                continue
        return paths
