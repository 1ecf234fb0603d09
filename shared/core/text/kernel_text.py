"""Parse what the kernel prints into files of /proc, /sys and cgroups."""

import functools
import re
from collections.abc import Iterable


def key_values(text: str, names: Iterable[str]) -> dict[str, int]:
    """Chosen lines "name number" of `memory.stat` or `cpu.stat`; a name that is not there is left out.

    Searched, not split: a `memory.stat` has half a hundred lines and three are wanted.
    """
    values = {}
    # With line ends on both sides, so that "file" does not find "inactive_file".
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
    values = {}
    for name in names:
        match = _meminfo_line(name).search(text)
        if match:
            values[name] = int(match[1]) * 1024
    return values


@functools.cache
def _meminfo_line(name: str) -> re.Pattern[str]:
    return re.compile(rf"^(?:Node +\d+ +)?{re.escape(name)}: +(\d+) kB$", re.MULTILINE)


def task_state(stat: str) -> str:
    """The state letter of `/proc/<tid>/stat`; the command before it may itself hold blanks and brackets."""
    # From the right: `comm` is the process's to choose.
    end = stat.rfind(")")
    return stat[end + 2 : end + 3] if end > 0 else ""
