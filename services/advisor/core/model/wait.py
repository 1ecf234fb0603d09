"""`wait_of` separates runnable tasks that more CPUs would serve from those that they would not.

Use cannot exceed what a tenant was given, so a tenant that is squeezed, by a small pool or by busy neighbours, shows as
waiting tasks. A task that waits for its own quota gains nothing from a larger pool, and a task that stood still because
the hypervisor ran another guest would stand still on every other CPU as well.

Facts: docs/facts/linux-cpu.md#run-delay.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wait:
    """Runnable tasks that did not run, on average."""

    for_cpus: float | None = None
    """Those that more CPUs would have served; None where not measured."""
    for_others: float = 0.0
    """Tasks that waited for their own quota, or while the hypervisor ran another guest."""


NOT_MEASURED = Wait()


@dataclass(frozen=True, slots=True)
class Quota:
    """What a container's own quota allows, and how long it throttled."""

    limit_cores: float = 0.0
    """0: none."""
    throttled_cores: float = 0.0
    """CPUs on which it held the tasks back, on average (docs/facts/linux-cpu.md#throttled-time)."""


NO_QUOTA = Quota()


def wait_of(usage_cores: float, waiting_tasks: float, quota: Quota, stolen: float) -> Wait:
    """Split the average number of waiting tasks by what they waited for; `stolen` is the stolen share of the CPUs'
    time."""
    unthrottled = max(0.0, waiting_tasks - quota.throttled_cores)
    # Every task that was runnable stood still for that part of the time, also the one that had the CPU.
    wanted = (usage_cores + unthrottled) * (1 - stolen)
    if quota.limit_cores > 0:
        wanted = min(wanted, quota.limit_cores)
    for_cpus = max(0.0, wanted - usage_cores)
    return Wait(for_cpus, max(0.0, waiting_tasks - for_cpus))


def stolen_ratio(usage_cores: float | None, steal_cores: float | None) -> float:
    """Return the share of the time with work that the hypervisor gave to others; 0 if unknown."""
    # docs/facts/linux-cpu.md#stolen-time
    worked = (usage_cores or 0.0) + (steal_cores or 0.0)
    return (steal_cores or 0.0) / worked if worked > 0 else 0.0
