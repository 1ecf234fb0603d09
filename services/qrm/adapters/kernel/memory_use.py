"""Memory use of a cgroup is read from the kernel's files."""

import contextlib

from services.qrm.core.memory.limits import MemoryUse
from shared.adapters.host.cgroup import Cgroups


def memory_use(cgroups: Cgroups, group: str) -> MemoryUse | None:
    """The memory use of one group and all groups below it; None where it cannot be read."""
    v1 = cgroups.version == 1
    usage = cgroups.text(group, "memory.usage_in_bytes" if v1 else "memory.current", "memory")
    stat = cgroups.text(group, "memory.stat", "memory") or ""
    # On v1 the plain name counts this group alone; `total_` includes those below, as v2 always does.
    name = "total_inactive_file" if v1 else "inactive_file"
    fields = dict(line.split(" ", 1) for line in stat.splitlines() if " " in line)
    # Garbage counts as unknown, and a limit without a known use is never written.
    with contextlib.suppress(ValueError):
        return None if usage is None else MemoryUse(int(usage), int(fields.get(name, 0)))
    return None
