"""`Topology` knows the NUMA node, socket, core and L3 group of each CPU of a machine. Pure.

`shared.adapters.host.sysfs` reads them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from shared.core.cpus.cpuset import CpuSet

Numbering = Literal["split", "adjacent", "interleaved"]
_NONE = CpuSet()


@dataclass(frozen=True, slots=True)
class Cpu:
    """One logical CPU. `core` is any id that exactly its SMT siblings share within a die; `l3` is -1 where unknown."""

    id: int
    numa: int
    socket: int
    core: int
    l3: int = -1
    die: int = 0


@dataclass(frozen=True, slots=True)
class UniformShape:
    """The counts of a regular machine: every socket, NUMA node and core alike, CPU ids by `numbering`."""

    sockets: int
    numa_per_socket: int
    cores_per_numa: int
    threads: int
    numbering: Numbering = "split"
    cores_per_l3: int | None = None
    """None: the L3 groups are not known."""

    @property
    def numas(self) -> int:
        """NUMA nodes of the machine."""
        return self.sockets * self.numa_per_socket

    def cpu_id(self, numa: int, core: int, thread: int) -> int:
        """The CPU of a thread, by the number of its core within its NUMA node."""
        cores, whole = self.numas * self.cores_per_numa, numa * self.cores_per_numa + core
        return {
            "split": thread * cores + whole,
            "adjacent": whole * self.threads + thread,
            "interleaved": thread * cores + core * self.numas + numa,
        }[self.numbering]

    def l3(self, numa: int, core: int) -> int:
        """The L3 group of a core; -1 where they are not known."""
        if self.cores_per_l3 is None:
            return -1
        # Rounded up: no group reaches into the next NUMA node, so the last one of a node may be smaller.
        return numa * -(-self.cores_per_numa // self.cores_per_l3) + core // self.cores_per_l3


@dataclass(frozen=True)
class Topology:
    """The CPUs of a machine that run, ascending by id. A core's id is made canonical: the lowest CPU of its siblings.

    `isolated` are those that the kernel was told to keep its scheduler away from; they are part of the machine all the
    same, so that cores and nodes are known whole, but nothing is to be placed there (`placeable`).
    """

    cpus: tuple[Cpu, ...]
    isolated: CpuSet = _NONE

    @classmethod
    def of(cls, cpus: Iterable[Cpu], isolated: CpuSet = _NONE) -> "Topology":
        """Build from rows in any order; isolated CPUs that do not run are left out.

        Raises:
            ValueError: no CPU, a CPU given twice, or a core that spans two NUMA nodes.
        """
        rows = sorted(cpus, key=lambda cpu: cpu.id)
        if not rows:
            raise ValueError("topology: no CPU given")
        lowest: dict[tuple[int, int, int], int] = {}
        numa_of_core: dict[tuple[int, int, int], int] = {}
        seen: set[int] = set()
        for row in rows:
            if row.id in seen:
                raise ValueError(f"topology: CPU {row.id} is given twice")
            seen.add(row.id)
            # `core_id` repeats from socket to socket and from die to die.
            key = (row.socket, row.die, row.core)
            lowest.setdefault(key, row.id)
            if numa_of_core.setdefault(key, row.numa) != row.numa:
                raise ValueError(f"topology: core {row.core} of socket {row.socket} lies in two NUMA nodes")
        named = [Cpu(r.id, r.numa, r.socket, lowest[r.socket, r.die, r.core], r.l3, r.die) for r in rows]
        return cls(tuple(named), isolated & CpuSet.of(row.id for row in rows))

    @classmethod
    def uniform(cls, shape: UniformShape) -> "Topology":
        """A regular machine.

        Raises:
            ValueError: a count below 1.
        """
        counts = (shape.sockets, shape.numa_per_socket, shape.cores_per_numa, shape.threads, shape.cores_per_l3 or 1)
        if min(counts) < 1:
            raise ValueError("topology: every count must be at least 1")
        rows = []
        for numa in range(shape.numas):
            for core in range(shape.cores_per_numa):
                # Cores are numbered through the machine: an id that repeated in the next socket would join two cores.
                whole = numa * shape.cores_per_numa + core
                for thread in range(shape.threads):
                    cpu_id = shape.cpu_id(numa, core, thread)
                    rows.append(Cpu(cpu_id, numa, numa // shape.numa_per_socket, whole, shape.l3(numa, core)))
        return cls.of(rows)

    @cached_property
    def all(self) -> CpuSet:
        """Every CPU."""
        return CpuSet.of(cpu.id for cpu in self.cpus)

    @cached_property
    def numas(self) -> dict[int, CpuSet]:
        """NUMA node id, ascending, to its CPUs."""
        return self._group("numa")

    @cached_property
    def sockets(self) -> dict[int, CpuSet]:
        """Socket id, ascending, to its CPUs."""
        return self._group("socket")

    @cached_property
    def cores(self) -> dict[int, CpuSet]:
        """Core id (the lowest CPU id of the siblings), ascending, to its CPUs."""
        return self._group("core")

    @cached_property
    def l3_groups(self) -> dict[int, CpuSet]:
        """L3 group id, ascending, to its CPUs; those whose group is unknown are under -1."""
        return self._group("l3")

    @cached_property
    def dies(self) -> dict[tuple[int, int], CpuSet]:
        """Socket and die id, ascending, to its CPUs: die ids begin at 0 in every socket."""
        masks: dict[tuple[int, int], int] = {}
        for cpu in self.cpus:
            masks[cpu.socket, cpu.die] = masks.get((cpu.socket, cpu.die), 0) | 1 << cpu.id
        return {key: CpuSet(masks[key]) for key in sorted(masks)}

    @cached_property
    def cores_by_numa(self) -> dict[int, tuple[tuple[int, int], ...]]:
        """NUMA node id to its cores, both ascending; a core as its id and the bit mask of its CPUs."""
        return self._cores_by("numa")

    @cached_property
    def cores_by_socket(self) -> dict[int, tuple[tuple[int, int], ...]]:
        """Socket id to its cores, both ascending; a core as its id and the bit mask of its CPUs."""
        return self._cores_by("socket")

    @cached_property
    def core_ids_by_numa(self) -> dict[int, tuple[int, ...]]:
        """NUMA node id to its core ids, both ascending."""
        return {numa: tuple(core for core, _ in cores) for numa, cores in self.cores_by_numa.items()}

    @cached_property
    def placeable(self) -> CpuSet:
        """Every CPU that is not isolated; all of them where none would be left, so that this is never empty."""
        # A machine on which everything is isolated still has to run its tenants somewhere.
        return self.all - self.isolated or self.all

    @cached_property
    def threads_per_core(self) -> int:
        """CPUs divided by cores, rounded down, as Katalyst counts it: 1 where most cores have one."""
        return max(1, len(self.cpus) // len(self.cores))

    @cached_property
    def smt(self) -> bool:
        """Whether any core has more than one CPU."""
        return len(self.cpus) > len(self.cores)

    def _cores_by(self, field: Literal["numa", "socket"]) -> dict[int, tuple[tuple[int, int], ...]]:
        cores: dict[int, list[tuple[int, int]]] = {}
        for cpu in self.cpus:
            if cpu.id == cpu.core:  # once a core, ascending
                cores.setdefault(getattr(cpu, field), []).append((cpu.core, self.cores[cpu.core].mask))
        return {key: tuple(cores[key]) for key in sorted(cores)}

    def _group(self, field: Literal["numa", "socket", "core", "l3"]) -> dict[int, CpuSet]:
        masks: dict[int, int] = {}
        for cpu in self.cpus:
            key = getattr(cpu, field)
            masks[key] = masks.get(key, 0) | 1 << cpu.id
        return {key: CpuSet(masks[key]) for key in sorted(masks)}
