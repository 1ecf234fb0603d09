"""Read the socket of each NUMA node, which is the package of its first CPU in `/sys/devices/system/cpu`.

A NUMA node without CPUs has no socket, and a kernel that does not know the package reports -1 (some ARM machines): the
figure is then absent.
"""

from services.metrics.core.figures.figure import Gauge
from services.metrics.core.figures.target import Target
from services.metrics.core.reads.gates import Gate
from services.metrics.core.source import Host, Source
from shared.core.cpus.cpuset import CpuSet


def _read(host: Host, target: Target) -> dict[str, int]:
    try:
        cpus = CpuSet.parse(host.text(f"sys/devices/system/node/node{target.name}/cpulist") or "")
    except ValueError:  # the source `numa` reads the same file, and is named for what is wrong with it
        return {}
    if not cpus:
        return {}
    package = host.text(f"sys/devices/system/cpu/cpu{min(cpus)}/topology/physical_package_id")
    return {} if package is None or int(package) < 0 else {"socket": int(package)}


SOURCE = Source(
    {"numa": (Gauge("socket"),)},
    _read,
    cost="moderate",
    gates={"numa": Gate(60.0)},  # it changes with the hardware alone
)
