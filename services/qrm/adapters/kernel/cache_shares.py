"""Cache shares are kept by groups of resctrl: a group a class, with the tasks of its pods."""

import errno
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from services.qrm.core.isolation.cache import (
    CacheShare,
    Schemata,
    cache_group,
    schemata_lines,
    schemata_of,
    without_effect,
)
from services.qrm.core.writes.outcome import Problem
from services.qrm.ports import CacheControl
from shared.adapters.host.cgroup import Cgroups
from shared.contracts.pod import Pod, QosClass
from shared.core.cgroups.layout import Layout

NOT_MOUNTED = "/sys/fs/resctrl/schemata"
READ_ONLY = (
    "shares of caches and bandwidth: /sys is mounted read-only here, and resctrl with it; set node.resctrl of the chart"
)
_HINTS = {
    errno.EINVAL: f"; {NOT_MOUNTED} says what the hardware takes",
    errno.ENOSPC: "; the hardware has no class of service (CLOSID) left for another group",
}


@dataclass(slots=True)
class CacheShares:
    """The one place that writes resctrl. Times are monotonic seconds."""

    control: CacheControl
    cgroups: Cgroups
    layout: Layout
    lacking: tuple[str, ...] = ()
    """Files that a share needs and this machine does not have."""
    unheeded: tuple[str, ...] = ()
    """What of the shares has no effect on this machine, and why."""
    _settled: tuple[Mapping[QosClass, CacheShare], Sequence[Pod], float] | None = None
    _may_be_given: bool = True
    """Also by a life before this one."""

    def settle(
        self, pods: Sequence[Pod], shares: Mapping[QosClass, CacheShare], now_s: float, verify_s: float
    ) -> list[Problem]:
        """Keep a group for each class with a share; without any, remove those that were made here."""
        self.lacking = ()
        if not shares:
            self.unheeded = ()
            return self.give_back()
        try:
            whole = self.control.whole()
        except OSError as error:
            return [Problem("resctrl", f"schemata cannot be read: {error.strerror}")]
        if whole is None:
            self.lacking, self.unheeded = (NOT_MOUNTED,), ()
            return []
        last = self._settled
        if last is not None and (last[0], last[1]) == (shares, pods) and now_s < last[2] + verify_s:
            return []
        self._may_be_given, self.unheeded = True, tuple(without_effect(shares.values(), whole))
        problems = [problem for qos, share in shares.items() for problem in self._keep(qos, share, whole, pods)]
        self._settled = None if problems else (shares, pods, now_s)
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

    def _keep(self, qos: QosClass, share: CacheShare, whole: Schemata, pods: Sequence[Pod]) -> Iterator[Problem]:
        group = cache_group(qos)
        try:
            if self.control.schemata(group) is None:
                self.control.make(group)
            wanted, now = schemata_of(share, whole, self.control.bounds()), self.control.schemata(group) or {}
            for line in schemata_lines(wanted, now):
                self.control.write(group, line)
            there = self.control.tasks(group)
            for task in sorted(self._tasks([pod for pod in pods if pod.qos == qos]) - there):
                self.control.add_task(group, task)
        except OSError as error:
            if error.errno == errno.EROFS:
                self.unheeded = (READ_ONLY,)  # then nothing else has an effect either
            else:
                yield Problem(f"resctrl/{group}", f"{error.strerror}{_HINTS.get(error.errno or 0, '')}")

    def _tasks(self, pods: Sequence[Pod]) -> set[int]:
        name, controller = ("cgroup.threads", "") if self.cgroups.version == 2 else ("tasks", "cpu")
        texts = (self.cgroups.text(group, name, controller) or "" for pod in pods
                 for group in self.cgroups.tree(self.layout.pod_group(pod)))  # fmt: skip
        return {int(word) for text in texts for word in text.split()}
