"""The static files of a generated host: folders and files below /proc and /sys that describe the machine.

The formats are the kernel's own, so the services' readers are the same as on a real host.
"""

import os
import shutil
from pathlib import Path

from shared.core.cpus.cpuset import CpuSet
from sublet.sim.machine import SimMachine

CPU_FOLDER = "sys/devices/system/cpu"
NODE_FOLDER = "sys/devices/system/node"
CARD = "sys/class/net/eth0"
L3_KIB = 32 * 1024
MIN_FREE_KIB = 67_584
NET_HEAD = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast"
    "|bytes    packets errs drop fifo colls carrier compressed\n"
)
NEAR, FAR = 10, 21  # usual entries of a NUMA distance table


class HostFiles:
    """The files that the simulator alone writes, by their name below the root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._texts: dict[str, str] = {}

    def put(self, name: str, text: str) -> None:
        """Replace a file as a whole: a reader in another process sees the old text or the new one, as in a kernel.

        A file that says so already is left alone: most of a host's figures stand still most of the time.
        """
        if self._texts.get(name) == text:
            return
        path = self.root / name
        fresh = path.with_name(f".{path.name}.new")
        try:
            fresh.write_text(text)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(text)
        os.replace(fresh, path)  # noqa: PTH105 - this runs some dozen times a simulated second
        self._texts[name] = text

    def remove(self, folder: str) -> None:
        """Take a folder away with everything in it."""
        shutil.rmtree(self.root / folder, ignore_errors=True)
        for name in [name for name in self._texts if name.startswith(f"{folder}/")]:
            del self._texts[name]


def plant(host: HostFiles, machine: SimMachine) -> None:
    """Write all that never changes. The root folder may exist; files that are there are replaced."""
    topology = machine.topology
    files: dict[str, str] = {
        "proc/sys/vm/watermark_scale_factor": f"{machine.watermark_scale_factor}\n",
        "proc/sys/vm/min_free_kbytes": f"{MIN_FREE_KIB}\n",
        "proc/sys/kernel/pid_max": f"{4 << 20}\n",
        "proc/diskstats": f" 254       0 vda{' 0' * 17}\n",
        "proc/net/dev": f"{NET_HEAD}  eth0:{' 0' * 16}\n",
        f"{CARD}/device/uevent": "DRIVER=virtio_net\n",
        f"{CARD}/operstate": "up\n",
        f"{CARD}/carrier": "1\n",
        f"{CARD}/speed": "10000\n",
        f"{CPU_FOLDER}/smt/active": f"{int(topology.smt)}\n",
        f"{NODE_FOLDER}/has_cpu": f"{machine.mems}\n",
        f"{NODE_FOLDER}/has_memory": f"{machine.mems}\n",
    }
    for name in ("online", "possible", "present"):
        files[f"{CPU_FOLDER}/{name}"] = f"{topology.all}\n"
    for name in ("online", "possible"):
        files[f"{NODE_FOLDER}/{name}"] = f"{machine.mems}\n"
    for cpu in topology.cpus:
        l3 = CpuSet.of(other.id for other in topology.cpus if other.l3 == cpu.l3)
        files |= _cpu(machine, cpu.id, core=topology.cores[cpu.core], package=topology.sockets[cpu.socket], l3=l3)
    for numa, cpus in topology.numas.items():
        distances = (NEAR if other == numa else FAR for other in topology.numas)
        files[f"{NODE_FOLDER}/node{numa}/cpulist"] = f"{cpus}\n"
        files[f"{NODE_FOLDER}/node{numa}/distance"] = " ".join(map(str, distances)) + "\n"
    for name, text in files.items():
        host.put(name, text)


def _cpu(machine: SimMachine, cpu: int, *, core: CpuSet, package: CpuSet, l3: CpuSet) -> dict[str, str]:
    """One CPU's folder. Core ids count within the package, as Linux numbers them on x86."""
    row = next(r for r in machine.topology.cpus if r.id == cpu)
    cores = sorted({r.core for r in machine.topology.cpus if r.socket == row.socket})
    here = f"{CPU_FOLDER}/cpu{cpu}"
    files = {
        f"{here}/topology/core_id": f"{cores.index(row.core)}\n",
        f"{here}/topology/physical_package_id": f"{row.socket}\n",
        f"{here}/topology/die_id": "0\n",
        f"{here}/topology/thread_siblings_list": f"{core}\n",
        f"{here}/topology/core_cpus_list": f"{core}\n",
        f"{here}/topology/package_cpus_list": f"{package}\n",
        f"{here}/topology/core_siblings_list": f"{package}\n",
        f"{here}/cache/index3/level": "3\n",
        f"{here}/cache/index3/type": "Unified\n",
        f"{here}/cache/index3/id": f"{row.l3}\n",
        f"{here}/cache/index3/shared_cpu_list": f"{l3}\n",
        f"{here}/cache/index3/size": f"{L3_KIB}K\n",
        f"{here}/node{row.numa}/cpulist": f"{machine.topology.numas[row.numa]}\n",
    }
    if cpu:  # the kernel offers no switch for the boot CPU
        files[f"{here}/online"] = "1\n"
    return files
