"""Ends every process in Sublet's cgroups, then removes the cgroups."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.cgroup_kill import kill_group, signal_group
from shared.core.cgroups.layout import ROOT

POLL_S = 0.02
KILL_PATIENCE_S = 5.0


def _wait(condition: Callable[[], bool], timeout_s: float) -> bool:
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_S)
    return True


def end_processes(cgroups: Cgroups, group: str, grace_s: float) -> bool:
    """TERM, wait, KILL until the cgroup is empty; False if something would not go."""
    if signal_group(cgroups, group, signal.SIGTERM) and not _wait(lambda: not cgroups.pids(group), grace_s):
        # A process may fork while it is being killed: look again until nothing is left.
        return _wait(lambda: not kill_group(cgroups, group), KILL_PATIENCE_S)
    return True


def any_groups(host_root: Path) -> bool:
    """Whether Sublet's cgroups are there."""
    return Cgroups(host_root).exists(ROOT)


def end_pods(host_root: Path, *, grace_s: float) -> bool:
    """End every process in Sublet's cgroups; False if something would not go."""
    return end_processes(Cgroups(host_root), ROOT, grace_s)


def remove_groups(host_root: Path, *, grace_s: float) -> list[str]:
    """End every pod and remove `sublet/`; returns what could not be removed."""
    cgroups = Cgroups(host_root)
    end_processes(cgroups, ROOT, grace_s)
    # Again for a while: a group can go only when the last of its tasks has left it, some moments after the KILL.
    if _wait(lambda: cgroups.remove(ROOT), KILL_PATIENCE_S):
        return []
    return list(cgroups.tree(ROOT)) or [ROOT]
