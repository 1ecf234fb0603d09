"""Tenants need what they use and queue for.

Cores: for each shared container the larger of usage x 1.25 and its load averages, or its request while nothing is
measured; dedicated containers count their request. Memory: resident and cached memory plus a tenth.

Facts: docs/facts/katalyst-cpu.md#canonical-provision, docs/facts/katalyst-memory.md#canonical-headroom.
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from services.advisor.core.demand.cpu import (
    DEFAULT_RULE,
    EstimateRule,
    estimate_cores,
    largest_of_each,
    requested_cores,
    total_cores,
)
from services.advisor.core.demand.memory import TENANT_PERCENT, estimate_bytes
from services.advisor.core.model.containers import once, once_beside_cpu
from services.advisor.core.model.machine import unknown_memory_bytes
from services.advisor.core.model.reasons import Reasons
from services.advisor.core.model.view import CPU_TENANTS, ContainerView, View, containers_of, cpu_columns
from services.advisor.core.policy import Demand, Policy, PolicySettings
from shared.contracts.envelope import Reason

NAMED_CONTAINERS = 8
"""Most containers named in the reason, to keep advice short on nodes with hundreds of them."""


class CanonicalSettings(PolicySettings):
    """Headroom of a tenant above its measured use."""

    usage_factor: Annotated[float, Field(ge=1, le=10, allow_inf_nan=False)] = DEFAULT_RULE.usage_factor
    """Factor on a container's CPU usage."""
    memory_percent: Annotated[int, Field(ge=100, le=1000)] = TENANT_PERCENT
    """Percent of a shared or dedicated container's memory that counts."""


def judge(_state: None, view: View, _now_s: float, settings: CanonicalSettings) -> tuple[None, Demand]:
    """Return the sum of the containers' estimates, and at least the use of their pool as a whole.

    An early sample, made because tenants woke up, shows their use in the pool first (services.metrics.app). Waiting
    tasks are left out: Katalyst's formula has none, and the round adds them to every policy's demand.
    """
    factor, fallback = settings.usage_factor, view.bounds.fallback_cores
    estimates = _estimates(view.containers, factor, fallback)
    memory_bytes = needed_bytes(view, settings)
    pool_cores = factor * (view.tenants_usage_cores or 0.0)
    needed = max(total_cores(estimates), pool_cores)
    return None, Demand(needed, memory_bytes, Reasons(lambda: [_reason(view, estimates, pool_cores, factor)]))


def needed_bytes(view: View, settings: CanonicalSettings) -> int:
    """Return the memory of the containers, with the tenth on top that tenants are given."""
    unknown = unknown_memory_bytes(view.memory.total_bytes or 0)
    return _memory_bytes(view.containers, unknown, settings.memory_percent)


@once
def _estimates(containers: Sequence[ContainerView], factor: float, fallback: float) -> tuple[float, ...]:
    """Return the estimate of each tenant's container."""
    tenants = containers_of(containers, CPU_TENANTS)
    cpu = cpu_columns(tenants)
    # The usual case: every figure is there.
    if _are_shared(tenants) and (found := largest_of_each(factor, cpu)) is not None:
        return found
    measured = EstimateRule(factor, request_fills_gaps=False)
    # That rule alone would take a load average for the whole need while the usage of a new container is still unknown.
    unknown = EstimateRule(factor, request_fills_gaps=True)
    return tuple(
        [
            requested_cores(container.request_cores, fallback)
            if container.qos == "dedicated_cores"
            else estimate_cores(
                container.cpu,
                container.request_cores,
                unknown if container.cpu.usage_cores is None else measured,
                fallback,
            )
            for container in tenants
        ]
    )


@once_beside_cpu
def _are_shared(containers: Sequence[ContainerView]) -> bool:
    return all(container.qos == "shared_cores" for container in containers)


@once_beside_cpu
def _memory_bytes(containers: Sequence[ContainerView], unknown: int, percent: int) -> int:
    return sum([estimate_bytes(c.qos, c.memory, c.request_bytes, unknown, percent) for c in containers])


def _reason(view: View, estimates: Sequence[float], pool_cores: float, factor: float) -> Reason:
    """Name the largest estimates, and sum up the rest."""
    tenants = view.of(*CPU_TENANTS)
    cores = [(container.key, estimate) for container, estimate in zip(tenants, estimates, strict=True)]
    largest_first = sorted(cores, key=lambda named: (-named[1], named[0]))
    rest = total_cores(estimate for _, estimate in largest_first[NAMED_CONTAINERS:])
    return Reason(
        rule=f"max({factor:g} x usage, load1, load5), else request",
        numbers={
            **{key: round(estimate, 6) for key, estimate in largest_first[:NAMED_CONTAINERS]},
            "containers": len(cores),
            "all other containers": round(rest, 6),
            "their pool": round(pool_cores, 6),
        },
    )


POLICY = Policy(name="canonical", settings=CanonicalSettings, start=lambda: None, judge=judge)
