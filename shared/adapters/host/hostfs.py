"""Small readers for files of /proc, /sys and cgroups, tolerant of vanished files; `KeptFiles` for reading often."""

import errno
import os
import resource
from collections.abc import Iterable
from pathlib import Path

from shared.core.file_system import FileSystem

_CHUNK_BYTES = 65_536
_RECORD_BYTES = 4096
_MOST_KEPT = 8192
_KERNEL_FILE_SYSTEMS = frozenset({"proc", "sysfs", "cgroup", "cgroup2"})
SHORT_BYTES = 256
"""A shorter read of a cgroup's file is the whole file."""
_SHORT_BYTES = {"sysfs": _RECORD_BYTES, "cgroup": SHORT_BYTES, "cgroup2": SHORT_BYTES}
"""A shorter read is the whole file. The kernel returns as many whole records as fit into a page: those of cgroups
are short lines, while /proc has records longer than a page, which can follow a very short one."""
_NUMBER_BYTES = 32
_IN_MEMORY = frozenset({"tmpfs", "ramfs"})
ABSENT = frozenset({errno.ENOENT, errno.ENODEV, errno.ESRCH, errno.ENOTDIR, errno.EOPNOTSUPP})
"""No such file, a removed cgroup, an ended task, a controller that is off: the figure is absent, nothing is wrong."""


def read_text(path: str, short_bytes: int = 0) -> str | None:
    """Return the whole file; None if file, task or cgroup does not exist (any more) or the kernel has the feature
    off. A first part shorter than `short_bytes` is the whole file.

    Plain system calls cost half of a file object, and the node agent reads thousands of such files a minute.

    Raises:
        OSError: the file exists but cannot be read (no permission, too many open files).
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            parts = [os.read(descriptor, _CHUNK_BYTES)]
            # The kernel may hand out a long file in pages: only an empty read means its end.
            while parts[-1] and len(parts[0]) >= short_bytes:
                parts.append(os.read(descriptor, _CHUNK_BYTES))
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in ABSENT:
            return None
        error.filename = path  # a read that fails does not say of what
        raise
    return b"".join(parts).decode(errors="replace")


def lies_in_memory(folder: Path) -> bool:
    """Whether a reboot clears a folder; one that is not made yet lies where the nearest one above it does.

    Raises:
        OSError: it cannot be looked at.
    """
    there = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    return _file_systems().get(there.stat().st_dev) in _IN_MEMORY


def read_record(path: str) -> str | None:
    """A file that is one short record, such as `/proc/<tid>/stat`; None as `read_text`. One system call less.

    Raises:
        OSError: as `read_text`.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return os.read(descriptor, _RECORD_BYTES).decode(errors="replace")
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in ABSENT:
            return None
        raise


def root_file_system(host_root: str) -> FileSystem | None:
    """Return the file system of a host's root folder; None below a generated host.

    A generated host consists only of files: its folder is on a disk of the machine that simulates it, which says
    nothing about the simulated host. A real host has its kernel's /proc mounted.

    Raises:
        OSError: the root folder cannot be accessed.
    """
    root = host_root or "/"
    try:
        if os.stat(root).st_dev == os.stat(f"{host_root}/proc").st_dev:  # noqa: PTH116 - as all of this module
            return None
    except FileNotFoundError:
        return None
    found = os.statvfs(root)
    return FileSystem(
        capacity_bytes=found.f_blocks * found.f_frsize,
        used_bytes=(found.f_blocks - found.f_bfree) * found.f_frsize,
        available_bytes=found.f_bavail * found.f_frsize,
        inodes=found.f_files,
        inodes_free=found.f_ffree,
    )


