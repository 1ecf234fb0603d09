"""The files of cgroups that bound the use of disks: a line for each disk, by its device number.

Facts: docs/facts/linux-cgroups.md#disks.
"""

from collections.abc import Mapping

from shared.core.cgroups.knobs import Knob, Version

IO_KNOBS = (Knob.IO_READ_BPS, Knob.IO_WRITE_BPS, Knob.IO_READ_IOPS, Knob.IO_WRITE_IOPS, Knob.IO_WEIGHT)
DISK_KNOBS = (Knob.WBT, Knob.IO_COST_MODEL, Knob.IO_COST_QOS)
"""Of whole disks, whatever group uses them."""
FULL_WEIGHT = 100
UNBOUNDED_IOPS = (1 << 32) - 1
"""From so many operations by second on a disk is not bounded; of more v1 keeps the low 32 bits, which may be few."""
MOST_LINES, MOST_DIGITS = 1024, 20
V1_CONTROLLER = "blkio"
COST_FILES: Mapping[Version, str] = {1: "blkio.cost.qos", 2: "io.cost.qos"}
"""Where io.cost is switched on for a disk, in the root group."""
_V1_FILES: Mapping[Knob, str] = {
    Knob.IO_READ_BPS: "blkio.throttle.read_bps_device",
    Knob.IO_WRITE_BPS: "blkio.throttle.write_bps_device",
    Knob.IO_READ_IOPS: "blkio.throttle.read_iops_device",
    Knob.IO_WRITE_IOPS: "blkio.throttle.write_iops_device",
    Knob.IO_WEIGHT: "blkio.cost.weight",
}
_V2_WORDS: Mapping[Knob, str] = {
    Knob.IO_READ_BPS: "rbps",
    Knob.IO_WRITE_BPS: "wbps",
    Knob.IO_READ_IOPS: "riops",
    Knob.IO_WRITE_IOPS: "wiops",
}


def io_file(knob: Knob, version: Version) -> str:
    """The name of a knob's file."""
    if version == 1:
        return _V1_FILES[knob]
    return "io.max" if knob in _V2_WORDS else "io.weight"


def io_values(knob: Knob, text: str, version: Version) -> dict[str, int]:
    """The values of a file by device number; what is no number says nothing, and neither does what bounds nothing."""
    found: dict[str, int] = {}
    for line in text.splitlines()[:MOST_LINES]:
        disk, *words = line.split()[:8] or [""]
        if version == 2 and knob in _V2_WORDS:
            words = [word.partition("=")[2] for word in words if word.startswith(f"{_V2_WORDS[knob]}=")]
        if words and words[0].isascii() and words[0].isdigit() and len(words[0]) <= MOST_DIGITS:
            found[disk] = int(words[0])
    return {disk: value for disk, value in found.items() if value}


def io_line(knob: Knob, disk: str, value: int, version: Version) -> str:
    """The line that sets a value of a disk; 0 takes it away."""
    if knob is Knob.IO_WEIGHT and not value:
        return f"{disk} default" if version == 2 else f"{disk} {FULL_WEIGHT}"
    if version == 2 and knob in _V2_WORDS:
        return f"{disk} {_V2_WORDS[knob]}={value or 'max'}"
    return f"{disk} {value}"
