"""`Cgroups` is the only code that reads, writes, creates and removes the cgroups of a host, v1 or v2.

A cgroup is named by its path relative to the cgroup root, the same for both versions. Every path component is checked,
and writes follow no symbolic link, so that no name can leave the root (docs/facts/safety-rules.md#rule-8-least-right).
Reads skip the check for links: they are the bulk of the work, and the resulting figures are only compared.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from shared.adapters.host.hostfs import SHORT_BYTES, read_text
from shared.core.cgroups.group_path import group_parts, is_component
from shared.core.cgroups.knobs import V1_FILES, V2_FILES, Knob, Version, from_file, to_file
from shared.errors import Refused, Unavailable

# cpuacct has no setting here: it is where the CPU counters of a group lie on v1.
V1_CONTROLLERS = ("cpuset", "cpu", "cpuacct", "memory")
V2_CONTROLLERS = ("cpuset", "cpu", "memory")
GONE = (errno.ENOENT, errno.ENODEV)  # docs/facts/linux-cgroups.md#a-group-that-vanishes
_LEAST_LINKS = 2  # of a folder: its name and its own "."
_INHERIT_TRIES = 3  # the parent's set may be changed by qrm between reading it and taking it over


def _written(path: Path, text: str, flags: int) -> bool:
    try:
        # No O_CREAT: if the kernel offers no such file there is nothing to write to.
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | flags)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        # A line also names a device, and ENODEV is returned for that as well: the file exists then.
        if error.errno in GONE and not (error.errno == errno.ENODEV and not flags and path.exists()):
            return False
        raise
    return True


@lru_cache(maxsize=4096)
def _joined(top: str, controller: str, group: str) -> str:
    return "/".join(filter(None, (top, controller, *group_parts(group))))


class Cgroups:
    """Reads and writes below `<host_root>/sys/fs/cgroup`."""

    def __init__(self, host_root: Path) -> None:
        self.host_root = host_root
        self.root = host_root / "sys/fs/cgroup"
        self._top = str(self.root)
        self.version: Version = 2 if (self.root / "cgroup.controllers").exists() else 1
        if self.version == 1 and not (self.root / "cpuset").is_dir():
            raise Unavailable(f"{self.root}: neither cgroup v2 nor a v1 cpuset hierarchy is mounted there")

    @property
    def controllers(self) -> tuple[str, ...]:
        """The hierarchies a cgroup is made in: one name each on v1, a single empty name on v2."""
        return V1_CONTROLLERS if self.version == 1 else ("",)

    def folder(self, group: str, controller: str = "") -> Path:
        """The folder of a cgroup; `controller` matters on v1 only.

        Raises:
            Refused: a component of the name is not allowed, or is a symbolic link.
        """
        path = self.root / controller if self.version == 1 and controller else self.root
        for part in group_parts(group):
            path = path / part
            # At every step: a link in the middle would lead out as well as one at the end.
            if path.is_symlink():
                raise Refused(f"cgroup {group!r}: {path} is a symbolic link", reason="bad_path")
        return path

    def file(self, group: str, knob: Knob) -> Path | None:
        """The file of a setting; None where this version has none."""
        if self.version == 2:
            name = V2_FILES.get(knob)
            return self.folder(group) / name if name else None
        entry = V1_FILES.get(knob)
        return self.folder(group, entry[0]) / entry[1] if entry else None

    def _place(self, group: str, controller: str) -> str:
        """Where to read a cgroup: as `folder`, without the look for symbolic links."""
        return _joined(self._top, controller if self.version == 1 else "", group)

    def exists(self, group: str) -> bool:
        """Return whether the cgroup exists (v1: in the cpuset hierarchy)."""
        return self.folder(group, "cpuset").is_dir()

    def text(self, group: str, name: str, controller: str = "") -> str | None:
        """Return a file of a cgroup; None if the cgroup or the file does not exist (any more)."""
        return read_text(f"{self._place(group, controller)}/{name}", short_bytes=SHORT_BYTES)

    def raw(self, group: str, knob: Knob) -> str | None:
        """The text of a setting's file; None where it does not exist."""
        if self.version == 2:
            name = V2_FILES.get(knob)
            return self.text(group, name) if name else None
        entry = V1_FILES.get(knob)
        return self.text(group, entry[1], entry[0]) if entry else None

    def read(self, group: str, knob: Knob) -> str | int | None:
        """A setting in the knob's unit; None where it does not exist."""
        text = self.raw(group, knob)
        return None if text is None else from_file(knob, text, self.version)

    def effective_cpus(self, group: str) -> str | None:
        """The CPUs that the kernel really grants (v2 falls back to the parent's set without a word)."""
        text = self.text(group, "cpuset.effective_cpus" if self.version == 1 else "cpuset.cpus.effective", "cpuset")
        return None if text is None else text.strip()

    def effective_mems(self, group: str) -> str | None:
        """The memory nodes that the kernel really grants."""
        text = self.text(group, "cpuset.effective_mems" if self.version == 1 else "cpuset.mems.effective", "cpuset")
        return None if text is None else text.strip()

    def write(self, group: str, knob: Knob, value: str | int) -> bool:
        """Write one setting; False where this version or kernel has no such file, or the cgroup is gone.

        Raises:
            OSError: the kernel refused the value.
            ValueError: an empty CPU or memory node list; no cgroup is ever given one.
        """
        path = self.file(group, knob)
        if path is None:
            return False
        text = to_file(knob, value, self.version)
        if not text:
            raise ValueError(f"cgroup {group!r}: an empty {knob} is never written; name at least one CPU or node")
        return _written(path, text, os.O_TRUNC)

    def write_line(self, group: str, name: str, line: str, controller: str = "") -> bool:
        """Write a line to a file that has one line per device; return False if the file or the group does not exist.

        Raises:
            OSError: the kernel refused the line.
        """
        return _written(self.folder(group, controller) / name, f"{line}\n", 0)

    def make(self, group: str) -> None:
        """Create a cgroup and its parents in every hierarchy; a fresh one takes its parent's CPUs and nodes.

        On v2 the controllers are enabled for children on the way down, in the root and in Sublet's own groups only.

        Raises:
            OSError: no right to, or a controller is missing.
        """
        parts = [p for p in group.split("/") if p]
        for depth in range(1, len(parts) + 1):
            here, parent = "/".join(parts[:depth]), "/".join(parts[: depth - 1])
            if self.version == 2:
                self._enable(parent)
            for controller in self.controllers:
                folder = self.folder(here, controller)
                if not folder.is_dir():
                    folder.mkdir(exist_ok=True)
                if controller in ("cpuset", ""):
                    self._inherit(here, parent)

    def _enable(self, parent: str) -> None:
        control = self.folder(parent) / "cgroup.subtree_control"
        enabled = control.read_text().split() if control.exists() else []
        missing = [f"+{name}" for name in V2_CONTROLLERS if name not in enabled]
        if missing:
            control.write_text(" ".join(missing))

    def _inherit(self, group: str, parent: str) -> None:
        # v1: a set without memory nodes and CPUs refuses tasks with ENOSPC; nodes first, then CPUs. v2 grants a group
        # with empty files its parent's, but a reader of `cpuset.cpus` would not learn which.
        for knob in (Knob.MEMS, Knob.CPUS):
            for tries_left in reversed(range(_INHERIT_TRIES)):
                theirs = str(self.read(parent, knob) or "")
                # A group that has a set already keeps it: it may be one that qrm has written.
                if str(self.read(group, knob) or "") or not theirs:
                    break
                try:
                    self.write(group, knob, theirs)
                except PermissionError:  # the parent has become smaller meanwhile
                    if not tries_left:
                        raise

    def attach(self, group: str, pid: int) -> None:
        """Move a process into the cgroup, in every hierarchy.

        Raises:
            OSError: the process or the cgroup is gone, or the set is empty.
        """
        for controller in self.controllers:
            (self.folder(group, controller) / "cgroup.procs").write_text(str(pid))

    def pids(self, group: str) -> list[int]:
        """Return the processes in the cgroup and everything below it, ascending; empty if it is gone."""
        # From all hierarchies: on v1 a process can be in the group of one controller and elsewhere in another.
        found: set[int] = set()
        for controller in self.controllers:
            top = self.folder(group, controller)
            for folder, _, files in os.walk(top):
                if "cgroup.procs" in files:
                    with contextlib.suppress(OSError):
                        found.update(int(line) for line in (Path(folder) / "cgroup.procs").read_text().split())
        return sorted(found)

    def children(self, group: str) -> list[str]:
        """Names of the cgroups directly below, ascending; names that Sublet would never use are left out."""
        return list(self.inodes(group))

    def inodes(self, group: str) -> dict[str, int]:
        """Return `children` with the inode of each: a recreated cgroup has another inode."""
        try:
            with os.scandir(self._place(group, "cpuset")) as entries:
                found = [(entry.name, entry.inode()) for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError as error:
            if error.errno in GONE:
                return {}
            raise
        return {name: inode for name, inode in sorted(found) if is_component(name)}

    def mark(self, group: str) -> object:
        """Return a value that changes when the cgroup is recreated or the number of its direct children changes;
        None if unknown. A replaced child is not noticed
        (docs/facts/linux-cgroups.md#how-many-groups-lie-in-a-group)."""
        try:
            status = os.stat(self._place(group, "cpuset"))  # noqa: PTH116 - a tenth of a listing, asked as often
        except OSError as error:
            if error.errno in GONE:
                return None
            raise
        # Some file systems, which are not the kernel's cgroups, do not count a folder's links.
        return None if status.st_nlink < _LEAST_LINKS else (status.st_ino, status.st_nlink, status.st_mtime_ns)

    def tree(self, group: str) -> Iterator[str]:
        """The cgroup and everything below it, parents first."""
        # A read: without the look for links, which takes longer than all else here.
        if os.path.isdir(self._place(group, "cpuset")):  # noqa: PTH112 - asked of every pod
            yield from self._below(group)

    def _below(self, group: str) -> Iterator[str]:
        yield group
        for child in self.children(group):
            yield from self._below(f"{group}/{child}")

    def remove(self, group: str) -> bool:
        """Remove a cgroup and everything below it, deepest first; False while a task is still in it."""
        # Goes on after a group that is still busy: what can go goes now, and the next call has less to do.
        emptied = True
        for controller in self.controllers:
            top = self.folder(group, controller)
            if not top.is_dir():
                continue
            for folder, _, _ in os.walk(top, topdown=False):
                try:
                    os.rmdir(folder)  # noqa: PTH106 - a cgroup folder's files vanish with it
                except OSError as error:
                    if error.errno not in GONE:
                        emptied = False
        return emptied
