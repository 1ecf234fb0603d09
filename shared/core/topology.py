"""What the machine's CPUs are: NUMA node, socket, core and L3 group of each. Pure: `shared.adapters.sysfs` reads it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from shared.core.cpuset import CpuSet

Numbering = Literal["split", "adjacent", "interleaved"]


@dataclass(frozen=True, slots=True)
class Cpu:
    """One logical CPU. `core` is any id that exactly its SMT siblings share; `l3` is -1 where unknown."""

    id: int
    numa: int
    socket: int
    core: int
    l3: int = -1


@dataclass(frozen=True)
class Topology:
    """The CPUs of a machine, ascending by id. Core ids are made canonical: the lowest CPU id among the siblings."""

    cpus: tuple[Cpu, ...]

    @classmethod
    def of(cls, cpus: Iterable[Cpu]) -> "Topology":
        """Build from rows in any order.

        Raises:
            ValueError: no CPU, a CPU given twice, or a core that spans two NUMA nodes.
        """
        rows = sorted(cpus, key=lambda cpu: cpu.id)
        if not rows:
            raise ValueError("topology: no CPU given")
        lowest: dict[tuple[int, int], int] = {}
        numa_of_core: dict[tuple[int, int], int] = {}
        seen: set[int] = set()
        for row in rows:
            if row.id in seen:
                raise ValueError(f"topology: CPU {row.id} is given twice")
            seen.add(row.id)
            key = (row.socket, row.core)
            lowest.setdefault(key, row.id)
            if numa_of_core.setdefault(key, row.numa) != row.numa:
                raise ValueError(f"topology: core {row.core} of socket {row.socket} lies in two NUMA nodes")
        return cls(tuple(Cpu(r.id, r.numa, r.socket, lowest[r.socket, r.core], r.l3) for r in rows))

    @classmethod
    def uniform(  # one argument for each field of the contract's `uniform` form
        cls,
        *,
        sockets: int,
        numa_per_socket: int,
        cores_per_numa: int,
        threads: int,
        numbering: Numbering = "split",
        cores_per_l3: int | None = None,
    ) -> "Topology":
        """A regular machine. CPU ids by `numbering` as in the what-if contract, section 1.4.

        Raises:
            ValueError: a count below 1.
        """
        if min(sockets, numa_per_socket, cores_per_numa, threads, cores_per_l3 or 1) < 1:
            raise ValueError("topology: every count must be at least 1")
        numas = sockets * numa_per_socket
        rows = []
        for numa in range(numas):
            for core in range(cores_per_numa):
                whole = numa * cores_per_numa + core
                for thread in range(threads):
                    cpu_id = {
                        "split": thread * numas * cores_per_numa + whole,
                        "adjacent": whole * threads + thread,
                        "interleaved": thread * numas * cores_per_numa + core * numas + numa,
                    }[numbering]
                    l3 = (
                        -1
                        if cores_per_l3 is None
                        else (numa * -(-cores_per_numa // cores_per_l3)) + core // cores_per_l3
                    )
                    rows.append(Cpu(cpu_id, numa, numa // numa_per_socket, whole, l3))
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
    def core_ids_by_numa(self) -> dict[int, tuple[int, ...]]:
        """NUMA node id to its core ids, both ascending."""
        return {numa: tuple(c for c in self.cores if c in cpus) for numa, cpus in self.numas.items()}

    @cached_property
    def threads_per_core(self) -> int:
        """CPUs divided by cores, as the systems of the seeds count it."""
        return max(1, len(self.cpus) // len(self.cores))

    @property
    def smt(self) -> bool:
        """Whether a core has more than one CPU."""
        return self.threads_per_core > 1

    def _group(self, field: Literal["numa", "socket", "core"]) -> dict[int, CpuSet]:
        masks: dict[int, int] = {}
        for cpu in self.cpus:
            key = getattr(cpu, field)
            masks[key] = masks.get(key, 0) | 1 << cpu.id
        return {key: CpuSet(masks[key]) for key in sorted(masks)}
