"""Reclaimed pods get the CPU time that brings the machine to its target (docs/facts/katalyst-cpu.md#dynamic-quota).

The tenants' need is canonical's. In addition, the policy limits reclaimed pods by CPU time instead of by CPUs: their
current use, plus what is missing to the target over all CPUs. Their pool can then be large, and tenants' tasks still
find most of its time free. Katalyst does the same, on cgroup v2 only.
"""

from typing import Annotated

from pydantic import Field

from services.advisor.core.demand.quota import reclaim_quota_cores
from services.advisor.core.demand.targets import TargetInForce, target_in_force
from services.advisor.core.model.machine import reclaim_floor_cpus
from services.advisor.core.model.reasons import Reasons
from services.advisor.core.model.view import View
from services.advisor.core.policy import Demand, Policy
from services.advisor.policies import canonical
from shared.contracts.envelope import Reason
from shared.core.cgroups.layout import SHARE
from shared.errors import Refused


class DynamicQuotaSettings(canonical.CanonicalSettings):
    """Target utilization of the machine."""

    target_usage_ratio: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.6
    """Target use by tenants and reclaimed pods together, as a share of all unreserved CPUs. A lower target of a
    service (docs/service-profiles.md) overrides it."""


def judge(state: float | None, view: View, now_s: float, settings: DynamicQuotaSettings) -> tuple[float | None, Demand]:
    """Return the canonical demand and the quota of the whole machine; while a figure is missing, the last quota
    stays."""
    _, base = canonical.judge(None, view, now_s, settings)
    if view.region != SHARE:  # there is one quota, not one for each region
        return None, base
    target = _target(view, settings)
    quota, rule = _quota(state, view, target)
    why = Reasons(lambda: (*base.why, _reason(rule, state, view, target)))
    return quota, Demand(base.cores, base.memory_bytes, why, quota)


def _quota(last: float | None, view: View, target: TargetInForce) -> tuple[float | None, str]:
    """Return the quota in cores, and the rule that gave it."""
    cpus, usage = _cpus(view), view.node_usage_cores
    floor = float(reclaim_floor_cpus(view.bounds.cpus))
    try:
        ratio = None if usage is None else usage / cpus
        quota = reclaim_quota_cores(cpus, target.value, ratio, view.reclaimed_usage_cores, floor)
    except Refused as refusal:
        return last, str(refusal)
    return quota, "quota: cpus x (target - usage ratio) + reclaimed usage"


def _cpus(view: View) -> int:
    return view.bounds.cpus - view.bounds.reserve_pool_cpus


def _reason(rule: str, last: float | None, view: View, target: TargetInForce) -> Reason:
    return Reason(
        rule=rule,
        numbers={
            "cpus": _cpus(view),
            "target_usage_ratio": target.value,
            **({"target of": target.service} if target.service else {}),
            "node_usage_cores": view.node_usage_cores,
            "reclaimed_usage_cores": view.reclaimed_usage_cores,
            "last_quota_cores": last,
        },
    )


def _target(view: View, settings: DynamicQuotaSettings) -> TargetInForce:
    """Return the target in force: services may lower the operator's target, never raise it."""
    own = TargetInForce(settings.target_usage_ratio)
    asked = target_in_force(view, lambda targets: targets.cpu_usage_ratio, None)
    return own if asked is None or asked.value >= own.value else asked


POLICY = Policy(
    name="dynamic_quota", settings=DynamicQuotaSettings, start=lambda: None, judge=judge, takes_targets=True
)
