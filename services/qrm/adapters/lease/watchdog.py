"""The lease watchdog reads the lease every few seconds, and applies the floor written in it when the lease runs out.

It writes through the same plan and writer as qrm. The lock makes it the only one of its node.
"""

import signal
import sys
import time
from pathlib import Path

from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.adapters.lease import file as leases
from services.qrm.adapters.lease.lock import acquire_lock
from shared.adapters.files.replaced import write_whole
from shared.adapters.host.cgroup import Cgroups
from shared.errors import SubletError

TICK_S = 0.5
"""Time between two looks while no lease runs, one is overdue, or another watchdog has the lock."""
LONG_TICK_S = 2.0
"""Longest time between two looks at a lease that runs: so late a lease is seen that was made shorter meanwhile."""
LOOKS = 4
"""So often a lease is looked at before it ends, as far as both ticks allow: a short one is looked at as often as none.
A look costs 20 us of work, and ten times as much where it has to wake a CPU."""
_FOREVER_S = float("inf")


class LeaseWatchdog:
    """Watches one lease. Times are seconds since boot."""

    def __init__(self, state_dir: Path, host_root: Path) -> None:
        self._state_dir, self._host_root = state_dir, host_root
        self._boot = leases.boot_name(host_root)
        self._lease: leases.Lease | None = None
        """The last readable lease: a file that becomes unreadable must not extend the lease."""
        self._applied_for: float | None = None
        """Deadline of the lease whose floor is in force."""
        self._printed = ""

    def check(self, now_s: float) -> bool:
        """Read the lease and apply its floor if it has expired; return False once the lease is gone."""
        try:
            self._lease = leases.read_lease(self._state_dir / leases.FILE)
        except ValueError as error:
            self.print_once(str(error))
        if self.due_in_s(now_s) <= 0:
            self.apply_floor()
        return self._lease is not None

    def due_in_s(self, now_s: float) -> float:
        """Return the seconds until the floor is due; infinite if there is no lease of this boot, or its floor is in
        force."""
        lease = self._lease
        # A floor in force is not written again; a renewed lease has another deadline, and counts again.
        if lease is None or lease.boot != self._boot or lease.deadline_s == self._applied_for:
            return _FOREVER_S
        return lease.deadline_s - now_s

    def apply_floor(self) -> None:
        """Apply the floor of the lease, if it is of this boot; what fails is tried again at the next check."""
        lease = self._lease
        if lease is None or lease.boot != self._boot:
            return
        try:
            # Pods may have ended since the lease was written: no group of the floor is needed.
            outcome = CgroupWriter(Cgroups(self._host_root), lease.top).apply(lease.floor, needed=())
            # Only what was really written changes sets: else qrm, when it is back, would excuse a foreign writer.
            if outcome.writes:
                write_whole(self._state_dir / leases.FIRED, f"{lease.deadline_s}\n".encode())
        except (OSError, ValueError, SubletError) as error:
            self.print_once(f"lease {lease.deadline_s:.1f}: the floor cannot be applied: {error}")
            return
        problems = "; ".join(f"{problem.group}: {problem.why}" for problem in outcome.problems)
        self.print_once(problems or f"lease {lease.deadline_s:.1f} is over: floor applied with {outcome.writes} writes")
        # With a problem left the floor stays due, and the next tick tries again.
        if not outcome.problems:
            self._applied_for = lease.deadline_s

    def print_once(self, line: str) -> None:
        """Print a line, unless it is the one printed last."""
        if line != self._printed:
            print(line, file=sys.stderr, flush=True)
        self._printed = line


def watch_until_gone(watchdog: LeaseWatchdog, lock: Path) -> None:
    """Watch until the lease is gone; return at once if another watchdog has the lock."""
    # The lock is never given back by hand: it lasts as long as the process, and no longer even after a SIGKILL.
    if acquire_lock(lock) is None:
        return
    # No longer than a tick: qrm waits for the end of its child, which a lease that is gone tells it of.
    while watchdog.check(leases.boottime_s()):
        time.sleep(min(TICK_S, pause_s(watchdog.due_in_s(leases.boottime_s()))))


def watch_until_sigterm(watchdog: LeaseWatchdog, lock: Path) -> None:
    """Watch until SIGTERM, then apply the floor; waits for the lock where another watchdog has it."""
    ending = {signal.SIGTERM}
    # Blocked and then waited for: a handler might run in the middle of a write, and a signal between
    # two checks be lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    descriptor: int | None = None
    ended = None
    while ended is None:
        try:
            # Asked in every turn: the watchdog of the pod before may still apply its floor.
            descriptor = acquire_lock(lock, tries=1) if descriptor is None else descriptor
        except OSError as error:
            watchdog.print_once(f"{lock}: {error.strerror}")
        if descriptor is not None:
            watchdog.check(leases.boottime_s())
        due_in_s = watchdog.due_in_s(leases.boottime_s())
        ended = signal.sigtimedwait(ending, TICK_S if descriptor is None else pause_s(due_in_s))
    # The lease may be younger than the last check, and its floor names the pods of now.
    if descriptor is not None:
        watchdog.check(leases.boottime_s())
        watchdog.apply_floor()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ending)


def pause_s(due_in_s: float) -> float:
    """Return how long to wait before the next look at a lease that is due in so many seconds; infinite: none is."""
    # Overdue means that the floor could not be applied: try again after a tick, and never spin.
    if due_in_s <= 0 or due_in_s == _FOREVER_S:
        return TICK_S
    return min(due_in_s, max(TICK_S, min(LONG_TICK_S, due_in_s / LOOKS)))
