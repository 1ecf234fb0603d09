"""Read which CPUs are online, the one figure that every sample needs."""

from services.metrics.core.figures.figure import Gauge
from services.metrics.core.figures.target import Target
from services.metrics.core.source import Host, Source
from shared.core.cpus.cpuset import CpuSet


def _read(host: Host, target: Target) -> dict[str, str]:  # noqa: ARG001 - there is one node
    listed = CpuSet.parse(host.text("sys/devices/system/cpu/online") or "")
    # Where sysfs is silent: `/proc/stat` lists the online CPUs as well.
    online = listed or _cpus_of(host.text("proc/stat") or "")
    return {"online_cpus": str(online)} if online else {}


def _cpus_of(stat: str) -> CpuSet:
    """By the per-CPU lines of `/proc/stat`."""
    names = (line.partition(" ")[0].removeprefix("cpu") for line in stat.splitlines() if line.startswith("cpu"))
    return CpuSet.of(int(name) for name in names if name)


SOURCE = Source({"node": (Gauge("online_cpus"),)}, _read)
