"""Read the memory and CPUs of each NUMA node, from `/sys/devices/system/node`."""

from services.metrics.core.figures.figure import Gauge
from services.metrics.core.figures.target import Target
from services.metrics.core.figures.values import Value
from services.metrics.core.source import Host, Source
from shared.core.cpus.cpuset import CpuSet
from shared.core.text.kernel_text import meminfo_bytes

_MEMINFO = {
    "MemTotal": "memory_total_bytes",
    "MemFree": "memory_free_bytes",
    "Inactive(file)": "inactive_file_bytes",
    "FilePages": "file_bytes",
    "Active(file)": "active_file_bytes",
    "SReclaimable": "slab_reclaimable_bytes",
}


def _read(host: Host, target: Target) -> dict[str, Value]:
    folder = f"sys/devices/system/node/node{target.name}"
    fields = meminfo_bytes(host.text(f"{folder}/meminfo") or "", _MEMINFO)
    found: dict[str, Value] = {_MEMINFO[name]: value for name, value in fields.items()}
    cpus = host.text(f"{folder}/cpulist")
    if cpus is not None:
        found["cpus"] = str(CpuSet.parse(cpus))
    return found


SOURCE = Source(
    {"numa": tuple(Gauge(name) for name in ("cpus", *_MEMINFO.values()))},
    _read,
    cost="moderate",
)
