"""Tracks the starts of reclaimed pods by the processes in their groups, which are the earliest sign.

A process of the runtime that will become the container's is recognized by its name, which changes when it does. A
container that gives itself such a name counts as not started, and uses up its pod's budget.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from services.qrm.adapters.kernel.pod_lists import LIST_AGAIN_S
from services.qrm.core.starting import Holds, PodStart, StartRules, Starts, progress
from services.qrm.core.turns import Turns
from services.qrm.core.writes.classes import RECLAIMED
from shared.adapters.host.cgroup import Cgroups
from shared.adapters.host.hostfs import read_text
from shared.contracts.pod import Pod
from shared.core.cgroups.layout import Layout
from shared.core.text.kernel_text import key_values

_RUNTIMES = ("runc", "crun", "youki")
"""How the names of the runtimes' own processes begin: runc's are `runc:[0:PARENT]` to `runc:[2:INIT]`."""
_MOST_PROCESSES = 16
"""Most processes of a group that are read: while only the runtime's are there, they are few."""


@dataclass(frozen=True, slots=True)
class _Settled:
    """A pod that was found started, or waiting with its sandbox alone, and the signs that nothing has begun in it
    since."""

    top: str
    groups: Sequence[str]
    mark: object
    start: PodStart

    @property
    def waits(self) -> bool:
        """Whether its containers are still to come."""
        return self.start.progress == "waiting"


@dataclass(slots=True)
class StartWatch:
    """Which reclaimed pods keep what kubelet gave them, because they are being started."""

    cgroups: Cgroups
    layout: Layout
    name_of: Callable[[int], str | None]
    """The name of a process; None: it is gone."""
    _starts: Starts = field(default_factory=Starts)
    _settled: dict[str, _Settled] = field(default_factory=dict)
    """By UID the pods that are not looked into again until their groups change."""
    _turns: Turns = field(default_factory=Turns)
    _pods: Sequence[Pod] = ()
    """Those of the last look."""
    _worked: dict[str, float | None] = field(default_factory=dict)
    """By home of settled pods the CPU time of all below it at the last look; None: unknown."""
    _all_started: bool = False
    """Whether all reclaimed pods were found started: then no budget is used up."""

    def exempt(self, pods: Sequence[Pod], rules: StartRules, now_s: float) -> frozenset[str]:
        """Return the UIDs of the pods that keep kubelet's values.

        If Sublet makes the groups itself, pods start in them without a runtime, and the result is empty.

        Raises:
            OSError: a group exists and cannot be read.
        """
        if self.layout.classes:
            return frozenset()
        # A new list of pods may contain a restarting container, or say which group is a container's.
        known, before = pods is self._pods, self._settled
        # What starts a container in a pod runs there: while no pod of its home has run, nothing has begun. Read first:
        # what runs during this look is seen by the next one.
        worked, self._worked = self._worked, self._worked_homes()
        if known and self._all_started and None not in worked.values() and worked == self._worked:
            return frozenset()
        listed = set(self._turns.due(now_s, LIST_AGAIN_S))
        now = {uid: self._still(one, listed=not known or uid in listed) for uid, one in before.items()}
        self._settled = {uid: one for uid, one in now.items() if one is not None}
        if known and self._all_started and None not in now.values():
            return frozenset()
        reclaimed = [pod for pod in pods if pod.qos == RECLAIMED]
        # Pods that are gone are forgotten.
        self._settled = {pod.uid: self._settled[pod.uid] for pod in reclaimed if pod.uid in self._settled}
        seen = {pod.uid: self._look(pod) for pod in reclaimed}
        if self._settled.keys() != before.keys():
            self._turns.begin(self._settled, now_s, LIST_AGAIN_S)
        self._pods, self._all_started = pods, all(start.progress == "started" for start in seen.values())
        homes = {one.top.rpartition("/")[0] for one in self._settled.values()}
        self._worked = self._worked if homes == self._worked.keys() else dict.fromkeys(homes)
        return self._starts.exempt(seen, rules, now_s)

    def _worked_homes(self) -> dict[str, float | None]:
        return {home: self._cpu_s(home) for home in self._worked}

    def _still(self, one: _Settled, *, listed: bool) -> _Settled | None:
        """Return a settled pod as it is now; None if something may have begun in it."""
        # Before the list: what changes in between makes the next mark another one.
        mark = self.cgroups.mark(one.top)
        if not listed and mark is not None and mark == one.mark:
            return one
        # While it waits its CPU time counts, which only a look reads.
        if one.waits:
            return None
        # A restarting container has a group of another name, so the same list means that nothing is starting.
        return replace(one, mark=mark) if self._below(one.top) == one.groups else None

    def _below(self, top: str) -> list[str]:
        return [f"{top}/{name}" for name in self.cgroups.children(top)]

    def _look(self, pod: Pod) -> PodStart:
        if pod.uid in self._settled:
            return self._settled[pod.uid].start
        top = self.layout.pod_group(pod)
        # Before the list: what changes in between makes the next mark another one.
        mark, groups = self.cgroups.mark(top), self._below(top)
        staying = [self.layout.container_group(pod, one) for one in pod.containers]
        ending = (self.layout.container_group(pod, one) for one in pod.init_containers if one not in pod.containers)
        inside = {group: self._holds(group) for group in groups}
        start = PodStart(pod.key, progress(inside, staying, [one for one in ending if one]), self._cpu_s(top))
        if start.progress == "started":
            # Its CPU time is not read again: the budget is that of starts, and this one is over.
            self._settled[pod.uid] = _Settled(top, groups, mark, replace(start, cpu_s=None))
        elif start.progress == "waiting" and set(inside.values()) <= {"own"}:
            # No group is empty: whatever begins there comes with a group of its own.
            self._settled[pod.uid] = _Settled(top, groups, mark, start)
        return start

    def _holds(self, container: str) -> Holds:
        """Return what runs in a container's group, or below it if the container has groups of its own."""
        holds: Holds = "nothing"
        for group in self.cgroups.tree(container):
            # Parse only as far as needed: a busy batch pod may have thousands of processes, and one of its own is an
            # answer.
            processes = (self.cgroups.text(group, "cgroup.procs", "cpuset") or "").split(maxsplit=_MOST_PROCESSES)
            for process in processes[:_MOST_PROCESSES]:
                name = self.name_of(int(process))
                if name is not None and not name.startswith(_RUNTIMES):
                    return "own"
                holds = "runtime"
        return holds

    def _cpu_s(self, group: str) -> float | None:
        """CPU time that a group has used; None where the kernel does not say it."""
        if self.cgroups.version == 2:
            used_us = key_values(self.cgroups.text(group, "cpu.stat") or "", ("usage_usec",)).get("usage_usec")
            return None if used_us is None else used_us / 1e6
        used_ns = (self.cgroups.text(group, "cpuacct.usage", "cpuacct") or "").strip()
        return int(used_ns) / 1e9 if used_ns.isdigit() else None


def process_name(host_root: Path) -> Callable[[int], str | None]:
    """Return a function that reads the names of a host's processes; None for a process that does not exist."""
    return lambda pid: read_text(f"{host_root}/proc/{pid}/comm")
