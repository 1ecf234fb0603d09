"""What processes have used, as the kernel says it of each."""

import os
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def memory_mib(pid: int) -> tuple[float, float]:
    """Resident and proportional set size in MiB."""
    rows = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    rss_kib, pss_kib = int(rows["Rss"].split()[0]), int(rows["Pss"].split()[0])
    return rss_kib / 1024, pss_kib / 1024
