"""Reads the checkpoints of kubelet's managers with bounds; an agent may not see their folder."""

from pathlib import Path
from typing import Any

from shared.core.text.json_text import read_json_object
from shared.errors import Refused, Unavailable

FOLDER = "var/lib/kubelet"
CPU_MANAGER_FILE, MEMORY_MANAGER_FILE = f"{FOLDER}/cpu_manager_state", f"{FOLDER}/memory_manager_state"
LARGEST_BYTES = 4 << 20
"""Some 100 bytes a container."""


def read_checkpoint(host_root: Path, file: str) -> dict[str, Any] | None:
    """Return what a manager has stored; None without the file, or before kubelet has written anything.

    Raises:
        Unavailable: the file exists and cannot be read.
    """
    path = host_root / file
    try:
        with path.open("rb") as stored:
            text = stored.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        hint = "; with SELinux set node.seLinuxOptions of the chart" if isinstance(error, PermissionError) else ""
        raise Unavailable(f"{path}: {error.strerror}{hint}") from error
    if not text:
        return None
    try:
        return dict(read_json_object(text, what="kubelet's state", max_bytes=LARGEST_BYTES))
    except Refused as refusal:
        raise Unavailable(f"{path}: {refusal}") from refusal


class KubeletCheckpoints:
    """Both managers' checkpoints, read again only after kubelet has replaced one."""

    def __init__(self, host_root: Path) -> None:
        self._host_root = host_root
        self._known: dict[str, tuple[tuple[int, int, int] | None, dict[str, Any] | None]] = {}

    def read(self) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """Return the checkpoints of the CPU and the memory manager; None without that file.

        Raises:
            Unavailable: one exists and cannot be read.
        """
        return self._state(CPU_MANAGER_FILE), self._state(MEMORY_MANAGER_FILE)

    def _state(self, file: str) -> dict[str, Any] | None:
        try:
            found = (self._host_root / file).stat()
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
        except OSError:
            stamp = None  # the read says what is wrong
        known = self._known.get(file)
        if known is None or stamp is None or known[0] != stamp:
            known = self._known[file] = (stamp, read_checkpoint(self._host_root, file))
        return known[1]
