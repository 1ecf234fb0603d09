"""Records what the kernel shows while a case runs: CPU use, the reclaimed pool's CPUs, batch progress, as a
timeline."""

import os
import threading
import time
from collections.abc import Callable
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
    service_cores: float | None = None


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


def cpu_seconds(host_root: Path = Path("/")) -> tuple[float, float]:
    """CPU seconds of all CPUs together since boot, from /proc/stat: busy ones (without idle and iowait), and all."""
    fields = [int(f) for f in (host_root / "proc/stat").read_text().splitlines()[0].split()[1:9]]
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    return (sum(fields) - fields[3] - fields[4]) / ticks_per_s, sum(fields) / ticks_per_s


def busy_seconds(host_root: Path = Path("/")) -> float:
    """CPU seconds that all CPUs together were busy since boot."""
    return cpu_seconds(host_root)[0]


def memory_free_bytes(host_root: Path = Path("/")) -> int:
    """MemFree of /proc/meminfo."""
    for line in (host_root / "proc/meminfo").read_text().splitlines():
        if line.startswith("MemFree:"):
            return int(line.split()[1]) * 1024
    raise ValueError("/proc/meminfo has no MemFree line")


@dataclass
class CpuRates:
    """Busy cores from counters that may stand still: a simulated machine writes its files anew once a second.

    The time between two values is what all CPUs together counted, not what a clock says; while they count nothing the
    last rate holds.
    """

    cpus: int
    busy_cores: float | None = None
    """None until the counters have moved once."""
    service_cores: float | None = None
    _before: tuple[float, float, float | None] | None = None

    def add(self, busy_s: float, all_s: float, service_s: float | None = None) -> None:
        """Take the counters as they are now."""
        if self._before is None:
            self._before = (busy_s, all_s, service_s)
            return
        busy_before, all_before, service_before = self._before
        span_s = (all_s - all_before) / self.cpus
        if span_s <= 0:
            return
        self.busy_cores = max(0.0, busy_s - busy_before) / span_s
        if service_s is not None and service_before is not None:
            self.service_cores = max(0.0, service_s - service_before) / span_s
        self._before = (busy_s, all_s, service_s)


@dataclass
class TimelineRecorder:
    """Reads in threads of its own, so that a busy event loop does not shift the times."""

    counters: list[Path]
    host_root: Path = Path("/")
    cpus: int = field(default_factory=lambda: os.cpu_count() or 1)
    service_usage_s: Callable[[], float | None] = lambda: None
    """CPU seconds of the service so far, where they are read."""
    moments: list[TimelineRow] = field(default_factory=list)
    changes: list[PoolChange] = field(default_factory=list)
    started_s: float = 0.0
    _sizes: dict[str, int] = field(default_factory=dict)
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
        """CPUs of a pool; where a simulated file is just being written anew, the last size that was read."""
        if value := str(cgroups.read(group, Knob.CPUS) or ""):
            self._sizes[group] = len(CpuSet.parse(value))
        return self._sizes.get(group)

    def _timeline(self) -> None:
        cgroups, rates = Cgroups(self.host_root), CpuRates(self.cpus)
        counted = (time.monotonic(), sum(map(units, self.counters)))
        while True:
            now = (time.monotonic(), sum(map(units, self.counters)))
            batch_per_s = max(0, now[1] - counted[1]) / max(now[0] - counted[0], TICK_S)
            try:
                self._add(cgroups, rates, now[0], batch_per_s)
            except (OSError, ValueError, IndexError):
                pass  # a file of a simulated machine that is just being written anew: read at the next tick
            else:
                counted = now
            if self._end.wait(TICK_S):
                return

    def _add(self, cgroups: Cgroups, rates: CpuRates, at_s: float, batch_per_s: float) -> None:
        """Add a row, once the counters have moved."""
        rates.add(*cpu_seconds(self.host_root), self.service_usage_s())
        if rates.busy_cores is None:
            return
        self.moments.append(
            TimelineRow(
                at_s=at_s,
                busy_cores=rates.busy_cores,
                batch_units_per_s=batch_per_s,
                reclaim_cpus=self._size(cgroups, class_group("reclaimed_cores")),
                share_cpus=self._size(cgroups, class_group("shared_cores")),
                memory_free_bytes=memory_free_bytes(self.host_root),
                service_cores=rates.service_cores,
            )
        )

    def _cpuset(self) -> None:
        cgroups = Cgroups(self.host_root)
        group = class_group("reclaimed_cores")
        before = cgroups.read(group, Knob.CPUS)
        while not self._end.wait(CPUSET_TICK_S):
            now = cgroups.read(group, Knob.CPUS)
            if now != before and now is not None and before is not None:
                self.changes.append(PoolChange(time.monotonic(), str(before), str(now)))
            before = now
