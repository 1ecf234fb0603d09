"""What a contender may see of a frame follows from its own sizes: tenants' use, waiting tasks, and the batch work.

Tenants cannot use more than they have. Further demand queues, and is served as soon as there is room; until then it
shows as waiting tasks, in the load averages and as pressure. Clients do not wait forever: work that has waited for
`PATIENCE_S` is dropped.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.advisor.core.model.containers import Column, Containers, CpuColumns, once_beside_cpu
from services.advisor.core.model.figures import Figures
from services.advisor.core.model.view import CPU_TENANTS, ContainerView, Signs, View, cpu_columns
from services.advisor.core.model.wait import NOT_MEASURED, Wait
from shared.core.copies import copier

PATIENCE_S = 30.0
DRAIN_S = 10.0
"""In this time a queue would be empty if each of its tasks had a CPU: the window of the kernel's short pressure."""
PRESSURE_S, LOAD1_S, LOAD5_S = 10.0, 60.0, 300.0
"""Windows of the kernel's averages."""
_BESIDE = ("reclaimed_usage_cores", "node_usage_cores", "signs")
_seen_beside_batch = copier(View, *_BESIDE)
_seen_in_queue = copier(View, *_BESIDE, "containers", "tenants_usage_cores")
_seen_before_sizes = copier(View, "signs", "containers")
_measured = copier(ContainerView, "cpu", "runnable")


@dataclass(slots=True)
class TenantQueue:
    """The work of one node's tenants that found no CPU."""

    core_s: float = 0.0
    served_cores: float = 0.0
    """What the tenants used in the last frame."""
    waiting_tasks: float = 0.0
    pressure_percent: float = 0.0
    load1: float = 0.0
    load5: float = 0.0
    """What the queue adds to the tenants' load averages."""

    def pass_time(self, passed_s: float, wanted_cores: float, had_cores: float) -> None:
        """Let time pass in which tenants wanted this much anew, and had this much."""
        # The usual time: nothing waits, and of what waited before nothing is seen any more.
        if wanted_cores <= had_cores and not (self.core_s or self.load1 or self.load5 or self.pressure_percent):
            self.served_cores, self.waiting_tasks = wanted_cores, 0.0
            return
        queued = self.core_s / max(passed_s, DRAIN_S)
        self.served_cores = min(wanted_cores + queued, had_cores)
        self.waiting_tasks = wanted_cores + queued - self.served_cores
        left_core_s = self.core_s + (wanted_cores - self.served_cores) * passed_s
        self.core_s = min(max(left_core_s, 0.0), PATIENCE_S * wanted_cores)
        # The recorded averages count what is wanted anew; what waits from before comes on top.
        self.load1 = _average(self.load1, queued, passed_s, LOAD1_S)
        self.load5 = _average(self.load5, queued, passed_s, LOAD5_S)
        self.pressure_percent = _average(
            self.pressure_percent, 100.0 if self.waiting_tasks > 0 else 0.0, passed_s, PRESSURE_S
        )

    def forget(self) -> None:
        """Begin anew, after a time of which nothing is known."""
        self.core_s = self.waiting_tasks = self.pressure_percent = self.load1 = self.load5 = 0.0


def without_recorded_waits(view: View) -> View:
    """The view without what its tenants waited for when it was recorded.

    That followed from the sizes which they had then. No contender has those, and of no contender is it wanted that it
    serves those waits: what waits under its own sizes is in its queue.
    """
    if view.signs.waiting_tasks is None and all(c.cpu.wait is NOT_MEASURED for c in view.containers):
        return view
    signs = Signs(None, view.signs.pressure_percent, view.signs.cycles_per_instruction)
    containers = Containers([_measured(c, _without_wait(c.cpu), c.runnable) for c in view.containers])
    return _seen_before_sizes(view, signs, containers)


def _without_wait(cpu: Figures) -> Figures:
    return Figures(cpu.usage_cores, cpu.load1, cpu.load5)


def as_seen(view: View, wanted_cores: float, queue: TenantQueue, batch_cores: float, system_cores: float) -> View:
    """The view with the tenants' use as it was served, with what waits, and with the batch work, in cores."""
    served = queue.served_cores
    node_cores = served + batch_cores + system_cores
    signs = Signs(
        queue.waiting_tasks,
        max(view.signs.pressure_percent or 0.0, queue.pressure_percent),
        view.signs.cycles_per_instruction,
    )
    if wanted_cores <= 0 or (served == wanted_cores and queue.load5 <= 0):
        return _seen_beside_batch(view, batch_cores, node_cores, signs)
    containers = _cut(view.containers, wanted_cores, queue)
    pool = None if view.tenants_usage_cores is None else view.tenants_usage_cores * served / wanted_cores
    return _seen_in_queue(view, batch_cores, node_cores, signs, containers, pool)


def _cut(containers: Sequence[ContainerView], wanted_cores: float, queue: TenantQueue) -> Containers[ContainerView]:
    """The containers, tenants with their part of what was served and of what waits, by what each wanted."""
    whole, cpu = containers if isinstance(containers, Containers) else Containers(containers), cpu_columns(containers)
    parts = [
        None if usage is None or not tenant else usage / wanted_cores
        for usage, tenant in zip(cpu.usage, _are_tenants(whole), strict=True)
    ]
    seen = CpuColumns(
        [usage if part is None else part * queue.served_cores for usage, part in zip(cpu.usage, parts, strict=True)],
        _with_queue(cpu.load1, parts, queue.load1),
        _with_queue(cpu.load5, parts, queue.load5),
    )
    waiting = queue.waiting_tasks

    def make() -> Iterator[ContainerView]:
        for container, part, usage, load1, load5 in zip(whole, parts, *seen, strict=True):
            if part is None:
                yield container
                continue
            runnable = None if container.runnable is None else container.runnable + part * waiting
            yield _measured(container, Figures(usage, load1, load5, Wait(part * waiting)), runnable)

    return Containers.measured(whole, seen, make)


@once_beside_cpu
def _are_tenants(containers: Sequence[ContainerView]) -> tuple[bool, ...]:
    return tuple([container.qos in CPU_TENANTS for container in containers])


def _with_queue(loads: Column, parts: Column, queued: float) -> Column:
    """Load averages with each container's part of what the queue adds."""
    return [
        load if part is None or load is None else load + part * queued for load, part in zip(loads, parts, strict=True)
    ]


def _average(before: float, now: float, passed_s: float, window_s: float) -> float:
    """An average as the kernel damps it; what nobody could see of it any more is nothing."""
    after = now + (before - now) * math.exp(-passed_s / window_s)
    return after if after > 1e-9 else 0.0
