"""The resctrl tree of a host: groups, what they may use of caches and bandwidth, and the tasks in them."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

from services.qrm.core.resctrl.hardware import CPUINFO_BYTES, INFO_FILES, Hardware, read_hardware
from services.qrm.core.resctrl.rates import ByteCounter, read_counter
from services.qrm.core.resctrl.schemata import Schemata, read_schemata
from services.qrm.core.resctrl.shares import PREFIX
from shared.adapters.host.hostfs import read_record, read_text

MOST_TASKS = 1 << 20
MOST_STATUS_CHARS = 200
_CACHE_FOLDER = re.compile(r"mon_L3_([0-9]{1,5})")
NO_GROUPS = frozenset({"info", "mon_data", "mon_groups"})


def append(path: Path, text: str) -> None:
    """Write to a kernel file that processes each write separately.

    Raises:
        OSError: it refuses the text.
    """
    # No O_CREAT and no O_TRUNC: these are the kernel's files, and a write adds to them.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


class ResctrlTree:
    """Reads and writes below `<host_root>/sys/fs/resctrl`; see `services.qrm.ports.CacheControl`."""

    def __init__(
        self,
        host_root: Path,
        mkdir: Callable[[Path], None] = Path.mkdir,
        rmdir: Callable[[Path], None] = Path.rmdir,
        write: Callable[[Path, str], None] = append,
    ) -> None:
        self.root, self._cpuinfo = host_root / "sys/fs/resctrl", host_root / "proc/cpuinfo"
        self._mkdir, self._rmdir, self._append = mkdir, rmdir, write

    def hardware(self) -> Hardware | None:
        """See the port."""
        whole = self.schemata("")
        if whole is None:
            return None
        info = {name: read_text(str(self.root / "info" / name)) for name in INFO_FILES}
        return read_hardware(whole, info, (read_record(str(self._cpuinfo)) or "")[:CPUINFO_BYTES])

    def taken(self) -> int:
        """See the port."""
        return 1 + len([name for name in self._folders() if name not in NO_GROUPS])

    def groups(self) -> list[str]:
        """See the port."""
        return sorted(name for name in self._folders() if name.startswith(PREFIX))

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

    def counters(self, group: str) -> dict[int, ByteCounter]:
        """See the port."""
        folder = self.root / group / "mon_data"
        found = {}
        for name in self._folders(folder):
            if match := _CACHE_FOLDER.fullmatch(name):
                # The local part first: it never exceeds what all of it is a moment later.
                texts = [read_text(str(folder / name / file)) for file in ("mbm_local_bytes", "mbm_total_bytes")]
                counter = read_counter(*texts)
                if counter is not None:
                    found[int(match[1])] = counter
        return found

    def write(self, group: str, line: str) -> None:
        """See the port."""
        self._append(self.root / group / "schemata", f"{line}\n")

    def last_status(self) -> str:
        """See the port."""
        said = (read_text(str(self.root / "info/last_cmd_status")) or "").strip()[:MOST_STATUS_CHARS]
        return "" if said == "ok" else said

    def tasks(self, group: str) -> frozenset[int]:
        """See the port."""
        text = read_text(str(self.root / group / "tasks")) or ""
        return frozenset(int(word) for word in text.split()[:MOST_TASKS] if word.isascii() and word.isdigit())

    def add_task(self, group: str, task: int) -> None:
        """See the port."""
        try:
            self._append(self.root / group / "tasks", f"{task}\n")
        except OSError as error:
            if error.errno != errno.ESRCH:
                raise

    def _folders(self, folder: Path | None = None) -> list[str]:
        try:
            with os.scandir(folder or self.root) as entries:
                return [one.name for one in entries if one.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return []
