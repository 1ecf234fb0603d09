"""Keeps a process's pages in memory, and the process alive: a service that reacts to a shortage must not suffer from
it.

Facts: docs/facts/linux-scheduling.md#locked-memory.
"""

import ctypes
import resource
from pathlib import Path

OOM_SCORE = -998
"""As little a victim as kubelet, and as the processes that watch over pods of this host."""
_CAP_IPC_LOCK = 14
# linux/mman.h. ONFAULT: a page is locked when it is first used; without it every mapping is read in whole.
_MCL_CURRENT, _MCL_FUTURE, _MCL_ONFAULT = 1, 2, 4


def lock_memory() -> bool:
    """Lock the pages that this process uses, now and later; False: not permitted."""
    # Below a bound the kernel would refuse memory later on, when it is met: no lock then, rather than half of one.
    if not _may_lock_all():
        return False
    refused: int = ctypes.CDLL(None).mlockall(_MCL_CURRENT | _MCL_FUTURE | _MCL_ONFAULT)
    return refused == 0


def _may_lock_all() -> bool:
    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY:
        return True
    try:
        rows = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        return bool(int(rows["CapEff"], 16) >> _CAP_IPC_LOCK & 1)
    except (OSError, ValueError, KeyError):
        return False


def be_killed_last() -> bool:
    """Let the kernel kill almost everything else first when memory runs out; return False if not permitted."""
    file = Path("/proc/self/oom_score_adj")
    try:
        if int(file.read_text()) > OOM_SCORE:
            file.write_text(str(OOM_SCORE))
    except (OSError, ValueError):
        return False
    return True
