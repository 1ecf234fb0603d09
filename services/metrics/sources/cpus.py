"""Read how busy each CPU is, from the per-CPU lines of `/proc/stat`."""

import re

from services.metrics.core.figures.figure import BusyCpus
from services.metrics.core.figures.target import Target
from services.metrics.core.figures.values import CpuTicks
from services.metrics.core.reads.gates import Gate
from services.metrics.core.source import Host, Source

_LINE = re.compile(r"^cpu(\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)", re.MULTILINE)
"""user, nice, system, idle, iowait, irq, softirq, steal."""


def _read(host: Host, target: Target) -> dict[str, CpuTicks]:  # noqa: ARG001 - there is one node
    rows = sorted(tuple(map(int, row)) for row in _LINE.findall(host.text("proc/stat") or ""))
    if not rows:
        return {}
    cpus, busy, total = [], [], []
    for cpu, user, nice, system, idle, iowait, irq, softirq, steal in rows:
        working = user + nice + system + irq + softirq
        cpus.append(cpu)
        busy.append(working)
        # Guest time is not added: it is in user and nice already.
        total.append(working + idle + iowait + steal)
    return {"cpu_ticks": CpuTicks(tuple(cpus), tuple(busy), tuple(total))}


SOURCE = Source(
    {"node": (BusyCpus("cpus", of="cpu_ticks"),)},
    _read,
    cost="dear",  # 0.5 ms for 512 CPUs
    gates={"node": Gate(4.0)},
)
