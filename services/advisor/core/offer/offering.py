"""`offering` puts the offer into the fields of the advice: CPU, memory, and the page cache to drop.

CPU is offered by the pool, its supply or its use, memory by node or by NUMA node. The defaults offer what the round has
decided.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from services.advisor.core.memory.numa import NumaRules
from services.advisor.core.model.machine import critical_memory_bytes
from services.advisor.core.model.view import View
from services.advisor.core.offer.cpu import Basis, CpuOffer, cpu_figures, cpu_offer
from services.advisor.core.offer.headroom import HeadroomRules
from services.advisor.core.offer.memory import cache_to_drop, numa_offer_bytes
from services.advisor.core.offer.utilization import UtilRules
from services.advisor.core.round.decide import Round, SizingRules, reserved_bytes
from shared.contracts.advice import CacheDrop
from shared.contracts.envelope import Reason
from shared.contracts.sample import NodeSample
from shared.core.cpus.cpuset import CpuSet

MemoryRule = Literal["canonical", "numa_aware"]


@dataclass(frozen=True, slots=True)
class ReclaimOfferRules:
    """How the offer is made."""

    cpu: Basis = "pool"
    util: UtilRules = field(default_factory=UtilRules)
    """For `cpu` "util"."""
    memory: MemoryRule = "canonical"
    numa: NumaRules = field(default_factory=NumaRules)
    """For `memory` "numa_aware"."""
    reap_cache: bool = True
    """Whether reclaimed pods' page cache is dropped when memory runs short."""


@dataclass(frozen=True, slots=True)
class OfferInputs:
    """The inputs of the offer besides the round: the sample, and the reclaim pool as applied (None: unknown)."""

    sample: NodeSample
    view: View
    reclaim_pool: CpuSet | None
    numas: Mapping[int, CpuSet]


@dataclass(frozen=True, slots=True)
class Offering:
    """Fields of the advice, and the CPU offer for the next time."""

    fields: Mapping[str, Any]
    cpu: CpuOffer


def offering(done: Round, seen: OfferInputs, rules: ReclaimOfferRules, sizing: SizingRules, last: CpuOffer) -> Offering:
    """The advice's fields with the offer made by these rules; on a view that is not fresh nothing rises."""
    fields = done.fields()
    cpu = _cpu(fields, seen, rules, last) if rules.cpu != "pool" else last
    if rules.memory == "numa_aware":
        reserved = reserved_bytes(seen.view.memory, sizing)
        by_numa = numa_offer_bytes(seen.sample, seen.view, reserved, rules.numa, done.reclaimed_memory_bytes)
        if by_numa is not None:
            numbers = {f"numa {numa}": amount for numa, amount in by_numa.items()}
            fields["reclaimed_memory_bytes"] = sum(by_numa.values())
            fields["why"] = (*fields["why"], Reason(rule="memory by NUMA node", numbers=numbers))
    if rules.reap_cache:
        drops = cache_to_drop(seen.sample, seen.view, critical_memory_bytes(seen.view.memory.total_bytes or 0))
        fields["drop_cache"] = tuple(CacheDrop(uid=uid, bytes=amount) for uid, amount in drops.items())
    return Offering(fields, cpu)


def _cpu(fields: dict[str, Any], seen: OfferInputs, rules: ReclaimOfferRules, last: CpuOffer) -> CpuOffer:
    """Put the CPU offer into the fields, within what was advised for the pool."""
    oversold = rules.util.max_oversold_ratio if rules.cpu == "util" else 1.0
    most = int(fields["reclaimed_cpu_millis"] * oversold)
    # What is in force is unknown: the offer may fall with the advice, but not rise.
    if seen.reclaim_pool is None or not seen.view.fresh:
        fields["reclaimed_cpu_millis"] = min(most, last.total_millis)
        return last
    figures = cpu_figures(seen.sample, seen.reclaim_pool, seen.numas)
    headroom = HeadroomRules(rules.util if rules.cpu == "util" else None)
    offer = cpu_offer(rules.cpu, figures, last, headroom).within(most)
    numbers = {f"numa {numa}": millis for numa, millis in offer.millis.items()}
    fields["reclaimed_cpu_millis"] = offer.total_millis
    fields["oversold_ratio"] = max(1.0, oversold)
    fields["why"] = (*fields["why"], Reason(rule=f"CPU offered by {offer.why}", numbers=numbers))
    return offer
