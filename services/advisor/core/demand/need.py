"""`tenants_need` adds up what tenants use or queue for, for policies that remember the past."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from services.advisor.core.demand.cpu import requested_cores, total_cores
from services.advisor.core.model.containers import Column, once, once_beside_cpu
from services.advisor.core.model.view import ContainerView, View, containers_of, cpu_columns

NeedOf = Callable[[float | None, float | None], float | None]
"""The need of a container by its use and its 1-minute load, in cores; None: not measured."""


def need_cores(usage_cores: float | None, load1: float | None) -> float | None:
    """Return what one container uses or queues for now: the larger of its use and its 1-minute load. None: not
    measured.

    Use cannot exceed what the container was given; the load also counts tasks that wait for a CPU.
    """
    return None if usage_cores is None else max(usage_cores, load1 or 0.0)


def pool_used_cores(view: View) -> float:
    """Return the use of all tenants, the larger of its two figures; 0 if none is measured."""
    return max(view.tenants_usage_cores or 0.0, _used_cores(view.containers))


@once
def _used_cores(containers: Sequence[ContainerView]) -> float:
    usage = cpu_columns(containers_of(containers, ("shared_cores",))).usage
    return total_cores(_measured(usage))


def pool_need_cores(view: View) -> float:
    """Return the use of the tenants' pool plus its waiting tasks; 0 if it is not measured.

    A pool that is too small shows here at once, a minute before the load averages and whatever its size. A wrong or
    hostile figure of waiting tasks is bounded by the machine.
    """
    used, waiting = view.tenants_usage_cores, view.signs.waiting_tasks or 0.0
    if waiting:
        used = pool_used_cores(view)
        return max(used, min(used + waiting, view.bounds.cpus))
    return used or 0.0


@dataclass(frozen=True, slots=True)
class TenantsNeed:
    """The measured CPU need of all tenants of a view, in cores, and what else counts."""

    measured_cores: float | None
    """Of the shared containers together, at least that of their pool; None where no container is measured."""
    asked_cores: float
    """Requests of the shared containers that are not measured, and of the dedicated ones."""


def used_cores(usage_cores: float | None, load1: float | None) -> float | None:  # noqa: ARG001
    """Return what one container uses now. None: not measured."""
    return usage_cores


def tenants_need(view: View, need_of: NeedOf = need_cores) -> TenantsNeed:
    """Return the tenants' need in one view; `need_of` returns the need of a measured container."""
    of_containers = _containers_need(view.containers, need_of, view.bounds.fallback_cores)
    measured = of_containers.measured_cores
    if measured is None:
        return of_containers
    return TenantsNeed(max(measured, pool_need_cores(view)), of_containers.asked_cores)


@once
def _containers_need(containers: Sequence[ContainerView], need_of: NeedOf, fallback: float) -> TenantsNeed:
    """The same of the containers alone, without what is measured of their pool."""
    shared = containers_of(containers, ("shared_cores",))
    cpu = cpu_columns(shared)
    needs = cpu.usage if need_of is used_cores else list(map(need_of, cpu.usage, cpu.load1))
    measured = _measured(needs)
    asking = _dedicated_requests(containers)
    if len(measured) < len(needs):
        asking += tuple([one.request_cores for one, need in zip(shared, needs, strict=True) if need is None])
    asked = total_cores([requested_cores(request, fallback) for request in asking]) if asking else 0.0
    return TenantsNeed(total_cores(measured) if measured else None, asked)


def _measured(column: Column) -> Sequence[float]:
    # Nearly always all of them are.
    return [one for one in column if one is not None] if None in column else cast("Sequence[float]", column)


@once_beside_cpu
def _dedicated_requests(containers: Sequence[ContainerView]) -> tuple[float, ...]:
    return tuple([one.request_cores for one in containers if one.qos == "dedicated_cores"])
