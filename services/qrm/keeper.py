"""The process of the lease watchdog: applies the floor that the lease names when the lease is not renewed.

    python -m services.qrm.keeper STATE_DIR HOST_ROOT                  qrm's child on one host
    python -m services.qrm.keeper STATE_DIR HOST_ROOT --then COMMAND…  a separate container next to the agent

As qrm's child it has its own session, so it outlives qrm and the parent of qrm. It ends when the lease file is gone,
which is how qrm signals a deliberate stop. In a pod, a child process would end with its container, so there the
watchdog is a container that lives as long as the pod. The pod ends it (SIGTERM) after the agent's container has ended;
it then applies the floor at once, because another agent may never start, and becomes COMMAND.
"""

import os
import sys
from pathlib import Path

from services.qrm.adapters.lease.file import LOCK
from services.qrm.adapters.lease.watchdog import LeaseWatchdog, watch_until_gone, watch_until_sigterm

THEN = "--then"


def main(arguments: list[str]) -> None:
    """Watch as the arguments say."""
    state_dir, host_root, *then = arguments
    watchdog, lock = LeaseWatchdog(Path(state_dir), Path(host_root)), Path(state_dir) / LOCK
    if then[:1] != [THEN]:
        watch_until_gone(watchdog, lock)
        return
    watch_until_sigterm(watchdog, lock)
    # This closes the lock's descriptor, for Python's are not inherited: the command may take the lock itself.
    os.execvp(then[1], then[1:])  # noqa: S606 - the command of our own manifest


if __name__ == "__main__":
    main(sys.argv[1:])
