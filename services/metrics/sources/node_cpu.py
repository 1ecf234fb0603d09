"""CPU of the whole node: online CPUs, busy time and waiting tasks of `/proc/stat`, and the kernel's load average."""

import os

from services.metrics.core.figures import Gauge, Rate, Target, Value
from services.metrics.host import Host, Source
from shared.core.cpuset import CpuSet

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")  # the unit of /proc/stat, the same for every architecture's user space
_BUSY_COLUMNS = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq; guest time is in user, steal is not ours


def _read(host: Host, target: Target) -> dict[str, Value]:  # noqa: ARG001 - there is one node
    found: dict[str, Value] = {}
    stat = host.text("proc/stat") or ""
    online = (host.text("sys/devices/system/cpu/online") or "").strip() or _cpus_of(stat)
    if online:
        found["online_cpus"] = online
    if stat.startswith("cpu "):
        columns = stat.partition("\n")[0].split()[1:]
        found["cpu_busy_ticks"] = sum(int(columns[column]) for column in _BUSY_COLUMNS)
    running = stat.rfind("procs_running ")
    if running >= 0:
        found["runnable_tasks"] = int(stat[running:].split(None, 2)[1])
    load = host.text("proc/loadavg")
    if load is not None:
        one, five = load.split()[:2]
        found["load1"], found["load5"] = float(one), float(five)
    return found


def _cpus_of(stat: str) -> str:
    """The online CPUs by the per-CPU lines of `/proc/stat`."""
    names = (line.partition(" ")[0].removeprefix("cpu") for line in stat.splitlines() if line.startswith("cpu"))
    return str(CpuSet.of(int(name) for name in names if name))


SOURCE = Source(
    {
        "node": (
            Gauge("online_cpus"),
            Rate("cpu_usage_cores", of="cpu_busy_ticks", scale=1 / _TICKS_PER_S),
            Gauge("runnable_tasks"),
            Gauge("load1"),
            Gauge("load5"),
        )
    },
    _read,
)
