"""`tenants_need` adds up what tenants use or queue for, for policies that remember the past."""

from collections.abc import Callable
from dataclasses import dataclass

from services.advisor.core.demand.cpu import requested_cores, total_cores
from services.advisor.core.model.figures import Figures
from services.advisor.core.model.view import CPU_TENANTS, View


def need_cores(figures: Figures) -> float | None:
    """Return what one container uses or queues for now: the larger of its use and its 1-minute load. None: not
    measured.

    Use cannot exceed what the container was given; the load also counts tasks that wait for a CPU.
    """
    return None if figures.usage_cores is None else max(figures.usage_cores, figures.load1 or 0.0)


def pool_used_cores(view: View) -> float:
    """Return the use of all tenants, the larger of its two figures; 0 if none is measured."""
    of_containers = (c.cpu.usage_cores for c in view.of("shared_cores") if c.cpu.usage_cores is not None)
    return max(view.tenants_usage_cores or 0.0, total_cores(of_containers))


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


def used_cores(figures: Figures) -> float | None:
    """Return what one container uses now. None: not measured."""
    return figures.usage_cores


def tenants_need(view: View, need_of: Callable[[Figures], float | None] = need_cores) -> TenantsNeed:
    """Return the tenants' need in one view; `need_of` returns the need of a measured container."""
    shared = [(container, need_of(container.cpu)) for container in view.of("shared_cores")]
    measured = [need for _, need in shared if need is not None]
    asking = [container for container, need in shared if need is None]
    asking += [container for container in view.of(*CPU_TENANTS) if container.qos == "dedicated_cores"]
    asked = total_cores(requested_cores(c.request_cores, view.bounds.fallback_cores) for c in asking)
    return TenantsNeed(max(total_cores(measured), pool_need_cores(view)) if measured else None, asked)
