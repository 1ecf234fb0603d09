"""`read_topology` reads the machine's topology from `/sys/devices/system`; missing files have a plain reading."""

import re
from pathlib import Path

from shared.adapters.host.hostfs import read_text
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Cpu, Topology
from shared.core.text.kernel_text import meminfo_bytes
from shared.errors import Unavailable, Unfit

_CPUS = "sys/devices/system/cpu"
_NODES = "sys/devices/system/node"
_DEVICE_NUMBER = re.compile(r"[0-9]{1,4}:[0-9]{1,7}")


def read_topology(host_root: Path) -> Topology:
    """Return the online CPUs with NUMA node, socket, die, core and L3 group, and which of them are isolated.

    A core is identified by its siblings, not by `core_id`, which repeats between sockets and dies. Without the
    siblings' list it is (socket, die, core_id); without any of it every CPU is a core. A CPU without a NUMA node counts
    to the lowest one, and if emulated NUMA lists it twice, the lowest one wins.

    Raises:
        Unavailable: no online CPU can be found.
        Unfit: the files contradict each other (a core in two NUMA nodes).
    """
    online = online_cpus(host_root)
    numa_of = _numa_by_cpu(host_root)
    lowest_numa = min(numa_of.values(), default=0)
    groups: dict[tuple[int, ...], int] = {}
    dies: dict[int, int] = {}
    rows = []
    for cpu in online:
        folder = f"{host_root}/{_CPUS}/cpu{cpu}"
        socket = max(0, _number(f"{folder}/topology/physical_package_id", 0))
        core = groups.setdefault(_core_group(folder, cpu, socket, online), cpu)
        die = dies.setdefault(core, _die(folder))  # siblings are on one die, whatever a file says
        rows.append(Cpu(cpu, numa_of.get(cpu, lowest_numa), socket, core, _l3(folder), die))
    try:
        return Topology.of(rows, isolated_cpus(host_root))
    except ValueError as error:
        raise Unfit(f"{host_root}/{_CPUS}: {error}; nothing can be placed on such a machine") from error


def online_cpus(host_root: Path) -> CpuSet:
    """Return the running CPUs: `online`, otherwise `present`, otherwise the `cpuN` folders.

    Raises:
        Unavailable: none of them names a CPU.
    """
    for name in ("online", "present"):
        if cpus := _cpu_list(f"{host_root}/{_CPUS}/{name}"):
            return cpus
    if cpus := CpuSet.of(_numbered(host_root / _CPUS, "cpu")):
        return cpus
    raise Unavailable(f"{host_root}/{_CPUS}: neither 'online' nor 'present' nor a folder names a CPU")


def offline_cpus(host_root: Path) -> CpuSet:
    """Return CPUs that exist but do not run now (the kernel's own `offline` also lists empty sockets)."""
    return _cpu_list(f"{host_root}/{_CPUS}/present") - online_cpus(host_root)


def isolated_cpus(host_root: Path) -> CpuSet:
    """CPUs that the kernel keeps its scheduler away from (`isolcpus=`, isolated partitions); often none."""
    return _cpu_list(f"{host_root}/{_CPUS}/isolated")


def numa_ids(host_root: Path) -> tuple[int, ...]:
    """Return the NUMA nodes, ascending: `online`, otherwise the `nodeN` folders; empty if the kernel shows none."""
    nodes = _cpu_list(f"{host_root}/{_NODES}/online")
    return tuple(nodes) if nodes else tuple(sorted(_numbered(host_root / _NODES, "node")))


def memory_numa_ids(host_root: Path) -> tuple[int, ...]:
    """Return the NUMA nodes that have memory, ascending: only these may be named in `cpuset.mems`.

    By `has_memory`, otherwise by each node's `meminfo`; without either, all nodes.
    """
    if told := _cpu_list(f"{host_root}/{_NODES}/has_memory"):
        return tuple(told)
    nodes = numa_ids(host_root)
    return tuple(numa for numa in nodes if _memory_bytes(f"{host_root}/{_NODES}/node{numa}/meminfo")) or nodes


def _memory_bytes(path: str) -> int:
    return meminfo_bytes(read_text(path) or "", ("MemTotal",)).get("MemTotal", 0)


def _numa_by_cpu(host_root: Path) -> dict[int, int]:
    found: dict[int, int] = {}
    for numa in numa_ids(host_root):
        for cpu in _cpu_list(f"{host_root}/{_NODES}/node{numa}/cpulist"):
            found.setdefault(cpu, numa)
    return found


def _core_group(folder: str, cpu: int, socket: int, online: CpuSet) -> tuple[int, ...]:
    """What exactly the siblings of a core share."""
    # The second is the older name, before Linux 5.3.
    for name in ("core_cpus_list", "thread_siblings_list"):
        if siblings := _cpu_list(f"{folder}/topology/{name}") & online:
            return (min(siblings),)
    core = _number(f"{folder}/topology/core_id", -1)
    if core < 0:
        return (cpu,)
    return (socket, _die(folder), core)


def _die(folder: str) -> int:
    return max(0, _number(f"{folder}/topology/die_id", 0))


def _l3(folder: str) -> int:
    """Return the cache's own id, otherwise the lowest CPU that shares it; -1 without a third level, or if unknown."""
    if _number(f"{folder}/cache/index3/level", 3) != 3:
        return -1
    number = _number(f"{folder}/cache/index3/id", -1)
    return number if number >= 0 else min(_cpu_list(f"{folder}/cache/index3/shared_cpu_list"), default=-1)


def _cpu_list(path: str) -> CpuSet:
    try:
        return CpuSet.parse(read_text(path) or "")
    except ValueError as error:
        raise Unfit(f"{path}: {error}") from error


def _number(path: str, default: int) -> int:
    try:
        return int(read_text(path) or default)
    except ValueError:
        return default


def _numbered(folder: Path, prefix: str) -> list[int]:
    try:
        names = [entry.name for entry in folder.iterdir()]
    except FileNotFoundError:
        return []
    return [int(match[1]) for name in names if (match := re.fullmatch(rf"{prefix}(\d+)", name))]


def disk_number(host_root: Path, name: str) -> str | None:
    """The device number ("8:0") of a block device by its name, of a partition that of its disk; None: not there."""
    folder = host_root / "sys/class/block" / name
    # The link leads to the device's folder, which for a partition is inside its disk's.
    whole = folder / ".." if (folder / "partition").exists() else folder
    text = (read_text(f"{whole}/dev") or "").strip()
    return text if _DEVICE_NUMBER.fullmatch(text) else None
