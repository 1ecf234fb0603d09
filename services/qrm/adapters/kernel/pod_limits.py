"""Limits reclaimed and mid pods to their own amounts if kubelet makes the groups, because kubelet gives them no
limit.

A limit is never removed here: the class of a pod stays as long as the pod does, whatever is written onto it.

A reclaimed pod's own group keeps the lowest weight, because next to it may be a tenant's pod that requested nothing
either; CPU requests count among the containers of a pod. A mid pod is a tenant, and its weight follows its request.

CPU quotas are written if the settings say so, and former values are recorded first. Otherwise, and under a quota of the
whole class, quotas that were written here are restored: on v1 no group has a larger quota than the group above it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.qrm.adapters.kernel.memory_use import memory_use
from services.qrm.adapters.kernel.restore import give_back
from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.checkpoint import FormerValue
from services.qrm.core.isolation.wanted import Key
from services.qrm.core.memory.limits import in_force, own_limit_steps
from services.qrm.core.writes.classes import RECLAIMED
from services.qrm.core.writes.outcome import Problem
from services.qrm.former_values import FormerValues
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import UNLIMITED, Knob, Write
from shared.core.cgroups.layout import Layout
from shared.core.pods.limits import GroupLimits, is_limited_here, limits_of


@dataclass(frozen=True, slots=True)
class _Settled:
    """A pod whose limits were all found in force."""

    pod: Pod
    at_s: float
    quotas: bool | None


@dataclass(slots=True)
class PodLimits:
    """Writes the limits if they are not in force. Times are monotonic seconds."""

    writer: CgroupWriter
    layout: Layout
    unsaid_bytes: int
    """Memory limit of a container that asks for no memory."""
    former: FormerValues = field(default_factory=FormerValues)
    """The quotas that groups had before."""
    _settled: dict[str, _Settled] = field(default_factory=dict)

    def lift_quotas(self, pods: Sequence[Pod]) -> list[Problem]:
        """Remove the quotas that were written here; quotas of others stay."""
        on_record = self.former.of((Knob.CPU_QUOTA,))
        if not on_record:
            return []
        groups = {group for pod in pods if is_limited_here(pod) for group in self._present(pod)}
        return give_back(self.writer, self.former, [key for key in on_record if key[0] in groups])

    def settle(
        self, pods: Sequence[Pod], now_s: float, verify_s: float, *, quotas: bool | None = False
    ) -> list[Problem]:
        """Take one step towards the limits of these pods, whose groups exist; leave pods alone whose amounts kubelet
        knows.

        A pod whose limits were all found in force less than `verify_s` ago is skipped, unless it has changed.
        """
        pending: list[Write] = []
        limited = [pod for pod in pods if is_limited_here(pod)]
        settled: dict[str, _Settled] = {}
        for pod in limited:
            last = self._settled.get(pod.uid)
            if last is not None and now_s < last.at_s + verify_s and (last.pod, last.quotas) == (pod, quotas):
                settled[pod.uid] = last
            # Not settled yet even if all goes well: the next pass reads back what the kernel made of it.
            elif writes := self._writes(pod, quotas=quotas is True):
                pending += writes
            elif self._complete(pod):
                settled[pod.uid] = _Settled(pod, now_s, quotas)
        self._settled = settled
        return self._settle(pending) if pending else []

    def _settle(self, writes: Sequence[Write]) -> list[Problem]:
        on_record = self.former.of((Knob.CPU_QUOTA,))
        try:
            # Once for all pods: each time the whole record is written.
            self.former.record([self._former(write, on_record) for write in writes if write.knob is Knob.CPU_QUOTA])
        except OSError as error:
            others = [write for write in writes if write.knob is not Knob.CPU_QUOTA]
            why = f"quotas cannot be put on record ({error}): none is written; make room in the state folder"
            return [Problem(self.layout.top, why), *self.writer.settle(others)]
        return self.writer.settle(writes)

    def _former(self, write: Write, on_record: Mapping[Key, FormerValue]) -> FormerValue:
        """The record of a quota that is about to be written; until it is, the one before it may be in force."""
        now = self.writer.cgroups.read(write.group, write.knob)
        last = on_record.get((write.group, write.knob))
        if last is None:
            return FormerValue(
                group=write.group, knob=write.knob, value=int(now or UNLIMITED), wrote=(int(write.value),)
            )
        ours = (one for one in last.wrote if not self.writer.differs(Write(write.group, write.knob, one)))
        wrote = tuple(dict.fromkeys((*ours, int(write.value)))) if last.wrote else ()
        return last.model_copy(update={"wrote": wrote})

    def _present(self, pod: Pod) -> dict[str, GroupLimits]:
        """Return the limits of existing groups: containers come late, and may end before their pod."""
        top = self.layout.pod_group(pod)
        there = {top, *(f"{top}/{name}" for name in self.writer.cgroups.children(top))}
        return {group: own for group, own in limits_of(pod, self.layout, self.unsaid_bytes).items() if group in there}

    def _writes(self, pod: Pod, *, quotas: bool) -> list[Write]:
        top, writes = self.layout.pod_group(pod), []
        for group, own in self._present(pod).items():
            weight = Write(group, Knob.CPU_SHARES, own.cpu_shares)
            if (group != top or pod.qos != RECLAIMED) and self.writer.differs(weight):
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
        """Return the memory limit as the kernel has it; None if there is no such setting."""
        limit = self.writer.cgroups.read(group, Knob.MEMORY_MAX)
        return None if limit is None else int(limit)
