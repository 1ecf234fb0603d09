"""Reads the machine: kernel counters while the demo is idle, then one busy thread per CPU for a moment."""

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shared.core.cgroups.layout import ROOT
from sublet.demo.machine.fit import CaseNoise, MachineReading

WATCH_S, CALIBRATION_S = 1.0, 0.5
_BLOCK = bytes(1 << 16)  # above 2 KiB the hash lets other threads run
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_IDLE, _IO_WAIT, _STEAL = 3, 4, 7


def read_machine(host_root: Path = Path("/")) -> MachineReading:
    """Look for a second and calibrate for half of one."""
    cpus = len(os.sched_getaffinity(0))
    before, waited_before = NoiseWatch(host_root), _waited_us(host_root)
    time.sleep(WATCH_S)
    waited = _waited_us(host_root)
    others = before.noise()
    hashed, cpu_s, wall_s = _calibrate(cpus)
    steal = max(others.steal_percent, before.noise().steal_percent)
    return MachineReading(
        cpus=cpus,
        got_cores=round(min(cpu_s / wall_s, cpus), 2),
        hash_mb_per_s=round(hashed / max(cpu_s, 1e-6) / 1e6, 1),
        others_cores=round(others.others_cores, 2),
        load1=round(os.getloadavg()[0], 2),
        steal_percent=round(steal, 1),
        pressure_percent=None
        if waited is None or waited_before is None
        else round(min((waited - waited_before) / WATCH_S / 1e4, 100.0), 1),
    )


def _calibrate(threads: int) -> tuple[int, float, float]:
    """Bytes hashed by so many threads, their CPU time, and the time it took."""
    counts = [0] * threads
    end = time.monotonic() + CALIBRATION_S

    def work(number: int) -> None:
        while time.monotonic() < end:
            hashlib.sha256(_BLOCK).digest()
            counts[number] += len(_BLOCK)

    started, cpu_started = time.monotonic(), time.process_time()
    workers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts), time.process_time() - cpu_started, time.monotonic() - started


@dataclass
class NoiseWatch:
    """The CPU time that others have had since its making: that of all CPUs, less what the demo's own processes used."""

    host_root: Path = Path("/")
    now_s: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._at_s = self.now_s()
        self._own, self._stat = _own_ticks(self.host_root), _stat_ticks(self.host_root)

    def noise(self) -> CaseNoise:
        """CPU time of others and of the hypervisor since then; the demo's processes must still run."""
        span_s = max(self.now_s() - self._at_s, 1e-6)
        stat = [now - then for now, then in zip(_stat_ticks(self.host_root), self._stat, strict=True)]
        own = sum(now - self._own.get(pid, 0) for pid, now in _own_ticks(self.host_root).items())
        busy = sum(stat) - stat[_IDLE] - stat[_IO_WAIT] - stat[_STEAL]
        return CaseNoise(max(0, busy - own) / _TICKS_PER_S / span_s, 100 * stat[_STEAL] / max(sum(stat), 1))


def _stat_ticks(host_root: Path) -> list[int]:
    """User to steal of all CPUs, from /proc/stat."""
    return [int(part) for part in (host_root / "proc/stat").read_text().splitlines()[0].split()[1:9]]


def _waited_us(host_root: Path) -> int | None:
    """Time in which some task waited for a CPU, since boot."""
    try:
        found = re.search(r"^some .*total=(\d+)", (host_root / "proc/pressure/cpu").read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None


def _own_ticks(host_root: Path) -> dict[int, int]:
    """CPU time of each of the demo's processes: this one, whatever descends from it, what runs in Sublet's cgroups."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    own = {os.getpid()}
    for folder in (host_root / "proc").glob("[0-9]*"):
        try:
            # The name of a process may hold anything: the figures follow its last bracket.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            groups = (folder / "cgroup").read_text(errors="replace")
        except OSError:
            continue  # it has just ended
        pid = int(folder.name)
        parents[pid], ticks[pid] = int(fields[1]), sum(int(part) for part in fields[11:13])
        if f":/{ROOT}/" in groups:
            own.add(pid)
    return {pid: count for pid, count in ticks.items() if _descends(pid, own, parents)}


def _descends(pid: int, own: set[int], parents: dict[int, int]) -> bool:
    seen: set[int] = set()
    while pid and pid not in seen:
        if pid in own:
            return True
        seen.add(pid)
        pid = parents.get(pid, 0)
    return False
