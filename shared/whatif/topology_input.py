"""The `topology` input of the what-if kinds: a table of CPUs, or a regular machine in a few numbers."""

from functools import cached_property
from typing import Annotated, Self

from pydantic import Field, model_validator

from shared.core.cpus.cpuset import MAX_CPUS
from shared.core.cpus.topology import Cpu, Numbering, Topology, UniformShape
from shared.whatif.decisions import Question

Positive = Annotated[int, Field(ge=1, le=MAX_CPUS)]
CpuRow = Annotated[list[int], Field(min_length=5, max_length=5)]
"""cpu, numa, socket, core, l3; `core` is any id that exactly the SMT siblings share, l3 -1 where unknown."""


class UniformMachine(Question):
    """A regular machine: every socket, NUMA node and core alike."""

    sockets: Positive
    numa_per_socket: Positive
    cores_per_numa: Positive
    threads: Positive
    numbering: Numbering
    cores_per_l3: Positive | None = None

    @model_validator(mode="after")
    def _not_too_large(self) -> Self:
        cpus = self.sockets * self.numa_per_socket * self.cores_per_numa * self.threads
        if cpus > MAX_CPUS:
            raise ValueError(f"uniform: {cpus} CPUs, at most {MAX_CPUS} are handled")
        return self


class TopologyInput(Question):
    """Exactly one of `cpus` and `uniform`."""

    cpus: list[CpuRow] | None = None
    uniform: UniformMachine | None = None

    @model_validator(mode="after")
    def _one_machine(self) -> Self:
        if (self.cpus is None) == (self.uniform is None):
            raise ValueError("topology: give either cpus or uniform")
        _ = self.topology
        return self

    @cached_property
    def topology(self) -> Topology:
        """The machine described.

        Raises:
            ValueError: the rows describe no machine; the message names the CPU or core.
        """
        if self.uniform is not None:
            return Topology.uniform(UniformShape(**self.uniform.model_dump()))
        rows = [Cpu(*row) for row in self.cpus or []]
        for row in rows:
            if not 0 <= row.id < MAX_CPUS or min(row.numa, row.socket) < 0 or row.l3 < -1:
                raise ValueError(f"topology: row of CPU {row.id}: ids start at 0 (l3: -1 where unknown)")
        return Topology.of(rows)
