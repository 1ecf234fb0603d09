"""How busy this machine was with the work of others during a measurement, and the repeats of what that disturbed."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from bench.rigs.processes import TICKS_PER_S

OTHERS_BOUND, STEAL_BOUND = 0.05, 0.02
"""Shares of all CPUs. More, and a measurement counts as disturbed."""
REPEATS = 2
"""Of a measurement that was disturbed; the least disturbed one stands."""
OWN_GROUP = "sublet"
"""How the groups begin in which Sublet, its pods and the rigs run."""
_REAPERS = frozenset({1, 2})
"""Who inherits processes of everybody: what these children have used says nothing."""

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Disturbance:
    """What else the machine did during a measurement: shares of all CPUs. Load and waiting count our own work too."""

    others: float
    steal: float
    waiting: float | None
    load: float

    @property
    def too_much(self) -> bool:
        """Whether the measurement does not count for itself."""
        return self.others > OTHERS_BOUND or self.steal > STEAL_BOUND

    @property
    def worst(self) -> float:
        """How far it is above the bounds, to choose the least disturbed of several."""
        return max(self.others / OTHERS_BOUND, self.steal / STEAL_BOUND)

    def __str__(self) -> str:
        waiting = "" if self.waiting is None else f", waiting {self.waiting:.0%}"
        said = f"others {self.others:.0%}, steal {self.steal:.0%}{waiting}, load {self.load:.1f}"
        return f"DISTURBED: {said}" if self.too_much else said


@dataclass(frozen=True, slots=True)
class Process:
    """What a process and its ended children have used; `ours`: it belongs to the measurement."""

    parent: int
    used_s: float
    ours: bool


@dataclass(frozen=True, slots=True)
class Moment:
    """The machine's counters at one time. A process is named by its number and when it began."""

    at_s: float
    jiffies: int
    steal_jiffies: int
    waiting_us: int | None
    processes: Mapping[tuple[int, int], Process]


def between(before: Moment, after: Moment, *, cpus: int, load: float) -> Disturbance:
    """Say what others did between two moments."""
    span_s = max(after.at_s - before.at_s, 1e-3)
    jiffies = max(after.jiffies - before.jiffies, 1)
    waiting = None
    if before.waiting_us is not None and after.waiting_us is not None:
        waiting = (after.waiting_us - before.waiting_us) / 1e6 / span_s
    return Disturbance(
        others=_used_by_others(before.processes, after.processes) / span_s / cpus,
        steal=(after.steal_jiffies - before.steal_jiffies) / jiffies,
        waiting=waiting,
        load=load,
    )


def _used_by_others(before: Mapping[tuple[int, int], Process], after: Mapping[tuple[int, int], Process]) -> float:
    """CPU seconds. What an ended process had used before is its parent's now, and no work of the span."""
    gained = {key: one.used_s - (before[key].used_s if key in before else 0.0) for key, one in after.items()}
    by_pid = {pid: (pid, began) for pid, began in after}
    parents = {pid: one.parent for (pid, _), one in before.items()}
    for key, one in before.items():
        if key not in after:
            heir = one.parent
            while heir not in by_pid and heir in parents:
                heir = parents[heir]
            if heir in by_pid:
                gained[by_pid[heir]] -= one.used_s
    return sum(max(0.0, gained[key]) for key, one in after.items() if not one.ours)


def moment(proc: Path = Path("/proc")) -> Moment:
    """Read the counters."""
    numbers = [int(word) for word in (proc / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    return Moment(time.monotonic(), sum(numbers), numbers[7], _waiting_us(proc), _processes(proc, os.getpid()))


def _waiting_us(proc: Path) -> int | None:
    """Microseconds in which a task somewhere waited for a CPU; None: the kernel does not tell."""
    with suppress(OSError, ValueError, IndexError):
        return int((proc / "pressure/cpu").read_text().split("\n", 1)[0].rpartition("=")[2])
    return None


def _processes(proc: Path, self_pid: int) -> dict[tuple[int, int], Process]:
    rows = dict(_rows(proc))

    def ours(pid: int) -> bool:
        while pid in rows:
            if pid == self_pid or rows[pid][3]:
                return True
            pid = rows[pid][1]
        return False

    return {(pid, began): Process(parent, used_s, ours(pid)) for pid, (began, parent, used_s, _) in rows.items()}


def _rows(proc: Path) -> Iterator[tuple[int, tuple[int, int, float, bool]]]:
    """Number, beginning, parent, CPU seconds, and whether a group of ours has it."""
    for folder in proc.iterdir():
        if folder.name.isdecimal():
            with suppress(OSError, ValueError, IndexError):  # it has ended by now
                pid, fields = int(folder.name), (folder / "stat").read_text().rpartition(")")[2].split()
                used = fields[11:13] if pid in _REAPERS else fields[11:15]
                grouped = f"/{OWN_GROUP}" in (folder / "cgroup").read_text()
                yield pid, (int(fields[19]), int(fields[1]), sum(map(int, used)) / TICKS_PER_S, grouped)


class Watch:
    """What happens on the machine from its making on."""

    def __init__(self) -> None:
        self._before = moment()

    def disturbance(self) -> Disturbance:
        """Say what others did until now."""
        return between(self._before, moment(), cpus=os.cpu_count() or 1, load=os.getloadavg()[0])


@dataclass
class Tries(Generic[Found]):
    """What a measurement has found, once or, where others disturbed it, several times."""

    repeats: int = REPEATS
    made: list[tuple[Found, Disturbance]] = field(default_factory=list)

    def wanted(self) -> bool:
        """Whether to measure, or to measure again."""
        return len(self.made) <= self.repeats and all(disturbance.too_much for _, disturbance in self.made)

    def add(self, found: Found, disturbance: Disturbance) -> None:
        """Add what was found, and what others did meanwhile."""
        self.made.append((found, disturbance))

    @property
    def best(self) -> tuple[Found, Disturbance]:
        """The least disturbed."""
        return min(self.made, key=lambda one: one[1].worst)
