"""Bounds hold what a machine reserves, whatever the policy: reserves, floors, and whether its pools can be disjoint.

Katalyst's tutorial runs on 48 CPUs and reserves 4 of them for each purpose
(docs/facts/katalyst-cpu.md#sizes-of-the-tutorial). Smaller machines reserve the same share: `min(4, cpus // 4)`
(docs/adr/0005-small-machines.md).
"""

from dataclasses import dataclass
from typing import Literal

ShapeName = Literal["partitioned", "shared"]
"""partitioned: tenants and reclaimed pods have CPUs of their own. shared: tenants may run on those of both."""
KATALYST_RESERVE_CPUS = 4
"""Katalyst's figures, for machines of 16 CPUs and 40 GiB or more; each function below states the value of smaller
machines."""
KATALYST_RESERVED_BYTES = 5 << 30
KATALYST_CRITICAL_BYTES = 4 << 30
KATALYST_UNKNOWN_BYTES = 8 << 30
MIN_DISJOINT_CORES = 4
"""Below this number of cores, a reserve for each pool would leave nothing to sublet. Cores, because pools take whole
ones."""


def cpu_share(cpus: int) -> int:
    """Katalyst's 4 CPUs on a large machine, a quarter of a small one; 0 below 4 CPUs."""
    return min(KATALYST_RESERVE_CPUS, cpus // 4)


def reserved_memory_bytes(total_bytes: int) -> int:
    """Memory never offered to reclaimed pods: Katalyst's 5 GiB (docs/facts/katalyst-memory.md#reserves), or 1/8."""
    return min(KATALYST_RESERVED_BYTES, total_bytes // 8)


def critical_memory_bytes(total_bytes: int) -> int:
    """Free memory that reclaimed pods may not eat into: 4 GiB (docs/facts/katalyst-memory.md#reserves), or 1/8."""
    return min(KATALYST_CRITICAL_BYTES, total_bytes // 8)


def unknown_memory_bytes(total_bytes: int) -> int:
    """Return the estimate of a tenant whose memory is unknown: 8 GiB (docs/facts/katalyst-memory.md#reserves), or
    1/4 of the total."""
    return min(KATALYST_UNKNOWN_BYTES, total_bytes // 4)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What no policy may cross on this machine, in whole CPUs unless the name says otherwise."""

    cpus: int
    smt: bool
    reserve_cores: float
    """Added to what the tenants need."""
    reserve_pool_cpus: int
    """CPUs of the reserve pool; 0 where the pools overlap."""
    disjoint: bool
    """Whether share and reclaimed pool have CPUs of their own."""
    shares_cpus: bool = False
    """Whether they could have, and tenants may run on every CPU all the same (docs/shared-cpus.md)."""

    @classmethod
    def of(
        cls,
        cpus: int,
        *,
        smt: bool,
        reserve_cores: float | None = None,
        reserve_pool_cpus: int = 0,
        shape: ShapeName = "partitioned",
    ) -> "Bounds":
        """Return the bounds of a machine; a reserve of None means the machine's own share.

        A reserve pool that leaves no room for both other pools is not created: the pools then overlap, whatever shape
        is wanted.
        """
        # At least one CPU for the tenants and the reclaimed pool's floor must remain.
        room = cpus - reserve_pool_cpus - max(1, cpu_share(cpus)) - reclaim_floor_cpus(cpus)
        large = cpus // (2 if smt else 1) >= MIN_DISJOINT_CORES and room >= 0
        return cls(
            cpus=cpus,
            smt=smt,
            reserve_cores=float(cpu_share(cpus)) if reserve_cores is None else reserve_cores,
            reserve_pool_cpus=reserve_pool_cpus if large else 0,
            disjoint=large and shape == "partitioned",
            shares_cpus=large and shape == "shared",
        )

    @property
    def min_share_cpus(self) -> int:
        """The share pool is never smaller."""
        return cpu_share(self.cpus)

    @property
    def max_share_cpus(self) -> int:
        """The share pool is never larger: every CPU where the pools overlap."""
        floor = reclaim_floor_cpus(self.cpus) if self.disjoint else 0
        return self.cpus - self.reserve_pool_cpus - floor

    @property
    def fallback_cores(self) -> float:
        """Return the estimate of a tenant whose CPU need is neither measured nor requested."""
        return float(max(1, cpu_share(self.cpus)))


def reclaim_floor_cpus(cpus: int) -> int:
    """CPUs that the reclaimed pool always keeps: 4 (docs/facts/katalyst-cpu.md#regions-and-reserves), at least one."""
    return max(1, cpu_share(cpus))
