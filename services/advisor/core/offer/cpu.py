"""`cpu_offer` computes the CPU offered to reclaimed pods, in milli-cores by NUMA node.

By pool: all its CPUs, as the tutorial reports them. By supply: minus what others use of them. By use: more than the
pool holds while its utilization is low (docs/facts/katalyst-cpu.md#headroom).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from services.advisor.core.offer.headroom import (
    MILLIS,
    GroupUse,
    HeadroomRules,
    ReclaimedUse,
    capacity_millis,
    node_headroom_millis,
    numa_pools,
)
from shared.contracts.sample import NodeSample
from shared.core.cgroups.layout import RECLAIM
from shared.core.cpus.cpuset import CpuSet

Basis = Literal["pool", "supply", "util"]


@dataclass(frozen=True, slots=True)
class CpuFigures:
    """The reclaim pool as applied, and its use; None if unknown."""

    pool: CpuSet
    numas: Mapping[int, CpuSet]
    used_ratio: Mapping[int, float] | None = None
    """How much of each CPU is used."""
    use: ReclaimedUse | None = None
    bound_numas: frozenset[int] = frozenset()
    """NUMA nodes that reclaimed pods are bound to."""


@dataclass(frozen=True, slots=True)
class CpuOffer:
    """Milli-cores by NUMA node, ascending: the offer and the capacity."""

    millis: Mapping[int, int] = field(default_factory=dict)
    capacity_millis: Mapping[int, int] = field(default_factory=dict)
    why: str = ""

    @property
    def total_millis(self) -> int:
        """Return the whole offer."""
        return sum(self.millis.values())

    def within(self, most_millis: int) -> "CpuOffer":
        """The same, shortened on every NUMA node alike so that the total stays within a bound."""
        return CpuOffer(within(self.millis, most_millis), self.capacity_millis, self.why)


def within(by_numa: Mapping[int, int], most: int) -> dict[int, int]:
    """The same amounts, shortened on every NUMA node alike so that their sum stays within a bound."""
    total, most = sum(by_numa.values()), max(0, most)
    if total <= most:
        return dict(by_numa)
    return {numa: amount * most // total for numa, amount in by_numa.items()}


def cpu_offer(basis: Basis, figures: CpuFigures, last: CpuOffer, rules: HeadroomRules) -> CpuOffer:
    """The next offer. Where figures are missing it is at most the last offer: what is not known adds nothing."""
    pools = numa_pools(figures.pool, figures.numas, figures.used_ratio or {}, last.millis)
    held = {numa: pools[numa].pool_cpus * MILLIS for numa in sorted(pools) if pools[numa].pool_cpus}
    if basis == "pool":
        return CpuOffer(held, held, "CPUs of the pool")
    if figures.used_ratio is None or figures.use is None:
        kept = {numa: min(millis, last.millis.get(numa, 0)) for numa, millis in held.items()}
        return CpuOffer(kept, held, "use of the pool unknown: no more than before")
    millis = node_headroom_millis(pools, figures.use, figures.bound_numas, rules)
    return CpuOffer(millis, capacity_millis(pools, millis), "supply" if rules.util is None else "supply by its use")


def cpu_figures(
    sample: NodeSample, pool: CpuSet, numas: Mapping[int, CpuSet], bound_numas: frozenset[int] = frozenset()
) -> CpuFigures:
    """Return what a sample says about the applied pool; it has no separate figures for pods bound to a NUMA node."""
    usage, reclaimed = sample.node_reading.cpus, sample.pool(RECLAIM)
    ratios = None if usage is None else {cpu: percent / 100 for cpu, percent in usage.by_cpu().items()}
    use = None
    if reclaimed is not None and reclaimed.cpu_usage_cores is not None:
        use = ReclaimedUse(GroupUse(reclaimed.cpu_usage_cores, reclaimed.cpu_limit_cores))
    # A CPU without a figure would count as unused, and be offered.
    known = bool(ratios) and all(cpu in (ratios or {}) for cpu in pool)
    return CpuFigures(pool, numas, ratios if known else None, use, bound_numas)
