"""The machine as qrm may use it: the topology, cut down to what the cgroup root grants, read anew when that changes."""

from collections.abc import Callable

from shared.adapters.cgroup import Cgroups
from shared.core.cpuset import CpuSet
from shared.core.topology import Topology
from shared.errors import Unavailable


class Machine:
    """Topology and memory nodes; `refresh` costs two small reads while nothing changes."""

    def __init__(self, cgroups: Cgroups, read_topology: Callable[[], Topology]) -> None:
        self._cgroups, self._read = cgroups, read_topology
        self._granted: CpuSet | None = None
        self.topology = self._usable()
        self.mems = self._mems()

    def refresh(self) -> bool:
        """Look whether CPUs or memory nodes came or went; True when they did. The last good view stays otherwise.

        Raises:
            Unavailable: they changed, and the new topology cannot be read.
        """
        if CpuSet.parse(self._cgroups.effective_cpus("") or "") == self._granted and self._mems() == self.mems:
            return False
        topology, self.mems = self._usable(), self._mems()
        changed, self.topology = topology != self.topology, topology
        return changed

    def _usable(self) -> Topology:
        granted = CpuSet.parse(self._cgroups.effective_cpus("") or "")
        whole = self._read()
        rows = [cpu for cpu in whole.cpus if not granted or cpu.id in granted]
        if not rows:
            raise Unavailable(f"the cgroup root grants CPUs {granted}, none of which is online ({whole.all})")
        self._granted = granted
        return Topology.of(rows)

    def _mems(self) -> CpuSet:
        return CpuSet.parse(self._cgroups.effective_mems("") or "0")