class KeptFiles:
    """Reads the same files repeatedly, and keeps those of the kernel's own file systems open.

    Rereading an open file costs a seventh of open, read and close. A file of a removed cgroup fails when it is read,
    and is then opened again, so no value of the old cgroup counts for the new one. Plain files, which a simulator
    replaces as a whole, are opened each time.
    """

    def __init__(self, limit: int | None = None) -> None:
        """At most `limit` files stay open; by default half of what the process may open."""
        # The other half stays for sockets, databases and files that are read once.
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._limit = min(_MOST_KEPT, soft // 2) if limit is None else limit
        self._open: dict[str, tuple[int, int, int]] = {}
        """By path: descriptor, inode, and how few bytes are the whole file."""
        self._plain: set[str] = set()
        """Paths of files that are no kernel's own: they need not be looked at again before they are read."""
        self._file_systems: dict[int, str] = {}

    def read(self, path: str) -> str | None:
        """As `read_text`.

        Raises:
            OSError: as `read_text`.
        """
        if path in self._plain:
            return read_text(path)
        kept = self._open.get(path)
        if kept is not None:
            try:
                return _reread(kept[0], kept[2])
            except OSError as error:
                self._close(path)
                if error.errno not in ABSENT:
                    raise
        return self._first(path)

    def number(self, path: str) -> int | None:
        """Return the number that is the whole file; None as `read_text`.

        Raises:
            OSError: as `read_text`.
            ValueError: it is no number.
        """
        # A probe reads one for each tenant ten times a second: without a text between.
        try:
            return int(os.pread(self._open[path][0], _NUMBER_BYTES, 0))
        except (KeyError, OSError):  # not open yet, or gone: as any other file
            text = self.read(path)
        return None if text is None else int(text)

    def inode(self, path: str) -> int | None:
        """The inode of a file that is kept open; None for others. A re-made cgroup's files have others."""
        kept = self._open.get(path)
        return None if kept is None else kept[1]

    def drop(self, folders: Iterable[str]) -> None:
        """Close the files that lie in these folders."""
        gone = set(folders)
        self._plain = {path for path in self._plain if path.rpartition("/")[0] not in gone}
        for path in [path for path in self._open if path.rpartition("/")[0] in gone]:
            self._close(path)

    def close(self) -> None:
        """Close everything; the next read reopens."""
        self._plain.clear()
        for path in list(self._open):
            self._close(path)

    def __len__(self) -> int:
        return len(self._open)

    def _first(self, path: str) -> str | None:
        # Above the limit it is only slower.
        if len(self._open) >= self._limit:
            return read_text(path)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise
        keep = False
        try:
            status = os.fstat(descriptor)
            file_system = self._file_system(status.st_dev)
            # A kept descriptor of a plain file would keep showing the replaced file.
            keep = file_system in _KERNEL_FILE_SYSTEMS
            # A file in memory has its true length; the kernel's own have 0 or a page.
            known_bytes = status.st_size + 1 if file_system in _IN_MEMORY else 0
            short_bytes = _SHORT_BYTES.get(file_system, known_bytes)
            text = _reread(descriptor, short_bytes)
        except OSError as error:
            if error.errno in ABSENT:
                return None
            raise
        finally:
            if keep:
                self._open[path] = (descriptor, status.st_ino, short_bytes)
            else:
                os.close(descriptor)
        if not keep and len(self._plain) < self._limit:
            self._plain.add(path)
        return text

    def _file_system(self, device: int) -> str:
        # Read again for an unknown device, because something has been mounted since.
        if device not in self._file_systems:
            self._file_systems = _file_systems()
        return self._file_systems.setdefault(device, "")

    def _close(self, path: str) -> None:
        os.close(self._open.pop(path)[0])


def _reread(descriptor: int, short_bytes: int) -> str:
    part = os.pread(descriptor, _CHUNK_BYTES, 0)
    # A short first part is the whole file, and the read that would find the end is saved.
    if len(part) >= short_bytes:
        parts, end = [part], len(part)
        while part := os.pread(descriptor, _CHUNK_BYTES, end):
            parts.append(part)
            end += len(part)
        part = b"".join(parts)
    return part.decode(errors="replace")


def _file_systems() -> dict[int, str]:
    """The types of the mounted file systems by device, by `mountinfo` (man 5 proc)."""
    found: dict[int, str] = {}
    for line in (read_text("/proc/self/mountinfo") or "").splitlines():
        fields, _, rest = line.partition(" - ")
        major, _, minor = fields.split()[2].partition(":")
        found[os.makedev(int(major), int(minor))] = rest.partition(" ")[0]
    return found
