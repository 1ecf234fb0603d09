"""A region is what the advisor sizes by itself: a share pool, a pod isolated from one, or a dedicated pod."""

from dataclasses import dataclass
from typing import Literal

from services.advisor.core.model.view import ContainerView

RegionType = Literal["share", "isolation", "dedicated"]
NO_NUMA = -1
DEDICATED = "dedicated"


@dataclass(frozen=True, slots=True)
class Region:
    """The containers of one region, in the order of the view. `numa` is None where it is bound to no NUMA node."""

    pool: str
    type: RegionType
    numa: int | None = None
    exclusive: bool = False
    containers: tuple[ContainerView, ...] = ()

    @property
    def name(self) -> str:
        """The pool, with the NUMA node where there is one."""
        return self.pool if self.numa is None else f"{self.pool}@{self.numa}"

    @property
    def request_cores(self) -> float:
        """What its containers asked for; of one that spans NUMA nodes the part here."""
        if self.numa is None:
            return sum(container.request_cores for container in self.containers)
        return sum(container.request_cores * part_in(container, self.numa) for container in self.containers)

    @property
    def limit_cores(self) -> float:
        """Their limits, or requests where there is none or where they are larger."""
        return sum(max(c.limit_cores, c.request_cores) * part_in(c, self.numa) for c in self.containers)


def part_in(container: ContainerView, numa: int | None) -> float:
    """Of the container's CPUs the part on this NUMA node; all of it where nothing is known or asked."""
    if numa is None or not container.cpus_per_numa:
        return 1.0
    cpus = dict(container.cpus_per_numa)
    assigned = sum(cpus.values())
    return cpus.get(numa, 0) / assigned if assigned else 1.0
