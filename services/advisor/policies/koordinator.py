"""Reclaimed pods get what Koordinator's CPU suppression would leave to them.

The budget is a share of the node minus what everything else uses. With `suppress_policy: cpuset` it sizes the reclaimed
pool: tenants get all other CPUs, and never less than the canonical estimate. With `cfsQuota` pools are canonical, and
the budget limits the CPU time of reclaimed pods. Koordinator does nothing while the node is not measured; here the
system counts with its last known use, and a quota does not grow.

Unlike Koordinator, Sublet decides how fast pools change, the floors, and which CPUs a pool gets. A tenants' pool with
CPUs of its own (another share pool, a dedicated pod) keeps all of them, used or not.

Facts: docs/facts/koordinator-cpu-suppress.md#the-budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from services.advisor.core.demand.cpu import requested_cores, total_cores
from services.advisor.core.demand.suppress import (
    SUPPRESS_THRESHOLD_PERCENT,
    NodeCpuUse,
    SuppressRule,
    WorkloadUse,
    best_effort_budget_millis,
)
from services.advisor.core.model.containers import once, once_beside_cpu
from services.advisor.core.model.machine import reclaim_floor_cpus
from services.advisor.core.model.reasons import Reasons
from services.advisor.core.model.view import CPU_TENANTS, ContainerView, View, cpu_columns
from services.advisor.core.policy import Demand, Policy
from services.advisor.policies import canonical
from shared.contracts.envelope import Reason
from shared.core.cgroups.layout import SHARE

MILLIS = 1000
Part = Annotated[int, Field(ge=0, le=100)]
"""Whole percent of the node, as Koordinator's ConfigMap bounds them."""
MAX_GROWTH_RATIO_PER_S = 0.1
"""Share of the node by which a quota grows per second (docs/facts/koordinator-cpu-suppress.md#the-policy-cfsquota)."""


class KoordinatorSettings(canonical.CanonicalSettings):
    """How much of the node may be used, and what limits reclaimed pods."""

    suppress_threshold_percent: Part = SUPPRESS_THRESHOLD_PERCENT
    """Percent of the node's CPU that everything on it may use; Koordinator's `cpuSuppressThresholdPercent`."""
    suppress_min_percent: Part | None = None
    """Percent of the node's CPU that reclaimed pods keep, as far as the tenants' own need permits; Koordinator's
    `cpuSuppressMinPercent`. None: only their floor."""
    suppress_policy: Literal["cpuset", "cfsQuota"] = "cpuset"
    """cpuset: the budget becomes CPUs of their pool. cfsQuota: the budget becomes CPU time."""
    reserved_cores: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.0
    """Cores that count as used by the system, used or not: what kubelet or an annotation of the node reserves."""

    @property
    def rule(self) -> SuppressRule:
        """Return how much of the node may be used."""
        return SuppressRule(self.suppress_threshold_percent, self.suppress_min_percent)


@dataclass(frozen=True, slots=True)
class BudgetTerms:
    """The terms of the budget: use of the node's CPU in cores."""

    cpus: int
    tenants: float
    """Use of the judged region and of system_cores pods."""
    elsewhere: float
    reclaimed: float
    system: float | None
    """None: never measured."""
    applications: float
    """Use of applications outside of pods; applications among reclaimed pods count in `reclaimed`."""

    def budget_millis(self, settings: KoordinatorSettings) -> int:
        """Return what is left to reclaimed pods."""
        others, reclaimed = _millis(self.tenants + self.elsewhere), _millis(self.reclaimed)
        workloads = (
            WorkloadUse(others + _millis(self.applications), best_effort=False),
            WorkloadUse(reclaimed, best_effort=True),
        )
        used_millis = sum(one.used_millis for one in workloads) + _millis(self.system or 0.0)
        node = NodeCpuUse(self.cpus * MILLIS, used_millis, _millis(settings.reserved_cores))
        return best_effort_budget_millis(node, workloads, settings.rule)


@dataclass(frozen=True, slots=True)
class SuppressState:
    """The last measured use of system and applications, and the quota in force with its time; None if there is none."""

    system_cores: float | None = None
    applications_cores: float = 0.0
    quota_cores: float | None = None
    at_s: float = 0.0


