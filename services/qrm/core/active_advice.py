"""The active advice decides how far it still applies, and what may be offered to reclaimed pods because of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from shared.contracts.advice import PoolAdvice
from shared.contracts.allocation import NumaOffer
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.shares import shared_out

Stage = Literal["applied", "held", "floor"]


@dataclass(frozen=True, slots=True)
class ActiveAdvice:
    """The last advice that could be placed. Times are seconds of one monotonic clock."""

    advice: PoolAdvice
    received_s: float
    lease_until_s: float

    def stage(self, now_s: float) -> Stage:
        """applied: fresh; held: no longer fresh, the lease still runs; floor: the lease has ended.

        Advice may say that it stays valid for longer than the lease: the lease counts.
        """
        if now_s >= self.lease_until_s:
            return "floor"
        return "applied" if now_s <= self.received_s + self.advice.valid_for_s else "held"


def shares_by_choice(advice: PoolAdvice, online_cpus: int) -> bool:
    """Return whether tenants share CPUs with reclaimed pods although disjoint pools would fit.

    Args:
        advice: its sizes cover all online CPUs, whatever the cgroup root grants of them.
        online_cpus: their number.
    """
    return advice.overlap and sum(part.cpus for part in advice.pools if not part.of_pods) <= online_cpus


def partitioned(advice: PoolAdvice) -> PoolAdvice:
    """The same sizes side by side, and no more promised than they hold: pods cannot borrow from tenants there."""
    return advice.model_copy(update={"overlap": False, "oversold_ratio": 1.0})


def offered(
    advice: PoolAdvice | None, reclaim_cpus: int, limit_bytes: int | None, *, at_floor: bool = False
) -> tuple[int, int]:
    """Return the milli-CPU and bytes that reclaimed pods may be promised: the advice, and never more than is in
    force.

    Args:
        advice: the last valid one; None: nothing was ever advised, so nothing is offered.
        reclaim_cpus: CPUs that the kernel grants to the reclaimed pool.
        limit_bytes: its memory limit in force; None: unlimited.
        at_floor: these CPUs are the floor, and not the pool of which the advice may promise more than its size.
    """
    if advice is None:
        return 0, 0
    memory = advice.reclaimed_memory_bytes
    # The advice and what the kernel grants may differ, after a refused write or at the floor: the smaller of both is
    # safe.
    promised_millis = 1000 * reclaim_cpus * (1.0 if at_floor else advice.oversold_ratio)
    # Rounded first, because a product of floats may be a hair below its whole number.
    cpu = min(advice.reclaimed_cpu_millis, int(round(promised_millis, 3)))
    return cpu, memory if limit_bytes is None else min(memory, limit_bytes)


def still_offered(
    before: tuple[int, int], backed_by: CpuSet, reclaim_cpus: CpuSet, limit_bytes: int | None
) -> tuple[int, int]:
    """Return what of an earlier offer is still in force.

    Args:
        before: milli-CPU and bytes.
        backed_by: the reclaimed pool when they were offered.
        reclaim_cpus: the reclaimed pool now.
        limit_bytes: its memory limit in force; None: unlimited.
    """
    cpu, memory = before
    # A smaller pool may be the floor, of which no more is promised than it has.
    if len(reclaim_cpus) < len(backed_by):
        cpu = min(cpu, 1000 * len(reclaim_cpus))
    return cpu, memory if limit_bytes is None else min(memory, limit_bytes)


def offered_by_numa(cpu_millis: int, pool: CpuSet, numas: Mapping[int, CpuSet]) -> tuple[NumaOffer, ...] | None:
    """The CPU offer by NUMA node, by how many CPUs of the reclaimed pool lie there; None where that has none at all.

    A NUMA node without a CPU of the pool offers 0 (docs/facts/katalyst-cpu.md#reported-headroom).
    """
    parts = shared_out(cpu_millis, {numa: len(pool & cpus) for numa, cpus in numas.items()})
    if not parts:
        return None
    return tuple(NumaOffer(numa=numa, reclaimed_cpu_millis=millis) for numa, millis in sorted(parts.items()))
