"""The resctrl tree of a host: groups, what they may use of caches and bandwidth, and the tasks in them."""

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path

from services.qrm.core.isolation.cache import PREFIX, CacheBounds, Schemata, read_schemata
from shared.adapters.host.hostfs import read_text

MOST_TASKS = 1 << 20


class ResctrlTree:
    """Reads and writes below `<host_root>/sys/fs/resctrl`; see `services.qrm.ports.CacheControl`."""

    def __init__(
        self, host_root: Path, mkdir: Callable[[Path], None] = Path.mkdir, rmdir: Callable[[Path], None] = Path.rmdir
    ) -> None:
        self.root, self._mkdir, self._rmdir = host_root / "sys/fs/resctrl", mkdir, rmdir

    def whole(self) -> Schemata | None:
        """See the port."""
        return self.schemata("")

    def bounds(self) -> CacheBounds:
        """See the port."""
        plain = CacheBounds()
        return CacheBounds(
            self._number("info/L3/min_cbm_bits", plain.least_ways),
            self._number("info/MB/bandwidth_gran", plain.bandwidth_step),
            self._number("info/MB/min_bandwidth", plain.least_bandwidth),
        )

    def groups(self) -> list[str]:
        """See the port."""
        try:
            with os.scandir(self.root) as entries:
                folders = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        return sorted(name for name in folders if name.startswith(PREFIX))

    def make(self, group: str) -> None:
        """See the port."""
        self._mkdir(self.root / group)

    def remove(self, group: str) -> None:
        """See the port."""
        self._rmdir(self.root / group)

    def schemata(self, group: str) -> Schemata | None:
        """See the port."""
        text = read_text(str(self.root / group / "schemata"))
        return None if text is None else read_schemata(text)

    def write(self, group: str, line: str) -> None:
        """See the port."""
        self._write(group, "schemata", f"{line}\n")

    def tasks(self, group: str) -> frozenset[int]:
        """See the port."""
        text = read_text(str(self.root / group / "tasks")) or ""
        return frozenset(int(word) for word in text.split()[:MOST_TASKS] if word.isascii() and word.isdigit())

    def add_task(self, group: str, task: int) -> None:
        """See the port."""
        try:
            self._write(group, "tasks", f"{task}\n")
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise

    def _write(self, group: str, name: str, text: str) -> None:
        # No O_CREAT and no O_TRUNC: these are the kernel's files, and a write adds to them.
        descriptor = os.open(self.root / group / name, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def _number(self, name: str, otherwise: int) -> int:
        text = read_text(str(self.root / name))
        with contextlib.suppress(ValueError):
            return otherwise if text is None else min(1 << 16, max(1, int(text.strip()[:16])))
        return otherwise
