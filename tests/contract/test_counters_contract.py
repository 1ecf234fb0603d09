"""The port of performance counters in memory, and on this machine's perf.

A machine without counters of cycles and instructions still has the kernel's clocks, which perf counts in the same way:
with these all but the events is tried, on a real kernel and real cgroups.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_counters import FakeCounters
from rig_parts import until

from services.metrics.adapters.perf_stat import PerfStat
from services.metrics.core.counters import EVENTS, NOTHING, Counts, failure_of
from services.metrics.ports import PerfCounters
from services.metrics.settings import PerfSettings

CLOCKS = ("cpu-clock", "task-clock")
PATIENCE_S = 60.0
_BUSY = "import time\nend = time.monotonic() + 120\nwhile time.monotonic() < end: pass"


class Machine:
    """Counters, and cgroups of which one is busy and one is not."""

    def __init__(self, counters: PerfCounters, top: str, remove: Callable[[str], None]) -> None:
        self.counters, self.top, self.remove = counters, top, remove
        self.busy, self.idle = f"{top}/pod1/busy", f"{top}/pod1/idle"
        self.groups = [self.busy, self.idle]

    def counted(self) -> bool:
        self.counters.follow(self.groups)
        return self.counters.counts(self.top) is not None


def _unified() -> Path | None:
    """Where this machine has cgroup v2."""
    places = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if " cgroup2 " in line]
    return next((Path(place) for place in reversed(places) if os.access(place, os.W_OK)), None)


def _why_not(events: tuple[str, str]) -> str:
    if os.geteuid() or _unified() is None:
        return "needs root and a writable cgroup v2"
    if shutil.which("perf") is None:
        return "needs the program perf (linux-perf)"
    tried = subprocess.run(
        ["perf", "stat", "-a", "-e", f"{{{','.join(events)}}}", "--timeout", "100"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return (
        "" if tried.returncode == 0 else f"perf counts no {' and '.join(events)} here: {failure_of(tried.stderr).why}"
    )


@contextlib.contextmanager
def _kernel(events: tuple[str, str]) -> Iterator[Machine]:
    root = _unified()
    assert root is not None
    settings = PerfSettings.model_construct(enabled=True, window_s=0.2, pause_s=0.0)
    counters = PerfStat(settings, "", time.monotonic, events)
    made = Machine(counters, f"sublet-test-{uuid.uuid4().hex[:8]}", lambda group: (root / group).rmdir())
    folders = [root / made.top, root / f"{made.top}/pod1", root / made.busy, root / made.idle]
    for folder in folders:
        folder.mkdir()
    busy = subprocess.Popen([sys.executable, "-c", _BUSY])
    try:
        (root / made.busy / "cgroup.procs").write_text(str(busy.pid))
        yield made
    finally:
        counters.close()
        busy.kill()
        busy.wait()
        until(lambda: not (root / made.busy / "cgroup.procs").read_text(), PATIENCE_S, "the busy group to be empty")
        for folder in reversed(folders):
            if folder.exists():
                folder.rmdir()


@pytest.fixture(
    params=[
        "fake",
        pytest.param(CLOCKS, marks=pytest.mark.root, id="the kernel's clocks"),
        pytest.param(EVENTS, marks=pytest.mark.root, id="the CPUs' counters"),
    ]
)
def machine(request: pytest.FixtureRequest) -> Iterator[Machine]:
    if request.param == "fake":
        fake = FakeCounters({"top/pod1/busy": Counts(9e9, 3e9), "top/pod1/idle": NOTHING})
        yield Machine(fake, "top", fake.remove)
    elif why := _why_not(request.param):
        pytest.skip(why)
    else:
        with _kernel(request.param) as made:
            yield made


def test_nothing_is_known_before_the_first_window_has_ended(machine: Machine) -> None:
    machine.counters.follow(machine.groups)
    assert machine.counters.counts(machine.busy) is None
    assert machine.counters.failure == ""


def test_a_window_tells_of_each_cgroup_and_of_those_above_it(machine: Machine) -> None:
    until(machine.counted, PATIENCE_S, "a window")
    counts, counters = machine.counters.counts, machine.counters
    busy = counts(machine.busy)
    assert busy is not None
    assert min(busy) > 0
    assert counts(machine.idle) == NOTHING, "nothing ran there: known, and zero"
    assert counts(f"{machine.top}/pod1") == counts(machine.top) == busy
    assert counts("another") == NOTHING, "nothing of it was counted"
    assert counters.failure == ""


def test_a_cgroup_that_has_gone_spoils_no_later_window(machine: Machine) -> None:
    until(machine.counted, PATIENCE_S, "a window")
    machine.remove(machine.idle)
    machine.counters.follow(machine.groups)  # nobody has said yet that it is gone
    machine.groups = [machine.busy]
    before, seen = machine.counters.counts(machine.busy), []

    def another() -> bool:
        machine.counted()
        seen.append(machine.counters.counts(machine.busy))
        return seen[-1] not in (before, None) or isinstance(machine.counters, FakeCounters)

    until(another, PATIENCE_S, "another window")
    assert machine.counters.failure == ""


def test_what_is_under_way_is_ended(machine: Machine) -> None:
    machine.counters.follow(machine.groups)
    machine.counters.close()
    machine.counters.close()
    assert machine.counters.counts(machine.busy) is None
