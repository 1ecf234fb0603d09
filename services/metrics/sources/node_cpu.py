"""Read the CPU time of the whole node, by `/proc/stat`: busy and stolen time, and tasks that run or want to."""

import os

from services.metrics.core.figures.figure import Gauge, Rate
from services.metrics.core.figures.target import Target
from services.metrics.core.source import Host, Source

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")  # the unit of /proc/stat, the same for every architecture's user space
BUSY_COLUMNS = (0, 1, 2, 5, 6)
"""user, nice, system, irq, softirq; guest time is in user, steal is apart."""
STEAL_COLUMN = 7
"""Time in which a CPU had work and the hypervisor ran another guest (docs/facts/linux-cpu.md#stolen-time)."""
ALL_COLUMNS = slice(0, 8)
"""With idle, iowait and steal: what adds up to the time that has passed."""


def _read(host: Host, target: Target) -> dict[str, int]:  # noqa: ARG001 - there is one node
    found: dict[str, int] = {}
    stat = host.text("proc/stat") or ""
    if stat.startswith("cpu "):
        columns = [int(column) for column in stat.partition("\n")[0].split()[1:]]
        found["cpu_busy_ticks"] = sum(columns[column] for column in BUSY_COLUMNS)
        found["cpu_all_ticks"] = sum(columns[ALL_COLUMNS])
        if len(columns) > STEAL_COLUMN:
            found["cpu_steal_ticks"] = columns[STEAL_COLUMN]
    running = stat.rfind("procs_running ")
    if running >= 0:
        found["runnable_tasks"] = int(stat[running:].split(None, 2)[1])
    return found


SOURCE = Source(
    {
        "node": (
            Rate("cpu_usage_cores", of="cpu_busy_ticks", scale=1 / _TICKS_PER_S, alive="cpu_all_ticks"),
            Rate("cpu_steal_cores", of="cpu_steal_ticks", scale=1 / _TICKS_PER_S),
            Gauge("runnable_tasks"),
        )
    },
    _read,
    cost="moderate",
)
