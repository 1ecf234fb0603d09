"""A region is the unit that the advisor sizes: a share pool, a pod isolated from one, or a dedicated pod."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from services.advisor.core.model.view import ContainerView, total_request_cores

RegionType = Literal["share", "isolation", "dedicated"]
NO_NUMA = -1
DEDICATED = "dedicated"


@dataclass(frozen=True, slots=True)
class Region:
    """The containers of one region, in the order of the view. `numa` is None if it is bound to no NUMA node."""

    pool: str
    type: RegionType
    numa: int | None = None
    exclusive: bool = False
    containers: Sequence[ContainerView] = ()

    @property
    def name(self) -> str:
        """Return the pool, with the NUMA node if there is one."""
        return self.pool if self.numa is None else f"{self.pool}@{self.numa}"

    @property
    def request_cores(self) -> float:
        """Return the requests of its containers; of a container that spans NUMA nodes, the part here."""
        if self.numa is None:
            return total_request_cores(self.containers)
        return sum(container.request_cores * part_in(container, self.numa) for container in self.containers)

    @property
    def limit_cores(self) -> float:
        """Return the limits of its containers, or their requests if larger; of a container that spans NUMA nodes,
        the part here."""
        return sum(max(c.limit_cores, c.request_cores) * part_in(c, self.numa) for c in self.containers)


def part_on(cpus_per_numa: Mapping[int, int], numas: Collection[int]) -> float:
    """Return the part of these CPUs on these NUMA nodes; 1 if no node is named, or no CPU is known."""
    assigned = sum(cpus_per_numa.values())
    return sum(cpus_per_numa.get(numa, 0) for numa in set(numas)) / assigned if numas and assigned else 1.0


def part_in(container: ContainerView, numa: int | None) -> float:
    """The part of the container's CPUs on this NUMA node; 1 where no node is asked for, or its CPUs are not known."""
    return part_on(dict(container.cpus_per_numa), () if numa is None else (numa,))
