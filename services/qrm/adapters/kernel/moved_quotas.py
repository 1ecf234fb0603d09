"""Writes moved quotas to tenants' groups, and restores kubelet's when they end.

A group's former value is recorded before it is written. If another program has written a group since, its value becomes
the former value: kubelet does this when a container is resized.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from services.qrm.adapters.kernel.writer import CgroupWriter
from services.qrm.core.checkpoint import FormerValue
from services.qrm.core.isolation.quota_pods import (
    PodQuotas,
    has_kubelets_quota,
    kubelets_quotas,
    quota_writes,
    quotas_of,
)
from services.qrm.core.writes.outcome import Problem
from services.qrm.former_values import FormerValues
from shared.contracts.pod import Pod
from shared.core.cgroups.knobs import MIN_QUOTA_US, PERIOD_US, UNLIMITED, V1_FILES, V2_FILES, Knob, Write
from shared.core.cgroups.layout import Layout

QUOTA = Knob.CPU_QUOTA
LEAST_MILLIS = MIN_QUOTA_US * 1000 // PERIOD_US

Record = Mapping[str, FormerValue]


@dataclass(slots=True)
class _Plan:
    """The writes of one pass."""

    writes: list[Write] = field(default_factory=list)
    fresh: list[FormerValue] = field(default_factory=list)
    """What must be recorded first."""
    had: dict[str, int] = field(default_factory=dict)
    """What every group would have without Sublet, as far as that is known."""


@dataclass(slots=True)
class MovedQuotas:
    """The one place that writes tenants' quotas. Times are monotonic seconds."""

    writer: CgroupWriter
    layout: Layout
    former: FormerValues = field(default_factory=FormerValues)
    """Former values of groups, recorded before the first write until they are restored."""
    lacking: tuple[str, ...] = ()
    """The file of quotas, where a group does not have it."""
    unheeded: tuple[str, ...] = ()
    """Pods whose quotas do not move, and why, in words."""
    _verified: tuple[Sequence[PodQuotas], float] | None = None

    def settle(
        self, pods: Sequence[Pod], raised: Mapping[str, int], now_s: float = 0.0, verify_s: float = 0.0
    ) -> list[Problem]:
        """Bring the quotas of these pods to what is raised, and those that were raised before back to what they had.

        Quotas that were all found in force less than `verify_s` ago are not looked at again.
        """
        record = {group: one for (group, _), one in self.former.of((QUOTA,)).items()}
        moved = self._moved(pods, raised, record.keys())
        if self._verified is not None and self._verified[0] == moved and now_s < self._verified[1] + verify_s:
            return []
        self._verified, self.lacking, self.unheeded = None, (), ()
        plan = self._plan(moved, record)
        try:
            self.former.record(plan.fresh)
            problems = self.writer.settle(plan.writes)
            if not problems:
                ended = (group for one in moved for group in _ended(one))
                self.former.forget((group, QUOTA) for group in ended if self._is_back(group, plan.had))
        except OSError as error:
            why = f"quotas cannot be put on record ({error}): none is moved; make room in the state folder"
            return [Problem(self.layout.top, why)]
        # Not verified even if all went well: the next pass reads back what the kernel made of it.
        self._verified = None if plan.writes else (moved, now_s)
        return problems

    def end(self, pods: Sequence[Pod]) -> list[Problem]:
        """Bring all quotas back to what they had, also those that were just found in force."""
        self._verified = None
        return self.settle(pods, {})

    def _moved(self, pods: Sequence[Pod], raised: Mapping[str, int], on_record: Collection[str]) -> list[PodQuotas]:
        if not raised and not on_record:
            return []
        every = [quotas_of(pod, raised, self.layout) for pod in pods if has_kubelets_quota(pod)]
        return [one for one in every if one.extra or not {one.group, *one.limits}.isdisjoint(on_record)]

    def _plan(self, moved: Iterable[PodQuotas], record: Record) -> "_Plan":
        plan = _Plan()
        for pod in moved:
            now = self._now(pod)
            # Without the pod's own group nothing rises, for v1 would refuse it; what was raised still comes back.
            quotas = pod if pod.group in now else replace(pod, extra={})
            found = {group: _former_value(millis, record.get(group)) for group, millis in now.items()}
            had = kubelets_quotas(quotas, found, record)
            plan.had |= had
            for write in quota_writes(quotas, had, now):
                plan.writes.append(write)
                # Values to restore are on record already.
                if write.value != had[write.group]:
                    plan.fresh.append(_fresh(write, had[write.group], now[write.group], record.get(write.group)))
        return plan

    def _is_back(self, group: str, had: Mapping[str, int]) -> bool:
        """Return whether a group has its former value again, as read from the kernel, or has ended."""
        if group not in had:
            return not self.writer.cgroups.exists(group)
        now = self.writer.cgroups.read(group, QUOTA)
        return now is None or int(now) == _in_force(had[group])

    def _now(self, pod: PodQuotas) -> dict[str, int]:
        """Return the quotas in force, without groups that have a different period or no file."""
        found: dict[str, int] = {}
        for group in (pod.group, *pod.limits):
            millis, period_us = self.writer.cgroups.read(group, QUOTA), self._period_us(group)
            # Behind the reads: a group that has just ended has no files either.
            if not self.writer.cgroups.exists(group):
                continue
            if millis is None or period_us is None:
                self.lacking = (V2_FILES[QUOTA] if self.writer.cgroups.version == 2 else V1_FILES[QUOTA][1],)
            elif period_us != str(PERIOD_US):
                said = f"the quota of {group} does not move: its period is {period_us[:20]} us; want {PERIOD_US}"
                self.unheeded = (*self.unheeded, said)[:3]
            else:
                found[group] = int(millis)
        return found

    def _period_us(self, group: str) -> str | None:
        if self.writer.cgroups.version == 2:
            text = self.writer.cgroups.raw(group, QUOTA)
            return None if text is None else text.strip().rpartition(" ")[2]
        text = self.writer.cgroups.text(group, "cpu.cfs_period_us", "cpu")
        return None if text is None else text.strip()


def _ended(pod: PodQuotas) -> list[str]:
    """The groups of a pod that go back to what they had."""
    containers = [group for group in pod.limits if group not in pod.extra]
    return containers if pod.extra else [pod.group, *containers]


def _former_value(now_millis: int, last: FormerValue | None) -> int:
    """Return what a group would have without Sublet: the recorded value, if the current value is one that Sublet
    wrote."""
    if last is None or (last.wrote and now_millis not in map(_in_force, last.wrote)):
        return now_millis
    return last.value


def _fresh(write: Write, had_millis: int, now_millis: int, last: FormerValue | None) -> FormerValue:
    """The record of a write; until it is done, the one before it may be in force."""
    ours = [one for one in (last.wrote if last is not None else ()) if _in_force(one) == now_millis]
    wrote = tuple(dict.fromkeys((*ours, int(write.value))))
    return FormerValue(group=write.group, knob=QUOTA, value=had_millis, wrote=wrote)


def _in_force(millis: int) -> int:
    return UNLIMITED if millis == UNLIMITED else max(LEAST_MILLIS, millis)
