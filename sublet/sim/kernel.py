"""Plays the kernel of the generated host: runs tasks under what the services wrote, and shows the result in files."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from shared.core.cgroups.layout import QOS_CLASSES, ROOT, class_group
from sublet.load.demand import SimDemand
from sublet.sim.groups import SimGroups
from sublet.sim.machine import SimMachine
from sublet.sim.model import ContainerDemand, Counters, Shares, ancestors, out_of_memory, share_cpus
from sublet.sim.proc import ProcFigures, end_task, start_task, task_waited, write_node
from sublet.sim.tree import HostFiles, plant

FIRST_PID = 5_000_000  # above the kernel's PID_MAX_LIMIT of 4194304: a signal to a simulated process can reach nobody
TASK_NAME = "stress"


@dataclass(slots=True)
class _Running:
    demand: SimDemand
    pids: list[int] = field(default_factory=list)
    waited_s: dict[int, float] = field(default_factory=dict)
    """By process."""


def class_of(container: str) -> str:
    """The QoS class's cgroup of a container: the classes are siblings, so their weights decide who goes first."""
    return "/".join(container.split("/")[:2])


class Kernel:
    """The tasks, counters and files of one generated host. Containers are named by their cgroup."""

    def __init__(self, root: Path, machine: SimMachine) -> None:
        self.root, self.machine = root, machine
        self._files = HostFiles(root)
        plant(self._files, machine)
        self.groups = SimGroups(self._files, machine)
        self.figures = ProcFigures(used_bytes=machine.system_memory_bytes)
        self._running: dict[str, _Running] = {}
        self._counters: dict[str, Counters] = {"": Counters(), ROOT: Counters()}
        self._counters |= {class_group(qos): Counters() for qos in QOS_CLASSES}
        self._next_pid = FIRST_PID
        self._now_s: float | None = None
        self._clear()
        self._show()

    def start(self, container: str, demand: SimDemand) -> None:
        """Run a container in its cgroup, which is made where it is missing."""
        self.groups.make(container)
        for group in ancestors(container):
            self._counters.setdefault(group, Counters())
        self._running[container] = _Running(demand)
        self._spawn(container)

    def add(self, container: str, demand: SimDemand) -> None:
        """Let a running container ask for more, as a further command in it would."""
        self.ask(container, self._running[container].demand + demand)

    def ask(self, container: str, demand: SimDemand) -> None:
        """Let a running container ask for this from now on."""
        self._running[container].demand = demand
        self._spawn(container)

    def runs(self, container: str) -> bool:
        """Whether the container has been started and neither stopped nor killed."""
        return container in self._running

    def stop(self, pod: str) -> None:
        """End everything in a pod's cgroup and remove it; its parents keep what they have counted."""
        for container in [name for name in self._running if name.startswith(f"{pod}/")]:
            self._kill(container)
        for group in [name for name in self._counters if name == pod or name.startswith(f"{pod}/")]:
            del self._counters[group]
        self.groups.remove(pod)

    def step(self, now_s: float) -> list[str]:
        """Let the time since the last step pass; returns the containers that were killed for memory.

        `now_s` is any clock that never goes back; the first call only sets it.
        """
        step_s = 0.0 if self._now_s is None else max(0.0, now_s - self._now_s)
        self._now_s = now_s
        # First, so that groups that a service has made meanwhile have files before they are counted.
        self.groups.adopt_new()
        # Before CPU is shared out: what is dead does not run in this step.
        killed = self._kill_for_memory()
        wants = {name: self._want(name, running) for name, running in self._running.items()}
        if step_s:
            self._advance(wants, share_cpus(list(wants.values()), self.machine.topology.all), step_s)
        self._count_memory()
        self._show()
        return killed

    def _want(self, container: str, running: _Running) -> ContainerDemand:
        line = list(ancestors(container))
        limits = [limit for group in line if (limit := self.groups.limit_cores(group)) is not None]
        return ContainerDemand(
            container,
            running.demand.threads,
            self.groups.cpus(container),
            min(limits, default=None),
            idle=self.groups.idle(class_of(container)),
        )

    def _advance(self, wants: Mapping[str, ContainerDemand], shares: Shares, step_s: float) -> None:
        cores, waiting = dict.fromkeys(self._counters, 0.0), dict.fromkeys(self._counters, 0.0)
        for container, want in wants.items():
            granted = shares.cores[container]
            self._wait(self._running[container], max(0.0, want.threads - granted), step_s)
            for group in ancestors(container):
                cores[group] += granted
                waiting[group] += max(0.0, want.threads - granted)
        for group, counters in self._counters.items():
            counters.advance(
                cores=cores[group],
                waiting=waiting[group],
                limited=group in wants and wants[group].limited,
                has_limit=self.groups.limit_cores(group) is not None,
                step_s=step_s,
            )
        self.figures.runnable = sum(want.threads for want in wants.values())
        self.figures.advance(dict(shares.busy), waiting[""], step_s)

    def _wait(self, running: _Running, waiting: float, step_s: float) -> None:
        """Let a container's threads wait: none longer than the step; the oldest, which outlive the rest, first."""
        for pid in running.pids[: math.ceil(waiting)]:
            running.waited_s[pid] = running.waited_s.get(pid, 0.0) + min(1.0, waiting) * step_s
            task_waited(self._files, pid, running.waited_s[pid])
            waiting -= 1

    def _kill_for_memory(self) -> list[str]:
        used = {name: running.demand.memory_bytes for name, running in self._running.items()}
        known = {group: self.groups.memory_limit_bytes(group) for group in self._counters if group}
        killed = out_of_memory(used, {group: limit for group, limit in known.items() if limit is not None})
        for container in killed:
            self._kill(container)
        return killed

    def _count_memory(self) -> None:
        for counters in self._counters.values():
            counters.memory_bytes = 0
        for container, running in self._running.items():
            for group in ancestors(container):
                self._counters[group].memory_bytes += running.demand.memory_bytes
        self.figures.used_bytes = self.machine.system_memory_bytes + self._counters[""].memory_bytes

    def _spawn(self, container: str) -> None:
        """One sleeping process that started the others, and a runnable one for each begun thread of the demand."""
        running = self._running[container]
        count = 1 + math.ceil(running.demand.threads)
        if len(running.pids) == count:
            return
        while len(running.pids) < count:
            start_task(self._files, self._next_pid, TASK_NAME, running=bool(running.pids))
            running.pids.append(self._next_pid)
            self._next_pid += 1
        # Out of the cgroup before it ends: who lists a cgroup finds the processes that it lists.
        gone, running.pids[count:] = running.pids[count:], []
        self.groups.set_pids(container, running.pids)
        for pid in gone:
            running.waited_s.pop(pid, None)
            end_task(self._files, pid)

    def _kill(self, container: str) -> None:
        for pid in self._running.pop(container).pids:
            end_task(self._files, pid)
        self.groups.set_pids(container, [])

    def _clear(self) -> None:
        """A host that starts anew has no tasks; what an earlier life of the simulator left is taken away."""
        for entry in (self.root / "proc").iterdir():
            if entry.name.isdecimal():
                end_task(self._files, int(entry.name))
        for qos in QOS_CLASSES:
            for pod in self.groups.cgroups.children(class_group(qos)):
                self.groups.remove(f"{class_group(qos)}/{pod}")

    def _show(self) -> None:
        self.figures.tasks = sum(len(running.pids) for running in self._running.values())
        for group, counters in self._counters.items():
            self.groups.write(group, counters)
        write_node(self._files, self.machine, self.figures)
