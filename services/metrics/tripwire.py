"""The tripwire's eyes: two small files, read many times between two passes."""

from pathlib import Path

from services.metrics.sources.cpu_usage import FILES, usage_ns
from shared.adapters.cgroup import Cgroups
from shared.adapters.hostfs import KeptFiles, meminfo_bytes
from shared.core.layout import class_group


class HostTripwire:
    """Reads the CPU time of the tenants' class cgroup, and free memory."""

    def __init__(self, host_root: Path, cgroups: Cgroups) -> None:
        controller, name = FILES[cgroups.version]
        self._files = KeptFiles()
        self._version = cgroups.version
        self._usage_path = str(cgroups.folder(class_group("shared_cores"), controller) / name)
        self._meminfo_path = str(host_root / "proc/meminfo")

    def look(self) -> tuple[int | None, int | None]:
        """CPU time of the tenants so far in nanoseconds, and free bytes; None for what cannot be read."""
        try:
            usage = usage_ns(self._files.read(self._usage_path), self._version)
            return usage, meminfo_bytes(self._files.read(self._meminfo_path) or "", ("MemFree",)).get("MemFree")
        except (OSError, ValueError):
            # The next full pass meets the same file and says what is wrong with it.
            return None, None

    def close(self) -> None:
        """Close the files that are kept open."""
        self._files.close()
