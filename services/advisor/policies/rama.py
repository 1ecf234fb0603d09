"""Tenants need the size that keeps their indicators at their targets (docs/facts/katalyst-cpu.md#rama).

The indicators of a region are the utilization of its pool, the number of tasks that wait for a CPU, their waiting time
(PSI), and cycles per instruction. A controller per indicator corrects the current size, and the largest correction
decides. An indicator that is not measured or has no target is ignored; without any indicator, the canonical estimate is
the need.

A service may set its own targets (docs/service-profiles.md); the strictest target in a pool applies.

The result stays close to the canonical estimate, so that an indicator which more CPUs cannot improve (a throttling
quota, a noisy neighbour in the caches) does not claim the whole machine. It is never below current use.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from services.advisor.core.demand.cpu import total_cores
from services.advisor.core.demand.pid import Controller, Gains, Indicator, SizeRange, corrected
from services.advisor.core.demand.targets import TargetInForce, target_in_force
from services.advisor.core.model.containers import once
from services.advisor.core.model.reasons import Reasons
from services.advisor.core.model.view import CPU_TENANTS, ContainerView, View, containers_of, cpu_columns
from services.advisor.core.policy import Demand, Policy
from services.advisor.policies import canonical
from shared.contracts.cluster.profiles import IndicatorTargets
from shared.contracts.envelope import Reason

STEP_S = 5.0
"""Seconds between two corrections for which the gains are tuned (docs/facts/katalyst-cpu.md#regions-and-reserves)."""
USAGE, WAITING, PRESSURE, CPI = "cpu_usage_ratio", "sched_wait", "cpu_pressure", "cpi"
GAINS: Mapping[str, Gains] = {
    USAGE: Gains(kpp=0.1, kpn=0.04, deadband_upper=0.01, deadband_lower=0.06),
    WAITING: Gains(kpp=0.05, kpn=0.009, deadband_upper=0.05, deadband_lower=0.2),
    PRESSURE: Gains(kpp=0.05, kpn=0.009, deadband_upper=0.05, deadband_lower=0.2),
    CPI: Gains(kpp=0.1, kpn=0.04, deadband_upper=0.0, deadband_lower=0.02),
}
"""Katalyst's gains (docs/facts/katalyst-cpu.md#rama); PSI measures the same as the scheduler's wait and has its
gains."""
Target = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]


class RamaSettings(canonical.CanonicalSettings):
    """Targets of the indicators (none: ignored), and how far the result may be from the canonical estimate."""

    cpu_usage_ratio: Target | None = 0.75
    """Cores used, as a share of the pool's CPUs."""
    sched_wait: Target | None = 0.2
    """Runnable tasks that wait for a CPU, per CPU of the pool."""
    cpu_pressure: Target | None = 10.0
    """Percent of the last 10 s in which at least one task waited."""
    cpi: Target | None = None
    """Cycles per instruction; the normal value depends on the service. Used if `metrics.perf` is enabled and the
    machine has counters."""
    max_gap_ratio: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.3
    """Greatest distance of the result from the canonical estimate, as a share of the estimate."""
    max_gap_cores: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 4.0
    """Cores by which the result may exceed the estimate in any case."""


@dataclass(frozen=True, slots=True)
class State:
    """The controllers by indicator, and the time of the last correction (seconds)."""

    controllers: Mapping[str, Controller] = field(default_factory=dict)
    at_s: float | None = None


