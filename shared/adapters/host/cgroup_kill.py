"""`kill_group` signals every process of a cgroup, and no other: it holds a descriptor of each before it judges it.

Standard library only: the small process that watches a pod imports this.
"""

import contextlib
import errno
import os
import signal

from shared.adapters.host.cgroup import Cgroups


def signal_group(cgroups: Cgroups, group: str, number: int) -> int:
    """Signal every process in the cgroup and below it; returns how many there were, 0 when it is empty or gone.

    A process may fork meanwhile: who wants the cgroup empty calls again until 0 comes back.
    """
    listed = cgroups.pids(group)
    held = {pid: handle for pid in listed if (handle := _hold(pid)) is not None}
    try:
        # A number may have been given to a stranger between the listing and the opening: what still is in the
        # cgroup after it was opened is the process that was opened.
        there = set(cgroups.pids(group)) if listed else set()
        for pid, handle in held.items():
            if pid in there:
                _send(pid, handle, number)
        return len(there)
    finally:
        for handle in held.values():
            if handle >= 0:
                os.close(handle)


def kill_group(cgroups: Cgroups, group: str) -> int:
    """KILL every process in the cgroup, in one step where the kernel can; returns how many there were."""
    if cgroups.version == 2:
        with contextlib.suppress(OSError):
            # Since Linux 5.14, and against a fork in the same moment. Older kernels have no such file.
            (cgroups.folder(group) / "cgroup.kill").write_text("1")
    # Also after `cgroup.kill`, because its count tells the caller whether anything is left.
    return signal_group(cgroups, group, signal.SIGKILL)


def _hold(pid: int) -> int | None:
    """A descriptor of the process; -1 where the kernel has none (before 5.3), None when it is gone."""
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        return -1 if error.errno == errno.ENOSYS else None


def _send(pid: int, handle: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        if handle >= 0:
            signal.pidfd_send_signal(handle, number)
        else:
            os.kill(pid, number)
