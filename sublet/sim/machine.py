"""The machine of a scenario: CPUs, memory, cgroup version; by default the 48-CPU node of the quick start."""

from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from shared.contracts.kube.quantities import parse_units
from shared.core.cpus.cpuset import MAX_CPUS
from shared.core.cpus.topology import Numbering, Topology, UniformShape

Memory = Annotated[int, BeforeValidator(parse_units), Field(ge=0)]


class SimMachine(BaseModel):
    """What the generated tree says about the hardware: the tutorial's.

    Facts: docs/facts/katalyst-cpu.md#sizes-of-the-tutorial.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sockets: Annotated[int, Field(ge=1, le=16)] = 2
    numa_per_socket: Annotated[int, Field(ge=1, le=16)] = 1
    cores_per_numa: Annotated[int, Field(ge=1, le=256)] = 12
    threads: Annotated[int, Field(ge=1, le=8)] = 2
    numbering: Numbering = "split"
    """`split`: the sibling of CPU c is c plus the number of cores, as on most servers."""
    memory_bytes: Memory = Field(default=195_924_424 * 1024, alias="memory", ge=1 << 28)
    """Memory of the whole machine, split evenly over the NUMA nodes."""
    system_memory_bytes: Memory = Field(default=512 << 20, alias="system_memory")
    """What the kernel and the system itself hold, outside of every pod."""
    watermark_scale_factor: Annotated[int, Field(ge=1, le=3000)] = 10
    """vm.watermark_scale_factor: ten-thousandths of the memory (the kernel's default is 10)."""
    cgroup_version: Literal[1, 2] = 2

    @model_validator(mode="after")
    def _of_a_size_that_exists(self) -> "SimMachine":
        cpus = self.sockets * self.numa_per_socket * self.cores_per_numa * self.threads
        if cpus > MAX_CPUS:
            raise ValueError(f"{cpus} CPUs; at most {MAX_CPUS} can be numbered")
        if self.system_memory_bytes > self.memory_bytes:
            raise ValueError(f"system_memory {self.system_memory_bytes} is more than memory {self.memory_bytes}")
        return self

    @cached_property
    def topology(self) -> Topology:
        """The CPUs as the tree describes them; one L3 group a NUMA node."""
        return Topology.uniform(
            UniformShape(
                sockets=self.sockets,
                numa_per_socket=self.numa_per_socket,
                cores_per_numa=self.cores_per_numa,
                threads=self.threads,
                numbering=self.numbering,
                cores_per_l3=self.cores_per_numa,
            )
        )

    @property
    def mems(self) -> str:
        """All memory nodes in the kernel's list format."""
        last = self.sockets * self.numa_per_socket - 1
        return f"0-{last}" if last else "0"
