"""`LoopScheduling` asks the kernel to run the event loop's thread before other work, and accepts a refusal.

It tries real time first (SCHED_RR, lowest priority), then the best nice value, and otherwise stays as every process. A
loop that runs without a pause loses real time after `RUNAWAY_S`, and requests it again from its own timer, `PAUSE_S`
later; a loop that hangs never does. Facts: docs/facts/linux-scheduling.md#real-time.
"""

import asyncio
import contextlib
import os
import resource
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import structlog

from shared import telemetry
from shared.settings import Scheduling

log = structlog.get_logger()

SchedulingClass: TypeAlias = Literal["realtime", "nice", "none"]
"""What the kernel has granted."""

LEAST_PRIORITY = 1
BEST_NICE = -20
"""docs/facts/linux-scheduling.md#nice-values."""
RUNAWAY_S = 0.5
"""CPU time in one go, without waiting for anything, after which a loop counts as run away: ten rounds of the largest
machine (docs/facts/targets.md#reaction-and-cost)."""
KILLED_S = 3.0
"""The same, after which the kernel ends the process: code that is not Python's cannot be interrupted otherwise."""
PAUSE_S = 60.0
_MICROSECONDS = 1_000_000
_USUAL_ALONE = os.SCHED_OTHER | os.SCHED_RESET_ON_FORK
"""The usual class, in which the nice value stays; what is started has nice 0."""


def take_best_nice() -> bool:
    """Let the calling thread go before others of its group, and nothing that it starts; False: not permitted."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, BEST_NICE)  # 0: on Linux the calling thread
        # After it: without a right to that value nothing is to be changed, and the flag could not be cleared again
        # (docs/facts/linux-scheduling.md#children-of-a-real-time-thread).
        os.sched_setscheduler(0, _USUAL_ALONE, os.sched_param(0))
    except OSError:
        return False
    return True


def give_best_nice(pid: int) -> bool:
    """Give another process precedence over others of its group, with all its threads; return False if not permitted,
    or gone.

    A thread that it starts later inherits the value of the thread that starts it.
    """
    done: set[int] = set()
    try:
        # Repeat until none is new, because an unhandled thread may start another meanwhile.
        while new := {int(name) for name in os.listdir(f"/proc/{pid}/task")} - done:  # noqa: PTH208 - names alone
            for thread in new:
                with contextlib.suppress(ProcessLookupError):
                    os.setpriority(os.PRIO_PROCESS, thread, BEST_NICE)
            done |= new
    except OSError:
        return False
    return True


@dataclass
class LoopScheduling:
    """The scheduling class of one event loop's thread."""

    wanted: Scheduling
    runaway_s: float = RUNAWAY_S
    killed_s: float = KILLED_S
    pause_s: float = PAUSE_S
    given: SchedulingClass = "none"
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Run before others for as long as the block lasts."""
        if self.wanted == "none":
            yield
            return
        nice, limits = os.getpriority(os.PRIO_PROCESS, 0), resource.getrlimit(resource.RLIMIT_RTTIME)
        handler = signal.signal(signal.SIGXCPU, lambda _number, _frame: self._run_away())
        # Other threads share the interpreter lock with the loop: one that waits for a CPU delays the loop.
        self._loop.set_default_executor(ThreadPoolExecutor(initializer=take_best_nice))
        try:
            self.acquire()
            log.info("scheduling.given", wanted=self.wanted, given=self.given)
            yield
        finally:
            with contextlib.suppress(OSError, ValueError):  # raising a bound takes a right; the process ends anyway
                os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
                os.setpriority(os.PRIO_PROCESS, 0, nice)
                resource.setrlimit(resource.RLIMIT_RTTIME, limits)
            signal.signal(signal.SIGXCPU, handler)

    def acquire(self) -> None:
        """Ask for as much as is wanted."""
        if self.wanted == "auto" and self._take_realtime():
            self._tell("realtime")
        else:
            self._tell("nice" if take_best_nice() else "none")

    def _take_realtime(self) -> bool:
        try:
            self._bound_realtime()
            # Child processes are not the loop: they start in the normal class
            # (docs/facts/linux-scheduling.md#children-of-a-real-time-thread).
            os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(LEAST_PRIORITY))
        except (OSError, ValueError):
            return False
        return True

    def _bound_realtime(self) -> None:
        """Set the bounds again, because the kernel raises the first one each time that it is met
        (docs/facts/linux-scheduling.md#real-time-without-a-pause)."""
        _, most = resource.getrlimit(resource.RLIMIT_RTTIME)
        wanted = round(self.killed_s * _MICROSECONDS)
        hard = wanted if most == resource.RLIM_INFINITY else min(most, wanted)
        resource.setrlimit(resource.RLIMIT_RTTIME, (min(round(self.runaway_s * _MICROSECONDS), hard), hard))

    def _run_away(self) -> None:
        """Handle the kernel's signal between two steps of any code: nothing is logged here, because the log may be
        what runs."""
        with contextlib.suppress(OSError):
            # With the flag that it has: to clear it takes a right that real time does not take everywhere.
            os.sched_setscheduler(0, _USUAL_ALONE, os.sched_param(0))
        take_best_nice()
        self._loop.call_soon_threadsafe(self._tell_run_away)

    def _tell_run_away(self) -> None:
        self._tell("nice")
        log.warning("scheduling.realtime_lost", after_s=self.runaway_s, again_in_s=self.pause_s)
        self._loop.call_later(self.pause_s, self.acquire)

    def _tell(self, given: SchedulingClass) -> None:
        self.given = given
        for one in ("realtime", "nice", "none"):
            telemetry.SCHEDULING.labels(one).set(one == given)