def judge(last: SuppressState, view: View, now_s: float, settings: KoordinatorSettings) -> tuple[SuppressState, Demand]:
    """Return the canonical demand, and what the budget withholds from reclaimed pods."""
    _, base = canonical.judge(None, view, now_s, settings)
    if view.region != SHARE:  # there is one budget, not one for each region
        return last, base
    use = _terms(view, last)
    budget = use.budget_millis(settings)
    quota = None
    if settings.suppress_policy == "cfsQuota":
        cores = base.cores
        quota = _quota_cores(last, view, budget / MILLIS, now_s)
    else:
        # Add the tenants' use unrounded: in milli-cores of the budget, a small request would be rounded away.
        others_millis = use.cpus * MILLIS - budget - _millis(use.tenants + use.elsewhere)
        cores = max(base.cores, use.tenants + others_millis / MILLIS - view.region_reserve_cores)
    why = Reasons(lambda: (_reason(use, view, budget, settings), *base.why))
    state = SuppressState(use.system, use.applications, quota, now_s)
    return state, Demand(cores, base.memory_bytes, why, quota)


def _terms(view: View, last: SuppressState) -> BudgetTerms:
    tenants = _tenants_cores(view.containers, view.bounds.fallback_cores)
    # Their pool shows at once what wakes in it; a container only in the next sample.
    tenants = max(tenants, view.tenants_usage_cores or 0.0)
    reclaimed = view.reclaimed_usage_cores
    if reclaimed is None:
        reclaimed = total_cores(c.cpu.usage_cores or 0.0 for c in view.of("reclaimed_cores"))
    system = last.system_cores
    applications = view.applications_usage_cores
    if applications is None:
        applications = last.applications_cores
    if view.node_usage_cores is not None:
        pods = tenants + view.elsewhere_usage_cores + reclaimed
        system = max(0.0, view.node_usage_cores - pods - applications)
    return BudgetTerms(view.bounds.cpus, tenants, view.elsewhere_usage_cores, reclaimed, system, applications)


@once
def _tenants_cores(containers: Sequence[ContainerView], fallback: float) -> float:
    if _are_tenants(containers) and None not in (usage := cpu_columns(containers).usage):
        return total_cores([used or 0.0 for used in usage])
    return total_cores(_used_cores(c, fallback) for c in containers if c.qos != "reclaimed_cores")


@once_beside_cpu
def _are_tenants(containers: Sequence[ContainerView]) -> bool:
    return all(container.qos != "reclaimed_cores" for container in containers)


def _used_cores(container: ContainerView, fallback: float) -> float:
    """Return the measured use of a container, or its request."""
    if container.cpu.usage_cores is not None:
        return container.cpu.usage_cores
    return requested_cores(container.request_cores, fallback if container.qos in CPU_TENANTS else 0.0)


def _quota_cores(last: SuppressState, view: View, budget_cores: float, now_s: float) -> float:
    """Return the budget, at least the floor. The quota falls at once, grows in steps, and stays while the node is
    not measured."""
    floor = float(reclaim_floor_cpus(view.bounds.cpus))
    measured = view.node_usage_cores is not None
    if last.quota_cores is None:
        return max(budget_cores, floor) if measured else floor
    step = view.bounds.cpus * MAX_GROWTH_RATIO_PER_S * max(0.0, now_s - last.at_s) if measured else 0.0
    return max(min(budget_cores, last.quota_cores + step), floor)


def _millis(cores: float) -> int:
    return round(cores * MILLIS)


def _reason(use: BudgetTerms, view: View, budget: int, settings: KoordinatorSettings) -> Reason:
    rule = "budget: cpus x threshold - tenants - applications - max(system, reserved)"
    return Reason(
        rule=rule
        if view.node_usage_cores is not None
        else f"{rule}; the node is not measured, the system is as it was",
        numbers={
            "cpus": use.cpus,
            "threshold_percent": settings.suppress_threshold_percent,
            "min_percent": settings.suppress_min_percent,
            "tenants_usage_cores": round(use.tenants + use.elsewhere, 6),
            "reclaimed_usage_cores": round(use.reclaimed, 6),
            "applications_usage_cores": round(use.applications, 6),
            "system_usage_cores": None if use.system is None else round(use.system, 6),
            "reserved_cores": settings.reserved_cores,
            "budget_cores": budget / MILLIS,
        },
    )


POLICY = Policy(name="koordinator", settings=KoordinatorSettings, start=SuppressState, judge=judge)
