"""What the kernel shows while a case runs: CPU use, the reclaimed pool's CPUs, batch progress, as a timeline."""

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from shared.adapters.host.cgroup import Cgroups
from shared.core.cgroups.knobs import Knob
from shared.core.cgroups.layout import class_group
from shared.core.cpus.cpuset import CpuSet
from sublet.demo.batch import units

TICK_S = 0.1
CPUSET_TICK_S = 0.002


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One row of the timeline; figures that could not be read are None."""

    at_s: float
    busy_cores: float
    batch_units_per_s: float
    reclaim_cpus: int | None
    share_cpus: int | None
    memory_free_bytes: int


@dataclass(frozen=True, slots=True)
class PoolChange:
    """The reclaimed pool's CPU list changed, as read back from the kernel."""

    at_s: float
    before: str
    after: str

    @property
    def smaller(self) -> bool:
        """Whether the pool has lost CPUs."""
        return len(CpuSet.parse(self.after)) < len(CpuSet.parse(self.before))


def busy_seconds(host_root: Path = Path("/")) -> float:
    """CPU seconds that all CPUs together were busy since boot, from /proc/stat (idle and iowait left out)."""
    fields = [int(f) for f in (host_root / "proc/stat").read_text().splitlines()[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def memory_free_bytes(host_root: Path = Path("/")) -> int:
    """MemFree of /proc/meminfo."""
    for line in (host_root / "proc/meminfo").read_text().splitlines():
        if line.startswith("MemFree:"):
            return int(line.split()[1]) * 1024
    raise ValueError("/proc/meminfo has no MemFree line")


@dataclass
class TimelineRecorder:
    """Reads in threads of its own, so that a busy event loop does not shift the times."""

    counters: list[Path]
    host_root: Path = Path("/")
    moments: list[TimelineRow] = field(default_factory=list)
    changes: list[PoolChange] = field(default_factory=list)
    started_s: float = 0.0
    _end: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Begin."""
        self.started_s = time.monotonic()
        self._threads = [threading.Thread(target=f, daemon=True) for f in (self._timeline, self._cpuset)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End; the lists are complete after this."""
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _size(self, cgroups: Cgroups, group: str) -> int | None:
        value = cgroups.read(group, Knob.CPUS)
        return None if value is None else len(CpuSet.parse(str(value)))

    def _timeline(self) -> None:
        cgroups = Cgroups(self.host_root)
        before = (time.monotonic(), busy_seconds(self.host_root), sum(map(units, self.counters)))
        while not self._end.wait(TICK_S):
            now = (time.monotonic(), busy_seconds(self.host_root), sum(map(units, self.counters)))
            span_s = now[0] - before[0]
            self.moments.append(
                TimelineRow(
                    at_s=now[0],
                    busy_cores=(now[1] - before[1]) / span_s,
                    batch_units_per_s=max(0, now[2] - before[2]) / span_s,
                    reclaim_cpus=self._size(cgroups, class_group("reclaimed_cores")),
                    share_cpus=self._size(cgroups, class_group("shared_cores")),
                    memory_free_bytes=memory_free_bytes(self.host_root),
                )
            )
            before = now

    def _cpuset(self) -> None:
        cgroups = Cgroups(self.host_root)
        group = class_group("reclaimed_cores")
        before = cgroups.read(group, Knob.CPUS)
        while not self._end.wait(CPUSET_TICK_S):
            now = cgroups.read(group, Knob.CPUS)
            if now != before and now is not None and before is not None:
                self.changes.append(PoolChange(time.monotonic(), str(before), str(now)))
            before = now
