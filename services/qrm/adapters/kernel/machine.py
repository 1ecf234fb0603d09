"""The host's machine is its topology restricted to what the cgroup root grants, read again when that changes."""

from collections.abc import Callable, Mapping
from pathlib import Path

from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.hostfs import read_text
from shared.adapters.host.sysfs import numa_ids
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology
from shared.core.text.kernel_text import meminfo_bytes
from shared.errors import Unavailable


def numa_memory_bytes(host_root: Path) -> dict[int, int]:
    """Memory of each NUMA node as the kernel shows it."""
    found = {}
    for numa in numa_ids(host_root):
        text = read_text(f"{host_root}/sys/devices/system/node/node{numa}/meminfo") or ""
        # A node whose file cannot be read is left out: unknown, which is not the same as a node without memory.
        if (total := meminfo_bytes(text, ("MemTotal",)).get("MemTotal")) is not None:
            found[numa] = total
    return found


class HostMachine:
    """Topology and memory nodes; `refresh` costs three small reads while nothing changes."""

    def __init__(
        self,
        cgroups: Cgroups,
        read_topology: Callable[[], Topology],
        read_memory_bytes: Callable[[], Mapping[int, int]] = dict,
        read_pinned: Callable[[], Mapping[str, CpuSet]] = dict,
        read_offline: Callable[[], CpuSet] = CpuSet,
    ) -> None:
        self._cgroups, self._read, self._read_memory = cgroups, read_topology, read_memory_bytes
        self._read_pinned, self._read_offline = read_pinned, read_offline
        self.pinned_pods: Mapping[str, CpuSet] = {}
        """CPUs that another manager (kubelet's static CPU manager) has assigned to containers, by pod UID."""
        self.pins_unread = ""
        """Why the pins cannot be read now; the last known ones stay then."""
        self._look_at_pins()
        self._granted: CpuSet | None = None
        self.whole: Topology
        """Every online CPU, also those that the cgroup root does not grant."""
        self.topology = self._usable()
        self.mems = self._mems()
        self.memory_bytes = read_memory_bytes()
        """Memory of each NUMA node; the memory of a missing node is unknown."""

    @property
    def pinned(self) -> CpuSet:
        """All CPUs that another manager has assigned."""
        return CpuSet.union(self.pinned_pods.values())

    @property
    def usable(self) -> CpuSet:
        """The CPUs that Sublet may give to pods; never none."""
        # All of them barred: an empty set cannot be written to any group.
        return self.topology.all - self.barred or self.topology.all

    @property
    def barred(self) -> CpuSet:
        """The CPUs of others: pinned, or kept from the scheduler."""
        return self.pinned | (self.topology.all - self.topology.placeable)

    def offline(self) -> CpuSet:
        """CPUs that exist and are offline."""
        return self._read_offline()

    def refresh(self) -> bool:
        """Whether CPUs or memory nodes came or went since the last call. The last good view stays otherwise.

        Raises:
            Unavailable: they changed, and the new topology cannot be read.
        """
        # The full topology is some hundred small files; these reads say whether it is worth reading at all.
        same_pins, granted = self._look_at_pins(), CpuSet.parse(self._cgroups.effective_cpus("") or "")
        if same_pins and granted == self._granted and self._mems() == self.mems:
            return False
        topology, self.mems, self.memory_bytes = self._usable(), self._mems(), self._read_memory()
        changed, self.topology = topology != self.topology or not same_pins, topology
        return changed

    def _look_at_pins(self) -> bool:
        """Whether the pins are as before."""
        before = self.pinned_pods
        try:
            self.pinned_pods, self.pins_unread = self._read_pinned(), ""
        # The last known pins stay: to forget them would open CPUs that a tenant was promised.
        except (Unavailable, OSError) as error:
            self.pins_unread = str(error)
        return before == self.pinned_pods

    def _usable(self) -> Topology:
        granted = CpuSet.parse(self._cgroups.effective_cpus("") or "")
        whole = self.whole = self._read()
        # A kernel without the file of effective CPUs grants all of them.
        rows = [cpu for cpu in whole.cpus if not granted or cpu.id in granted]
        if not rows:
            raise Unavailable(f"the cgroup root grants CPUs {granted}, none of which is online ({whole.all})")
        self._granted = granted
        return Topology.of(rows, whole.isolated)

    def _mems(self) -> CpuSet:
        # Where the kernel does not say: every machine has a node 0.
        return CpuSet.parse(self._cgroups.effective_mems("") or "0")
