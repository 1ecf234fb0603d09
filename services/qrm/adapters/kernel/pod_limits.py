"""Pod limits bound reclaimed pods to their own amounts where kubelet makes the groups: to kubelet they have none.

A limit is never taken back here: the class of a pod stays as long as the pod does, whatever is written onto it.

A pod's own group keeps the lowest weight there is, for beside it may be a tenant's pod that asked for nothing either;
CPU requests count among the containers of a pod.

CPU quotas are written where the settings say so. Without that, and beside a quota of the whole class, those that were
written here are lifted: on v1 no group has a larger one than the group above it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from services.qrm.adapters.kernel.memory_use import memory_use
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.memory.limits import in_force, own_limit_steps
from services.qrm.core.writes.classes import RECLAIMED
from services.qrm.core.writes.outcome import Problem
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import UNLIMITED, Knob, Write
from shared.core.cgroups.layout import Layout
from shared.core.pods.limits import GroupLimits, limits_of


@dataclass(frozen=True, slots=True)
class _Settled:
    """A pod whose limits were all found in force."""

    pod: Pod
    at_s: float
    quotas: bool | None


@dataclass(slots=True)
class PodLimits:
    """Writes the limits where they are not in force. Times are monotonic seconds."""

    writer: CgroupWriter
    layout: Layout
    unsaid_bytes: int
    """Memory limit of a container that asks for no memory."""
    _settled: dict[str, _Settled] = field(default_factory=dict)
    _may_have_quotas: bool = True
    """Also of a life before this one."""

    def lift_quotas(self, pods: Sequence[Pod]) -> list[Problem]:
        """Take the quotas away that were written here; what somebody else wrote stays."""
        if not self._may_have_quotas:
            return []
        own = [
            Write(group, Knob.CPU_QUOTA, limits.quota_millis)
            for pod in pods
            for group, limits in self._present(pod).items()
            if pod.qos == RECLAIMED and limits.quota_millis is not None
        ]
        problems = self.writer.settle(
            [Write(write.group, Knob.CPU_QUOTA, UNLIMITED) for write in own if not self.writer.differs(write)]
        )
        self._may_have_quotas = bool(problems)
        return problems

    def settle(
        self, pods: Sequence[Pod], now_s: float, verify_s: float, *, quotas: bool | None = False
    ) -> list[Problem]:
        """One step towards the limits of these pods, whose groups exist; tenants' groups are left alone.

        A pod whose limits were all found in force less than `verify_s` ago is not looked at, unless it has changed.
        """
        problems: list[Problem] = []
        self._may_have_quotas = self._may_have_quotas or quotas is True
        reclaimed = [pod for pod in pods if pod.qos == RECLAIMED]
        settled: dict[str, _Settled] = {}
        for pod in reclaimed:
            last = self._settled.get(pod.uid)
            if last is not None and now_s < last.at_s + verify_s and (last.pod, last.quotas) == (pod, quotas):
                settled[pod.uid] = last
            # Not settled yet even if all goes well: the next pass reads back what the kernel made of it.
            elif writes := self._writes(pod, quotas=quotas is True):
                problems += self.writer.settle(writes)
            elif self._complete(pod):
                settled[pod.uid] = _Settled(pod, now_s, quotas)
        self._settled = settled
        return problems

    def _present(self, pod: Pod) -> dict[str, GroupLimits]:
        """The limits of the groups that are there: containers come late, and may be gone before their pod."""
        top = self.layout.pod_group(pod)
        there = {top, *(f"{top}/{name}" for name in self.writer.cgroups.children(top))}
        return {group: own for group, own in limits_of(pod, self.layout, self.unsaid_bytes).items() if group in there}

    def _writes(self, pod: Pod, *, quotas: bool) -> list[Write]:
        top, writes = self.layout.pod_group(pod), []
        for group, own in self._present(pod).items():
            weight = Write(group, Knob.CPU_SHARES, own.cpu_shares)
            if group != top and self.writer.differs(weight):
                writes.append(weight)
            if quotas and own.quota_millis is not None:
                quota = Write(group, Knob.CPU_QUOTA, own.quota_millis)
                writes += [quota] if self.writer.differs(quota) else []
            if own.memory_bytes is not None:
                writes += self._steps(group, own.memory_bytes)
        return writes

    def _steps(self, group: str, limit_bytes: int) -> list[Write]:
        hard_bytes = self._hard(group)
        if hard_bytes is None or in_force(limit_bytes, hard_bytes):
            return []
        use = memory_use(self.writer.cgroups, group)
        steps = [] if use is None else own_limit_steps(limit_bytes, hard_bytes, use, self.writer.cgroups.version)
        return [Write(group, knob, value) for knob, value in steps]

    def _complete(self, pod: Pod) -> bool:
        """Whether every container has its group, and every limit is in force: a step may have to wait for memory."""
        present = self._present(pod)
        return {self.layout.container_group(pod, one) for one in pod.containers} <= present.keys() and all(
            own.memory_bytes is None or in_force(own.memory_bytes, self._hard(group)) for group, own in present.items()
        )

    def _hard(self, group: str) -> int | None:
        """The memory limit as the kernel has it; None where there is no such setting."""
        limit = self.writer.cgroups.read(group, Knob.MEMORY_MAX)
        return None if limit is None else int(limit)
