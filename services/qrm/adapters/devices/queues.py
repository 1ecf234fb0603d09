"""Disk queues are read from `/sys/block`, and their write-back throttling is written there."""

import errno
import os
from pathlib import Path

from services.qrm.core.devices.disk_lines import Disk, disk_kind
from shared.adapters.host.hostfs import read_record

MOST_DISKS, MOST_DIGITS = 512, 12
WBT_FILE = "queue/wbt_lat_usec"
ROTATES = {"0": False, "1": True}


class DiskQueues:
    """The disks below `<host_root>/sys/block`, by name, without kinds of devices that are never tuned."""

    def __init__(self, host_root: Path) -> None:
        self._root = host_root / "sys/block"

    def disks(self) -> list[Disk]:
        """Return the present disks.

        Raises:
            OSError: the folder or a file exists and cannot be read.
        """
        try:
            names = sorted(os.listdir(self._root))[:MOST_DISKS]  # noqa: PTH208 - names, with no look at each
        except FileNotFoundError:
            return []
        found = (self._disk(name) for name in names)
        return [disk for disk in found if disk is not None and disk.kind != "other"]

    def has_throttling(self, disk: Disk) -> bool:
        """Whether the kernel offers write-back throttling for a disk."""
        return (self._root / disk.name / WBT_FILE).exists()

    def throttle(self, disk: Disk, wbt_us: int) -> None:
        """Set a disk's write-back throttling.

        Raises:
            OSError: the kernel refused it, or the folder is mounted read-only.
        """
        # No O_CREAT and no O_TRUNC: the kernel's file.
        descriptor = os.open(self._root / disk.name / WBT_FILE, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.write(descriptor, f"{wbt_us}\n".encode())
        finally:
            os.close(descriptor)

    def _disk(self, name: str) -> Disk | None:
        kind = disk_kind(name, rotates=ROTATES.get(self._text(name, "queue/rotational")))
        major, _, minor = self._text(name, "dev").partition(":")
        if not (_is_number(major) and _is_number(minor)):
            return None
        return Disk(f"{major}:{minor}", kind, self._wbt_us(name), name)

    def _wbt_us(self, name: str) -> int | None:
        try:
            text = read_record(str(self._root / name / WBT_FILE))
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            text = None
        # Without the file, or with no throttling ever set up (EINVAL), nothing throttles: that is known.
        if text is None:
            return 0
        return int(text) if _is_number(text.strip()) else None

    def _text(self, name: str, file: str) -> str:
        return (read_record(str(self._root / name / file)) or "").strip()


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
