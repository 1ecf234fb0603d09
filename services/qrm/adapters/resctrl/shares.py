"""Cache shares are kept by groups of resctrl: a group a class, with the tasks of its pods.

Facts: docs/facts/resctrl.md#tasks.
"""

import errno
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from services.qrm.core.resctrl.hardware import BANDWIDTH, Hardware
from services.qrm.core.resctrl.schemata import line_to_write
from services.qrm.core.resctrl.shares import (
    WHOLE,
    CacheShare,
    ResctrlRules,
    cache_group,
    wanted_schemata,
    without_effect,
)
from services.qrm.core.writes.outcome import Problem
from services.qrm.ports import CacheControl
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Pod, QosClass
from shared.core.cgroups.layout import Layout
from shared.errors import Refused

NOT_MOUNTED = "/sys/fs/resctrl/schemata"
READ_ONLY = (
    "shares of caches and bandwidth: /sys is mounted read-only here, and resctrl with it; set node.resctrl of the chart"
)
_HINTS = {
    errno.EINVAL: f"; {NOT_MOUNTED} says what the hardware takes",
    errno.ENOSPC: "; the hardware has no class of service (CLOSID) left for another group",
}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A class's share, and the machine that it is for."""

    share: CacheShare
    hardware: Hardware
    steered: bool
    """Whether the bandwidth loop writes its bandwidth."""


@dataclass(slots=True)
class CacheShares:
    """The one place that makes groups of resctrl and moves tasks. Times are monotonic seconds."""

    control: CacheControl
    cgroups: Cgroups
    layout: Layout
    lacking: tuple[str, ...] = ()
    """Files that a share needs and this machine does not have."""
    unheeded: tuple[str, ...] = ()
    """Shares that have no effect on this machine, and why."""
    _settled: tuple[ResctrlRules, Sequence[Pod], float] | None = None
    _may_be_given: bool = True
    """Also by a life before this one."""
    _moved: set[str] = field(default_factory=set)
    """Cgroups whose tasks were found and moved: what these start stays with them."""

    def settle(self, pods: Sequence[Pod], rules: ResctrlRules, now_s: float, verify_s: float) -> list[Problem]:
        """Keep a group for each class with a share; without any, remove those that were made here."""
        self.lacking = ()
        if not rules.shares:
            self.unheeded = ()
            return self.give_back()
        last = self._settled
        if last is not None and (last[0], last[1]) == (rules, pods) and now_s < last[2] + verify_s:
            problems = [problem for qos in rules.shares for problem in self._keep(qos, None, pods)]
            self._settled = None if problems else last
            return problems
        try:
            hardware = self.control.hardware()
        except OSError as error:
            return [Problem("resctrl", f"cannot be read: {error.strerror}")]
        if hardware is None:
            self.lacking, self.unheeded = (NOT_MOUNTED,), ()
            return []
        self._may_be_given, self.unheeded = True, tuple(without_effect(rules.shares, hardware))
        self._moved.clear()
        steered = rules.steered if hardware.counts else frozenset()
        wanted = {qos: _Wanted(share, hardware, qos in steered) for qos, share in rules.shares.items()}
        problems = [problem for qos, one in wanted.items() for problem in self._keep(qos, one, pods)]
        self._settled = None if problems else (rules, pods, now_s)
        return problems

    def give_back(self) -> list[Problem]:
        """Remove the groups that were made here; their tasks go back to the root's."""
        if not self._may_be_given:
            return []
        self._settled = None
        problems = []
        for group in self.control.groups():
            try:
                self.control.remove(group)
            except OSError as error:
                problems.append(Problem(f"resctrl/{group}", f"cannot be removed: {error.strerror}"))
        self._may_be_given = bool(problems)
        return problems

    def _keep(self, qos: QosClass, wanted: _Wanted | None, pods: Sequence[Pod]) -> Iterator[Problem]:
        """Bring a class's group to its share, unless that was found in force, and move the tasks that came."""
        group = cache_group(qos)
        try:
            if wanted is not None:
                self._write(group, wanted)
            self._move(group, [pod for pod in pods if pod.qos == qos])
        except Refused as error:
            yield Problem(f"resctrl/{group}", str(error))
        except OSError as error:
            if error.errno == errno.EROFS:
                self.unheeded = (READ_ONLY,)  # then nothing else has an effect either
            else:
                yield Problem(f"resctrl/{group}", self._words(error))

    def _write(self, group: str, wanted: _Wanted) -> None:
        if self.control.schemata(group) is None:
            self._make(group, wanted.hardware)
        now = self.control.schemata(group) or {}
        # What a share cannot say for this machine is as if it had not been said.
        values = {
            **wanted_schemata(WHOLE, wanted.hardware).values,
            **wanted_schemata(wanted.share, wanted.hardware).values,
        }
        if wanted.steered:
            values.pop(BANDWIDTH, None)
        for resource, own in values.items():
            line = line_to_write(resource, own, now, wanted.hardware)
            if line is not None:
                self.control.write(group, line)

    def _make(self, group: str, hardware: Hardware) -> None:
        taken, most = self.control.taken(), hardware.most_groups
        if most is not None and taken >= most:
            raise Refused(
                f"no group can be made: {taken} of the {most} that the hardware has (num_closids) are there; remove one"
                f" below {NOT_MOUNTED.rpartition('/')[0]}, or share fewer classes",
                reason="no_closid",
            )
        self.control.make(group)

    def _move(self, group: str, pods: Sequence[Pod]) -> None:
        """Move the tasks of cgroups that are new, at any depth; what a moved task starts is where it is."""
        found: set[int] = set()
        for pod in pods:
            for cgroup in self.cgroups.tree(self.layout.pod_group(pod)):
                if cgroup not in self._moved:
                    tasks = self._tasks(cgroup)
                    # One without tasks is looked at again: its container is only about to start.
                    self._moved |= {cgroup} if tasks else set()
                    found |= tasks
        if found:
            for task in sorted(found - self.control.tasks(group)):
                self.control.add_task(group, task)

    def _tasks(self, cgroup: str) -> set[int]:
        name, controller = ("cgroup.threads", "") if self.cgroups.version == 2 else ("tasks", "cpu")
        return {int(word) for word in (self.cgroups.text(cgroup, name, controller) or "").split()}

    def _words(self, error: OSError) -> str:
        said = self.control.last_status() if error.errno == errno.EINVAL else ""
        return f"{error.strerror}{f': {said}' if said else ''}{_HINTS.get(error.errno or 0, '')}"
