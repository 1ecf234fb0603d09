"""Small readers for files of /proc, /sys and cgroups: one open, read and close each, and tolerant of vanished files."""

import errno
import functools
import os
import re
from collections.abc import Iterable

_CHUNK_BYTES = 65_536
ABSENT = frozenset({errno.ENOENT, errno.ENODEV, errno.ESRCH, errno.ENOTDIR, errno.EOPNOTSUPP})
"""No such file, a removed cgroup, an ended task, a controller that is off: the figure is absent, nothing is wrong."""


def read_text(path: str) -> str | None:
    """The whole file; None where file, task or cgroup does not exist (any more) or the kernel has the feature off.

    Plain system calls: half the cost of a file object, and the node agent reads thousands of such files a minute.

    Raises:
        OSError: the file is there but cannot be read (no right to, too many open files).
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            # The kernel may hand out a long file in pages: only an empty read means its end.
            parts = []
            while part := os.read(descriptor, _CHUNK_BYTES):
                parts.append(part)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in ABSENT:
            return None
        raise
    return b"".join(parts).decode(errors="replace")


def key_values(text: str, names: Iterable[str]) -> dict[str, int]:
    """Chosen lines "name number" of `memory.stat` or `cpu.stat`; a name that is not there is left out.

    Searched, not split: a `memory.stat` has half a hundred lines and three are wanted.
    """
    values = {}
    lines = f"\n{text}\n"
    for name in names:
        start = lines.find(f"\n{name} ")
        if start < 0:
            continue
        begin = start + len(name) + 2
        number = lines[begin : lines.index("\n", begin)]
        if number.isdigit():
            values[name] = int(number)
    return values


def meminfo_bytes(text: str, names: Iterable[str]) -> dict[str, int]:
    """Chosen fields of `/proc/meminfo` or of a NUMA node's `meminfo` ("Node 0 MemFree:  12 kB"), in bytes."""
    found = ((name, _meminfo_line(name).search(text)) for name in names)
    return {name: int(match[1]) * 1024 for name, match in found if match}


@functools.cache
def _meminfo_line(name: str) -> re.Pattern[str]:
    return re.compile(rf"^(?:Node +\d+ +)?{re.escape(name)}: +(\d+) kB$", re.MULTILINE)


def task_state(stat: str) -> str:
    """The state letter of `/proc/<tid>/stat`; the command before it may itself hold blanks and brackets."""
    end = stat.rfind(")")
    return stat[end + 2 : end + 3] if end > 0 else ""
