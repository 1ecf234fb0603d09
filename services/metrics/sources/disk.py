"""Read the bytes that go to and from block devices: of the node by `/proc/diskstats`, of a container by its cgroup.

v1 counts what a cgroup's own tasks submit, without what the kernel writes back for them later; v2 (`io.stat`) has both.
Partitions, and devices that only stand for others, are left out on the node: their bytes would count twice.
"""

import re

from services.metrics.core.figures.figure import Figure, Rate
from services.metrics.core.figures.target import Target
from services.metrics.core.reads.gates import PAUSE_S, WORKED, Gate
from services.metrics.core.source import Host, Source

_SECTOR_BYTES = 512
"""The unit of `/proc/diskstats`, whatever the sector size of the device."""
_WHOLE_DISK = re.compile(r"^(?:(?:sd|vd|xvd|hd)[a-z]+|nvme\d+n\d+|mmcblk\d+|pmem\d+)$")
_V1_FILE = "blkio.throttle.io_service_bytes_recursive"
_READ, _WRITTEN = "disk_read_bytes", "disk_written_bytes"


def _read(host: Host, target: Target) -> dict[str, int]:
    if target.kind == "node":
        return _of_node(host.text("proc/diskstats"))
    if host.version == 1:
        return _of_v1(host.group_text(target, _V1_FILE, "blkio"))
    return _of_v2(host.group_text(target, "io.stat", "io"))


def _of_node(text: str | None) -> dict[str, int]:
    rows = [line.split() for line in (text or "").splitlines()]
    disks = [row for row in rows if len(row) > 9 and _WHOLE_DISK.match(row[2])]
    if not disks:
        return {}
    return {
        _READ: sum(int(row[5]) for row in disks) * _SECTOR_BYTES,
        _WRITTEN: sum(int(row[9]) for row in disks) * _SECTOR_BYTES,
    }


def _of_v1(text: str | None) -> dict[str, int]:
    """Parse lines "254:0 Read 4096"; a cgroup that has not used a device yet has only the total."""
    if text is None:
        return {}
    rows = [line.split() for line in text.splitlines()]
    # Three words only: the last line, "Total 8192", would count everything twice.
    sums = {kind: sum(int(row[2]) for row in rows if len(row) == 3 and row[1] == kind) for kind in ("Read", "Write")}
    return {_READ: sums["Read"], _WRITTEN: sums["Write"]}


def _of_v2(text: str | None) -> dict[str, int]:
    """Lines "254:0 rbytes=4096 wbytes=0 rios=1 …"; no line where no device has been touched yet."""
    if text is None:
        return {}
    pairs = [word.partition("=") for word in text.split()]
    return {
        _READ: sum(int(number) for name, _, number in pairs if name == "rbytes"),
        _WRITTEN: sum(int(number) for name, _, number in pairs if name == "wbytes"),
    }


_FIGURES: tuple[Figure, ...] = (
    Rate("disk_read_bytes_per_s", of=_READ),
    Rate("disk_write_bytes_per_s", of=_WRITTEN),
)
SOURCE = Source(
    {"node": _FIGURES, "container": _FIGURES},
    _read,
    cost="moderate",
    gates={"node": Gate(4.0), "container": Gate(30.0, (WORKED,), PAUSE_S)},
)
