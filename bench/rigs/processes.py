"""What processes have used, as the kernel says it of each."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
SPIN = "while True: pass"


@contextmanager
def busy_neighbours() -> Iterator[None]:
    """Keep every CPU of this machine busy for as long as the block lasts, outside of all pods."""
    words = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-c", SPIN]
    started = [subprocess.Popen(words) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def memory_mib(pid: int) -> tuple[float, float]:
    """Resident and proportional set size in MiB."""
    rows = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    rss_kib, pss_kib = int(rows["Rss"].split()[0]), int(rows["Pss"].split()[0])
    return rss_kib / 1024, pss_kib / 1024
