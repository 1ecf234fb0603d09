"""The lease keeper: looks at the lease twice a second, and applies the floor that is written in it when it runs out.

    python -m services.qrm.keeper STATE_DIR HOST_ROOT                  qrm's child on one host
    python -m services.qrm.keeper STATE_DIR HOST_ROOT --then COMMAND…  a container of its own beside the agent

It writes through the same plan and writer as qrm. A lock makes it the only one. qrm's child has a session of its own,
so that it outlives qrm and whoever started qrm; it ends when the lease file is gone, which is how qrm says that it
stopped on purpose. In a pod a child would end with its container, however that ends. There the keeper lives as long as
the pod, which ends it (SIGTERM) once the agent's container has ended: then it applies the floor at once, for whoever
comes next may never come, and becomes COMMAND.
"""

import fcntl
import os
import signal
import sys
import time
from pathlib import Path

from services.qrm.adapters.kernel.writer import Writer
from services.qrm.adapters.state import lease as leases
from services.qrm.adapters.state.files import replace_file
from shared.adapters.host.cgroup import Cgroups
from shared.errors import SubletError

TICK_S = 0.5  # a look costs some 20 us
LOCK_TRIES = 4  # qrm holds the lock for a moment while it looks for a keeper
THEN = "--then"


def take_lock(path: Path, tries: int = LOCK_TRIES) -> int | None:
    """The lock as a file descriptor, with our process id in the file; None: another keeper has it.

    Raises:
        OSError: the file cannot be opened or written.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    for tries_left in reversed(range(tries)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if tries_left:
                time.sleep(TICK_S / LOCK_TRIES)
            continue
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        return descriptor
    os.close(descriptor)
    return None


class Keeper:
    """Watches one lease."""

    def __init__(self, state_dir: Path, host_root: Path) -> None:
        self._state_dir, self._host_root = state_dir, host_root
        self._boot = leases.boot_name(host_root)
        self._lease: leases.Lease | None = None
        """The last one that could be read: one that cannot be read does not run longer for that."""
        self._fallen_for: float | None = None
        self._said = ""

    def look(self, now_s: float) -> bool:
        """One look at the lease, at a time since boot; False when the lease is gone and the work is done."""
        try:
            self._lease = leases.read_lease(self._state_dir / leases.FILE)
        except ValueError as error:
            self.say(str(error))
        if self.due_in_s(now_s) <= 0:
            self.fall()
        return self._lease is not None

    def due_in_s(self, now_s: float) -> float:
        """Seconds until the floor is to be applied; for ever where there is no lease of this boot, or it is applied."""
        lease = self._lease
        if lease is None or lease.boot != self._boot or lease.deadline_s == self._fallen_for:
            return float("inf")
        return lease.deadline_s - now_s

    def fall(self) -> None:
        """Apply the floor of the lease, if it is of this boot; what fails is tried again with the next look."""
        lease = self._lease
        if lease is None or lease.boot != self._boot:
            return
        try:
            # Pods have ended since it was written.
            outcome = Writer(Cgroups(self._host_root), lease.top).apply(lease.floor, needed=())
            if outcome.writes:
                replace_file(self._state_dir / leases.FALLEN, f"{lease.deadline_s}\n", durable=False)
        except (OSError, ValueError, SubletError) as error:
            self.say(f"lease {lease.deadline_s:.1f}: the floor cannot be applied: {error}")
            return
        self.say("; ".join(f"{problem.group}: {problem.why}" for problem in outcome.problems)
                 or f"lease {lease.deadline_s:.1f} is over: floor applied with {outcome.writes} writes")  # fmt: skip
        if not outcome.problems:
            self._fallen_for = lease.deadline_s

    def say(self, line: str) -> None:
        """Print what has not just been printed."""
        if line != self._said:
            print(line, file=sys.stderr, flush=True)
        self._said = line


def watch(keeper: Keeper, lock: Path) -> None:
    """Until the lease is gone; ends at once when another keeper does so already."""
    if take_lock(lock) is None:
        return
    while keeper.look(leases.boottime_s()):
        time.sleep(_pause_s(keeper))


def reside(keeper: Keeper, lock: Path) -> None:
    """Until SIGTERM; waits for the lock where another keeper has it."""
    ending = {signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    held: int | None = None
    ended = None
    while ended is None:
        try:
            held = take_lock(lock, tries=1) if held is None else held
        except OSError as error:
            keeper.say(f"{lock}: {error.strerror}")
        if held is not None:
            keeper.look(leases.boottime_s())
        ended = signal.sigtimedwait(ending, _pause_s(keeper))
    if held is not None:
        keeper.look(leases.boottime_s())
        keeper.fall()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ending)


def _pause_s(keeper: Keeper) -> float:
    due_in_s = keeper.due_in_s(leases.boottime_s())
    return TICK_S if due_in_s <= 0 else min(TICK_S, due_in_s)


def main(arguments: list[str]) -> None:
    """As the module says."""
    state_dir, host_root, *then = arguments
    keeper, lock = Keeper(Path(state_dir), Path(host_root)), Path(state_dir) / leases.LOCK
    if then[:1] != [THEN]:
        watch(keeper, lock)
        return
    reside(keeper, lock)
    os.execvp(then[1], then[1:])  # noqa: S606 - the command of our own manifest


if __name__ == "__main__":
    main(sys.argv[1:])
