"""Read how full the node's root file system is, in bytes and inodes, as `df` shows it.

Available means available to users without privileges, which kubelet's eviction uses as well. A file system that counts
no inodes (btrfs) has no inode figure. What a container has written is not read: the kernel does not count it, and
walking over all files in every pass is too expensive.
"""

from services.metrics.core.figures.figure import Gauge
from services.metrics.core.figures.target import Target
from services.metrics.core.reads.gates import Gate
from services.metrics.core.source import Host, Source

_BYTES = ("rootfs_capacity_bytes", "rootfs_used_bytes", "rootfs_available_bytes")
_INODES = ("rootfs_inodes", "rootfs_inodes_used", "rootfs_inodes_free")


def _read(host: Host, target: Target) -> dict[str, int]:  # noqa: ARG001 - there is one node
    fs = host.root_file_system()
    if fs is None or fs.capacity_bytes <= 0:
        return {}
    found = dict(zip(_BYTES, (fs.capacity_bytes, fs.used_bytes, fs.available_bytes), strict=True))
    if fs.inodes > 0:
        found |= zip(_INODES, (fs.inodes, fs.inodes - fs.inodes_free, fs.inodes_free), strict=True)
    return found


SOURCE = Source(
    {"node": tuple(Gauge(name) for name in (*_BYTES, *_INODES))},
    _read,
    cost="moderate",
    gates={"node": Gate(10.0)},  # kubelet's eviction looks as often
)
