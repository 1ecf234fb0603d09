"""Computes what mid pods may request on a node: mid-cpu and mid-memory, by Koordinator's formula, out of the same
amount as the rest.

Mid pods run as tenants next to prod pods, on what those leave. The same idle CPU is also offered to batch and reclaimed
pods, so what was sold to those is subtracted here, and what was sold to mid pods is subtracted there.

Facts: docs/facts/koordinator-batch.md#amount-of-a-mid-resource.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from services.reporter.core.batch_demand import (
    asked_cpu_millis,
    asked_memory_bytes,
    is_mid,
    system_used,
    used_cpu_millis,
)
from services.reporter.core.field import Offered
from services.reporter.core.mid.reclaimable import ProdReclaimable
from services.reporter.core.node_capacity import NodeCapacity
from shared.contracts.pod import Pod
from shared.contracts.sample import NodeSample, PodReading

MidMode = Literal["prediction", "static"]


@dataclass(frozen=True, slots=True)
class MidStrategy:
    """How much of what is idle is offered to mid pods; percents of what the node has."""

    mode: MidMode = "prediction"
    cpu_at_most_percent: int = 100
    memory_at_most_percent: int = 100
    unallocated_percent: int = 0
    """Percentage of the capacity that no prod pod requested, offered in addition to what prod pods lend."""
    static_cpu_percent: int = 0
    static_memory_percent: int = 0


@dataclass(frozen=True, slots=True)
class MidTerms:
    """The terms of one amount."""

    capacity: int
    prod_reclaimable: int
    unallocated: int
    """Neither the system's nor asked for by tenants."""
    unused: int
    """Neither used by the system or tenants nor sold to reclaimed pods: never more than this."""
    at_most: int


@dataclass(frozen=True, slots=True)
class MidOffer:
    """Both amounts, and what each is made of."""

    cpu_millis: int
    memory_bytes: int
    cpu: MidTerms
    memory: MidTerms


@dataclass(frozen=True, slots=True)
class _Figures:
    """One resource of a node: its capacity, the system's use, and how a pod is read."""

    capacity: int
    reserved: int
    system_used: int
    asked: Callable[[Pod], int]
    used: Callable[[PodReading], int | None]
    lent_by_dedicated: bool
    """Whether a dedicated pod's unused part can be used by others."""


def mid_offer(
    sample: NodeSample, capacity: NodeCapacity, strategy: MidStrategy, reclaimable: ProdReclaimable
) -> MidOffer | None:
    """Return the total that mid pods may request; None if the node's own use is unknown: absent is not zero."""
    system = system_used(sample)
    if system is None:
        return None
    cpu = _terms(
        sample,
        _Figures(
            capacity.cpu_millis, capacity.reserved_cpu_millis, system[0], asked_cpu_millis, used_cpu_millis,
            lent_by_dedicated=False,
        ),
        reclaimable.cpu_millis,
        strategy.cpu_at_most_percent,
    )  # fmt: skip
    memory = _terms(
        sample,
        _Figures(
            capacity.memory_bytes, capacity.reserved_memory_bytes, system[1], asked_memory_bytes,
            lambda pod: pod.memory_usage_bytes, lent_by_dedicated=True,
        ),
        reclaimable.memory_bytes,
        strategy.memory_at_most_percent,
    )  # fmt: skip
    return MidOffer(
        mid_amount(cpu, strategy, strategy.static_cpu_percent),
        mid_amount(memory, strategy, strategy.static_memory_percent),
        cpu,
        memory,
    )


def mid_amount(terms: MidTerms, strategy: MidStrategy, static_percent: int) -> int:
    """The amount by its terms, never more than is unused."""
    if strategy.mode == "static":
        wanted = terms.capacity * static_percent // 100
    else:
        wanted = terms.prod_reclaimable + terms.unallocated * strategy.unallocated_percent // 100
    return max(0, min(wanted, terms.unused, terms.at_most))


def sold_and_unused(sample: NodeSample) -> Offered:
    """Return what mid pods requested and do not use now: idle, and not for sale to others."""
    pods = [one for one in sample.pods if _counts(one) and is_mid(one.pod)]
    return Offered(
        sum(max(0, asked_cpu_millis(one.pod) - (used_cpu_millis(one) or 0)) for one in pods),
        sum(max(0, asked_memory_bytes(one.pod) - (one.memory_usage_bytes or 0)) for one in pods),
    )


def _terms(sample: NodeSample, of: _Figures, prod_reclaimable: int, at_most_percent: int) -> MidTerms:
    system = max(of.system_used, of.reserved)
    requested = used = 0
    for one in sample.pods:
        if not _counts(one) or is_mid(one.pod):
            continue
        asked, now = of.asked(one.pod), of.used(one)
        if one.pod.qos == "reclaimed_cores":
            used += max(asked, now or 0)
            continue
        requested += asked
        at_request = now is None or (one.pod.qos == "dedicated_cores" and not of.lent_by_dedicated)
        used += max(asked, now or 0) if at_request else now or 0
    return MidTerms(
        capacity=of.capacity,
        prod_reclaimable=prod_reclaimable,
        unallocated=max(0, of.capacity - system - requested),
        unused=max(0, of.capacity - system - used),
        at_most=of.capacity * at_most_percent // 100,
    )


def _counts(pod: PodReading) -> bool:
    return pod.pod.phase in ("Running", "Pending")
