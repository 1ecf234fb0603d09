"""The lease keeper: `python -m services.qrm.keeper STATE_DIR HOST_ROOT TOP`.

qrm starts one in a session of its own, so that it outlives qrm and whoever started qrm. It looks at the lease twice a
second and, when the lease has run out, applies the floor that is written in it, through the same plan and writer as
qrm. It ends when the lease file is gone, which is how qrm says that it stopped on purpose. A lock makes it the only
one.
"""

import fcntl
import os
import sys
import time
from pathlib import Path

from services.qrm import lease as leases
from services.qrm.files import replace_file
from services.qrm.writer import Writer
from shared.adapters.cgroup import Cgroups

TICK_S = 0.5  # a look costs some 20 us
LOCK_TRIES = 4  # qrm holds the lock for a moment while it looks for a keeper


def take_lock(path: Path) -> int | None:
    """The lock as a file descriptor, with our process id in the file; None: another keeper has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(TICK_S / LOCK_TRIES)
            continue
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return descriptor
    os.close(descriptor)
    return None


class Keeper:
    """Watches one lease."""

    def __init__(self, state_dir: Path, host_root: Path, top: str) -> None:
        self._state_dir = state_dir
        self._writer = Writer(Cgroups(host_root), top)
        self._boot = leases.boot_name(host_root)
        self._fallen_for: float | None = None

    def look(self, now_s: float) -> bool:
        """One look at the lease, at a time since boot; False when the lease is gone and the work is done."""
        try:
            lease = leases.read_lease(self._state_dir / leases.FILE)
        except ValueError as error:
            print(error, file=sys.stderr, flush=True)
            return True
        if lease is None:
            return False
        if lease.boot == self._boot and now_s >= lease.deadline_s and lease.deadline_s != self._fallen_for:
            self._fall(lease)
        return True

    def _fall(self, lease: leases.Lease) -> None:
        outcome = self._writer.apply(lease.floor, needed=())  # pods have ended since it was written
        if outcome.writes:
            replace_file(self._state_dir / leases.FALLEN, f"{lease.deadline_s}\n", durable=False)
        for problem in outcome.problems:
            print(f"{problem.group}: {problem.why}", file=sys.stderr, flush=True)
        print(f"lease {lease.deadline_s:.1f} ran out: floor applied with {outcome.writes} writes",
              file=sys.stderr, flush=True)  # fmt: skip
        if not outcome.problems:
            self._fallen_for = lease.deadline_s


def main(state_dir: Path, host_root: Path, top: str) -> int:
    """Watch until the lease is gone; ends at once when another keeper does so already."""
    lock = take_lock(state_dir / leases.LOCK)
    if lock is None:
        return 0
    keeper = Keeper(state_dir, host_root, top)
    while keeper.look(leases.boottime_s()):
        time.sleep(TICK_S)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
