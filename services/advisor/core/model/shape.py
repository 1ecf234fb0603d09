"""A shape is the machine's CPUs as regions see them: by NUMA node, with what is kept back."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.advisor.core.model.machine import KATALYST_RESERVE_CPUS
from services.advisor.core.model.region import Region


# Two shapes are equal if they are the same object: what follows from a shape is kept by it, round after round.
@dataclass(frozen=True, slots=True, eq=False)
class NodeCpus:
    """By NUMA node: CPUs that pools may have (the reserve pool is out already), and how many reclaimed pods keep."""

    available: Mapping[int, int]
    kept_for_reclaim: Mapping[int, int]
    reserve_pool_cpus: int = 0
    reclaim: bool = True
    """Whether anything is sublet at all."""
    overlap: bool = False
    """Whether reclaimed pods may run inside the share pools."""
    unit: int = 1
    """CPUs that stay together where pools must be cut: those of a core."""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The CPUs of the node, and the reserves: what reclaimed pods keep, and what regions get on top of their need."""

    node: NodeCpus
    cpus: Mapping[int, int]
    """All CPUs of each NUMA node."""
    smt: bool
    reserve_cores: float
    """Added to what the tenants need, for the whole machine."""
    min_cpus: int = KATALYST_RESERVE_CPUS
    """No share pool and no dedicated pod gets less."""
    spread: bool = False
    """Whether unbound pools may also use what bound ones leave of their NUMA nodes; in Katalyst they may not."""

    def keeps_off(self, region: Region) -> bool:
        """Whether the region keeps unbound ones off its NUMA node."""
        return region.numa is not None and not self.spread


@dataclass(frozen=True, slots=True)
class Footprint:
    """The NUMA nodes where a region lies, and the part of the machine's reserve (cores) that is added to its need."""

    numas: tuple[int, ...]
    reserve_cores: float
