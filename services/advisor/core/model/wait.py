"""`wait_of` tells runnable tasks that more CPUs would serve from those that none would.

Use cannot exceed what a tenant was given: whoever is squeezed, by a small pool or by busy neighbours, shows as tasks
that wait. What waits for its own quota gets no more of a larger pool, and what stood still because the hypervisor ran
somebody else would stand still as often on every other CPU of the machine.

Facts: docs/facts/linux-cpu.md#run-delay.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wait:
    """Runnable tasks that did not run, on average."""

    for_cpus: float | None = None
    """Those that more CPUs would have served; None where not measured."""
    for_others: float = 0.0
    """The rest: they waited for their own quota, or for a hypervisor that ran somebody else."""


NOT_MEASURED = Wait()


@dataclass(frozen=True, slots=True)
class Quota:
    """What a container's own quota allows, and what it cost."""

    limit_cores: float = 0.0
    """0: none."""
    throttled_cores: float = 0.0
    """CPUs on which it held the tasks back, on average (docs/facts/linux-cpu.md#throttled-time)."""


NO_QUOTA = Quota()


def wait_of(usage_cores: float, waiting_tasks: float, quota: Quota, stolen: float) -> Wait:
    """What tasks waited for, on average, of which so many ran; `stolen` is the part of the CPUs' time that was."""
    unthrottled = max(0.0, waiting_tasks - quota.throttled_cores)
    # Every task that was runnable stood still for that part of the time, also the one that had the CPU.
    wanted = (usage_cores + unthrottled) * (1 - stolen)
    if quota.limit_cores > 0:
        wanted = min(wanted, quota.limit_cores)
    for_cpus = max(0.0, wanted - usage_cores)
    return Wait(for_cpus, max(0.0, waiting_tasks - for_cpus))


def stolen_ratio(usage_cores: float | None, steal_cores: float | None) -> float:
    """The part of the time in which CPUs had work that went to somebody else; 0 where it is not known."""
    # docs/facts/linux-cpu.md#stolen-time
    worked = (usage_cores or 0.0) + (steal_cores or 0.0)
    return (steal_cores or 0.0) / worked if worked > 0 else 0.0