def judge(state: State, view: View, now_s: float, settings: RamaSettings) -> tuple[State, Demand]:
    """Return the corrected current size; the canonical estimate while there is none or nothing is measured."""
    _, base = canonical.judge(None, view, now_s, settings)
    targets = _targets(view, settings)
    indicators = _indicators(view, targets)
    if view.size_cpus is None or not indicators:
        return State(), base
    sizes = _range(view, base.cores, settings)
    # Samples come more often than Katalyst's rounds: each counts its part of a step, and never more than one.
    weight = 1.0 if state.at_s is None else min(1.0, max(0.0, (now_s - state.at_s) / STEP_S))
    controllers, asked = corrected(indicators, sizes, state.controllers, weight)
    # The indicator that fares worst decides: others being well does not help its tenants.
    need = max(asked.values())

    def said() -> Iterator[Reason]:
        yield Reason(
            rule="size in force, corrected by indicators",
            numbers={
                **{f"{name} / target": round(one.current / one.target, 6) for name, one in indicators.items()},
                **{f"{name} asks for": round(cores, 6) for name, cores in asked.items()},
                **{f"{name} target of {one.service}": one.value for name, one in targets.items() if one.service},
                "at least": round(sizes.lower_cores, 6),
                "at most": round(sizes.upper_cores, 6),
            },
        )
        yield from base.why

    return State(controllers, now_s), Demand(need, base.memory_bytes, Reasons(said))


def _range(view: View, canonical_cores: float, settings: RamaSettings) -> SizeRange:
    """Return the current size without the reserve, and the bounds of the next size."""
    measured, unknown = _use(view.containers)
    used = max(measured or 0.0, view.tenants_usage_cores or 0.0)
    lower = max(used + unknown, canonical_cores * (1 - settings.max_gap_ratio))
    upper = max(lower, canonical_cores * (1 + settings.max_gap_ratio), canonical_cores + settings.max_gap_cores)
    return SizeRange(max(0.0, (view.size_cpus or 0) - view.region_reserve_cores), lower, upper)


def _targets(view: View, settings: RamaSettings) -> dict[str, TargetInForce]:
    """Return the targets in force by indicator, without indicators that have none."""
    found = {
        USAGE: target_in_force(view, lambda own: own.cpu_usage_ratio, settings.cpu_usage_ratio),
        WAITING: target_in_force(view, _waiting_tasks, settings.sched_wait),
        PRESSURE: target_in_force(view, lambda own: own.cpu_pressure, settings.cpu_pressure),
        CPI: target_in_force(view, lambda own: own.cpi, settings.cpi),
    }
    return {name: target for name, target in found.items() if target is not None}


def _waiting_tasks(own: IndicatorTargets) -> float | None:
    # Milliseconds of waiting in each second are thousandths of a task that waits all the time.
    return None if own.cpu_sched_wait is None else own.cpu_sched_wait / 1000


def _indicators(view: View, targets: Mapping[str, TargetInForce]) -> dict[str, Indicator]:
    """Return the measured indicators that have a target."""
    signs = view.signs
    figures = {
        USAGE: _per_cpu(_used_cores(view), view),
        WAITING: _per_cpu(signs.waiting_tasks, view),
        PRESSURE: signs.pressure_percent,
        CPI: signs.cycles_per_instruction,
    }
    return {
        name: Indicator(current, targets[name].value, GAINS[name])
        for name, current in figures.items()
        if current is not None and name in targets
    }


def _per_cpu(figure: float | None, view: View) -> float | None:
    return figure / view.size_cpus if view.size_cpus and figure is not None else None


def _used_cores(view: View) -> float | None:
    """Return the use of the whole pool if it is measured, otherwise of its containers; None if nothing is measured."""
    if view.tenants_usage_cores is not None:
        return view.tenants_usage_cores
    return _use(view.containers)[0]


@once
def _use(containers: Sequence[ContainerView]) -> tuple[float | None, float]:
    """Return what tenants use as far as it is measured (None: nothing is), and what the others requested."""
    tenants = containers_of(containers, CPU_TENANTS)
    usage = cpu_columns(tenants).usage
    known = [used for used in usage if used is not None]
    unknown = 0.0
    if len(known) < len(usage):
        unknown = total_cores([c.request_cores for c, used in zip(tenants, usage, strict=True) if used is None])
    return total_cores(known) if known else None, unknown


POLICY = Policy(name="rama", settings=RamaSettings, start=State, judge=judge, takes_targets=True)
