"""Read the CPU time that the kernel spent on behalf of a container: `cpuacct.stat` on v1, `cpu.stat` on v2.

v1's `cpuacct.usage_sys` counts in nanoseconds and not in ticks, but until Linux 5.17 it took a virtual machine's time
for the kernel's ("sched/cpuacct: Fix user/system in shown cpuacct.usage*"); `cpuacct.stat` never did.
"""

import os

from services.metrics.core.figures.figure import Rate
from services.metrics.core.figures.target import Target
from services.metrics.core.reads.gates import PAUSE_S, WORKED, Gate
from services.metrics.core.source import Host, Source
from shared.core.cgroups.knobs import Version
from shared.core.text.kernel_text import key_values

_COUNTER = "cpu_sys_ns"
_FILES: dict[Version, tuple[str, str, str, int]] = {
    1: ("cpuacct", "cpuacct.stat", "system", 10**9 // os.sysconf("SC_CLK_TCK")),
    2: ("cpu", "cpu.stat", "system_usec", 1000),
}
"""Controller, file, line, and its unit in nanoseconds."""


def _read(host: Host, target: Target) -> dict[str, int]:
    controller, file, line, unit_ns = _FILES[host.version]
    spent = key_values(host.group_text(target, file, controller) or "", (line,))
    return {_COUNTER: spent[line] * unit_ns} if spent else {}


SOURCE = Source(
    {"container": (Rate("cpu_sys_cores", of=_COUNTER, scale=1e-9),)},
    _read,
    cost="moderate",
    gates={"container": Gate(30.0, (WORKED,), PAUSE_S)},
)
