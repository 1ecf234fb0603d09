"""The lease watchdog's process: applies the floor that the lease names when nobody renews it.

    python -m services.qrm.keeper STATE_DIR HOST_ROOT                  qrm's child on one host
    python -m services.qrm.keeper STATE_DIR HOST_ROOT --then COMMAND…  a container of its own beside the agent

qrm's child has a session of its own, so that it outlives qrm and whoever started qrm; it ends when the lease file is
gone, which is how qrm says that it stopped on purpose. In a pod a child would end with its container, however that
ends. There the watchdog lives as long as the pod, which ends it (SIGTERM) once the agent's container has ended: then it
applies the floor at once, since no other agent may ever come, and becomes COMMAND.
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
