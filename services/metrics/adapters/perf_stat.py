"""Count cycles and instructions of cgroups with perf, the program of the kernel's tools.

One run of `perf stat` is one window: perf counts, exits by itself and prints the counts. A pass only polls whether perf
has exited, so it never waits. Each window counts the cgroups that exist when it starts. Why a program and not the
system call: docs/adr/0019-perf-counts.md.
"""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from services.metrics.core.counters import (
    EVENTS,
    MOST_BYTES,
    MOST_GROUPS,
    NO_PROGRAM,
    NOTHING,
    Counts,
    Failure,
    countable,
    counts_by_group,
    failure_of,
)
from services.metrics.settings import PerfSettings

PROGRAM = "perf"
RETRY_S: Final = 600.0
"""Time until a retry after a lasting failure: by then perf may be installed, or the machine migrated."""
LATE_S: Final = 15.0
"""Most delay until the end of a window is noticed, on a busy machine with long pauses between passes."""
MOST_GONE = 3
"""Windows in a row that removed cgroups may spoil before this is reported."""
_MOST_COMPLAINT_BYTES = 8192
_MOST_NAMES_BYTES = 96 * 1024
"""Most bytes of cgroup names: the kernel accepts 128 KiB in one argument."""


@dataclass(frozen=True, slots=True)
class _Window:
    """A run of perf, and the in-memory files that it writes."""

    child: subprocess.Popen[bytes]
    told: int
    complaint: int
    groups: frozenset[str]
    ends_s: float

    def close(self) -> None:
        """End the run if it still goes on, and close its files."""
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self.told)
        os.close(self.complaint)


class PerfStat:
    """Counts cgroups in windows with pauses between them; `services.metrics.ports.PerfCounters`."""

    def __init__(
        self,
        settings: PerfSettings,
        lacking: str,
        monotonic: Callable[[], float],
        events: tuple[str, str] = EVENTS,
        program: str = PROGRAM,
    ) -> None:
        """`lacking`: why counting is impossible here; "" if it is possible.

        `events`: a test on a machine without counters passes software events to exercise everything else.
        """
        self._settings, self._monotonic, self._events, self._program = settings, monotonic, events, program
        self._window: _Window | None = None
        self._counts: Mapping[str, Counts] = {}
        self._until_s = self._next_s = float("-inf")
        self._gone = 0
        self._has_counted = False
        self._left_out = 0
        self._failure = ""
        if lacking:
            self._failure, self._next_s = lacking, float("inf")

    @property
    def failure(self) -> str:
        """See `PerfCounters`."""
        if self._failure or not self._left_out:
            return self._failure
        return f"{self._left_out} containers are not counted: at most {MOST_GROUPS} are, tenants first"

    def follow(self, groups: Sequence[str]) -> None:
        """See `PerfCounters`."""
        now_s = self._monotonic()
        if self._window is not None:
            self._see_whether_it_ended(self._window, now_s)
        if now_s > self._until_s:
            self._counts = {}
        if self._window is None and groups and now_s >= self._next_s:
            self._begin(groups, now_s)

    def counts(self, group: str) -> Counts | None:
        """See `PerfCounters`."""
        return self._counts.get(group, NOTHING) if self._counts else None

    def close(self) -> None:
        """See `PerfCounters`."""
        window, self._window = self._window, None
        if window is not None:
            window.close()

    def _begin(self, groups: Sequence[str], now_s: float) -> None:
        taken = self._fitting(groups)
        self._left_out = len(groups) - len(taken)
        told, complaint = os.memfd_create("perf-told"), os.memfd_create("perf-complaint")
        command = [
            self._program, "stat", "--json-output", "--all-cpus", "--event", f"{{{','.join(self._events)}}}",
            "--for-each-cgroup", ",".join(taken), "--timeout", str(round(self._settings.window_s * 1000)),
            "--log-fd", str(told),
        ]  # fmt: skip
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=complaint,
                pass_fds=(told,),
                cwd="/",
                # Messages in the language that is parsed, and no settings of the user who started the agent.
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "PERF_CONFIG": os.devnull},
                start_new_session=True,
            )
        except OSError as error:
            os.close(told)
            os.close(complaint)
            why = NO_PROGRAM if isinstance(error, FileNotFoundError) else f"perf does not start: {error}"
            self._fail(Failure(why, lasts=True), now_s)
            return
        self._window = _Window(child, told, complaint, frozenset(taken), now_s + self._settings.window_s)

    def _fitting(self, groups: Sequence[str]) -> list[str]:
        """Return as many groups as one run accepts, in their order."""
        taken, size = list[str](), 0
        for group in filter(countable, groups):
            size += len(group) + 1
            if len(taken) == MOST_GROUPS or size > _MOST_NAMES_BYTES:
                break
            taken.append(group)
        return taken

    def _see_whether_it_ended(self, window: _Window, now_s: float) -> None:
        code = window.child.poll()
        if code is None and now_s <= window.ends_s + LATE_S:
            return
        self._window = None
        try:
            found = self._outcome(window, code)
        finally:
            window.close()
        if isinstance(found, Failure):
            self._fail(found, now_s)
            return
        self._counts, self._failure, self._gone, self._has_counted = found, "", 0, True
        self._next_s = max(now_s, window.ends_s + self._settings.pause_s)
        self._until_s = self._next_s + self._settings.window_s + LATE_S

    def _outcome(self, window: _Window, code: int | None) -> dict[str, Counts] | Failure:
        if code is None:
            return Failure(f"perf counts for {self._settings.window_s:g} s and has not ended {LATE_S:g} s later")
        if code:
            return failure_of(_text(window.complaint, _MOST_COMPLAINT_BYTES), has_counted=self._has_counted)
        return counts_by_group(_text(window.told, MOST_BYTES), window.groups, self._events)

    def _fail(self, failure: Failure, now_s: float) -> None:
        """Record a failure; earlier counts stay valid for their usual time."""
        self._gone = self._gone + 1 if failure.gone else 0
        # Pods come and go: the next pass starts a window over those that exist then.
        if failure.gone and self._gone <= MOST_GONE:
            self._next_s = now_s
            return
        self._failure = failure.why
        self._next_s = now_s + (RETRY_S if failure.lasts else self._settings.pause_s)


def _text(descriptor: int, most_bytes: int) -> str:
    return os.pread(descriptor, most_bytes, 0).decode(errors="replace")
