"""The allocation reporter makes the allocation of what the kernel has after a pass, and logs it where it changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_

import structlog

from services.qrm.conditions import Conditions
from services.qrm.core.active_advice import ActiveAdvice, offered, offered_by_numa, still_offered
from services.qrm.core.state import PassDecision
from services.qrm.core.statement import mixed_pods, mixed_text, pods_in_force, pools_in_force, status_of
from services.qrm.core.writes.outcome import WriteOutcome
from services.qrm.ports import PodGroups
from shared import telemetry
from shared.contracts.allocation import Allocation, PodAllocation, PoolAllocation
from shared.contracts.envelope import Reason
from shared.contracts.mode import Mode
from shared.contracts.pod import Pod
from shared.core.cgroups.layout import RECLAIM, RESERVE, SHARE
from shared.core.cpus.cpuset import CpuSet
from shared.wire import Wire

log = structlog.get_logger()

_SHOWN_PROBLEMS = 3
CLASS_POOLS = (SHARE, RECLAIM, RESERVE)
OWN = "own"
"""Gauge label for all custom pools together."""


@dataclass(frozen=True, slots=True)
class PassResult:
    """One pass: what should be in force, by which advice, and what came of it."""

    decision: PassDecision
    mode: Mode
    active: ActiveAdvice | None
    pods: Sequence[Pod]
    outcome: WriteOutcome
    extra: Sequence[Reason]
    applied_in_s: float
    observes: bool = False
    """Whether the node only observes: then nothing is offered."""


@dataclass(frozen=True, slots=True)
class _Told:
    """The published pools and pods, and what they were derived from."""

    sources: tuple[object, ...]
    limit_bytes: int | None
    pools: tuple[PoolAllocation, ...]
    pods: tuple[PodAllocation, ...]


class AllocationReporter:
    """Makes an allocation of each pass; `last` is the newest."""

    def __init__(self, wire: Wire, groups: PodGroups, conditions: Conditions) -> None:
        self._wire, self._groups, self._conditions = wire, groups, conditions
        self._offered = (0, 0)
        self._backed_by = CpuSet()
        """The reclaimed pool when the offer was made."""
        self._told: _Told | None = None
        self.last: Allocation | None = None

    def report(self, done: PassResult, now_s: float) -> Allocation:
        """The allocation after a pass."""
        self._describe(done, now_s)
        limit = self._groups.memory_limit()
        arrangement = done.decision.arrangement
        pools, pods = self._in_force(done, limit)
        active = done.active
        advice = active.advice if active else None
        reclaim = next((pool for pool in pools if pool.pool == RECLAIM), None)
        reclaim_cpus = CpuSet.parse(reclaim.cpus) if reclaim else CpuSet()
        if done.observes:
            self._offered = (0, 0)
        elif done.mode == "enforce":
            self._offered = offered(advice, len(reclaim_cpus), limit, at_floor=done.decision.stage == "floor")
            self._backed_by = reclaim_cpus
        else:
            # A mode that writes nothing offers nothing new either: what was offered last, as far as it is still in
            # force. The watchdog may have ended it, for nobody renews the lease.
            self._offered = still_offered(self._offered, self._backed_by, reclaim_cpus, limit)
        # A group left to a foreign writer is no problem of the pass, but not what was asked for either.
        # A group that is still being made may have every CPU, and its pool with it: that is not what was asked for.
        wider = bool(done.outcome.pending) and not reclaim_cpus <= arrangement.pools.get(RECLAIM, CpuSet())
        as_wanted = not (done.outcome.problems or wider or self._groups.foreign(now_s))
        allocation = self._wire.stamp(
            Allocation,
            based_on=(*advice.based_on, advice.ref) if advice else (),
            status=status_of(done.decision.stage, done.mode, readable=reclaim is not None, as_wanted=as_wanted),
            mode=done.mode,
            pools=pools,
            pods=pods,
            reclaimed_cpu_millis=self._offered[0],
            reclaimed_memory_bytes=self._offered[1],
            reclaimed_numas=offered_by_numa(self._offered[0], reclaim_cpus, self._groups.numas),
            lease_left_s=max(0.0, active.lease_until_s - now_s) if active else 0.0,
            applied_in_s=done.applied_in_s,
            idle_class=self._groups.has_idle_class(),
            conditions=self._conditions.all(),
            why=(arrangement.placement.why, *done.extra),
        )
        self._log(allocation, done.outcome)
        self.last = allocation
        return allocation

    def _in_force(
        self, done: PassResult, limit_bytes: int | None
    ) -> tuple[tuple[PoolAllocation, ...], tuple[PodAllocation, ...]]:
        """The pools and pods as the kernel has them; the last ones where nothing that they follow from is another."""
        layout, arrangement, outcome = self._groups.layout, done.decision.arrangement, done.outcome
        sources = (done.pods, arrangement, outcome.tree, outcome.granted)
        last = self._told
        if last is not None and last.limit_bytes == limit_bytes and all(map(is_, last.sources, sources)):
            return last.pools, last.pods
        pods = pods_in_force(done.pods, arrangement.owned, outcome, layout)
        at_rest = [pod for pod in pods if pod.uid not in arrangement.starting]  # one that starts is wider than its pool
        pools = pools_in_force(arrangement.pools, at_rest, outcome, layout, limit_bytes)
        show_sizes(pools)
        self._told = _Told(sources, limit_bytes, pools, pods)
        return pools, pods

    def _describe(self, done: PassResult, now_s: float) -> None:
        stage, arrangement = done.decision.stage, done.decision.arrangement
        for kind, problems in (("WriteFailed", done.outcome.problems), ("WritePending", done.outcome.pending)):
            self._conditions.set(kind, _in_words([f"{problem.group}: {problem.why}" for problem in problems]))
        for kind, pods in (("PodUnplaced", arrangement.problems), ("PodPlacedOtherwise", arrangement.otherwise)):
            self._conditions.set(kind, _in_words([f"{pod}: {why}" for pod, why in pods.items()]))
        lacking = ", ".join(done.outcome.lacking)
        self._conditions.set("KernelLacks", f"no file {lacking}: what needs it has no effect here" if lacking else "")
        self._conditions.set("SettingUnheeded", "; ".join(done.outcome.unheeded))
        mixed = mixed_pods(done.pods, self._groups.layout) if done.mode == "enforce" else []
        self._conditions.set("ClassLimitsLifted", mixed_text(_in_words(mixed)))
        foreign = self._groups.foreign(now_s)
        words = f"somebody else keeps writing {', '.join(foreign)}: left alone" if foreign else ""
        self._conditions.set("ForeignWriter", words)
        lasting = "the last sets are kept" if stage == "held" else "the reclaimed pool is at its floor"
        self._conditions.set("NoFreshAdvice", "" if stage == "applied" else f"no fresh advice: {lasting}")

    def _log(self, allocation: Allocation, outcome: WriteOutcome) -> None:
        last = self.last
        # The offer moves with every sample; only where CPUs moved is there something to read in a log.
        if last is not None and (last.status, last.pools) == (allocation.status, allocation.pools):
            return
        pools = {pool.pool: pool.cpus for pool in allocation.pools}
        log.info("allocation.changed", status=allocation.status, pools=pools, writes=outcome.writes,
                 based_on=allocation.based_on, applied_in_s=round(allocation.applied_in_s, 4))  # fmt: skip


def show_sizes(pools: Sequence[PoolAllocation]) -> None:
    """Set the gauge: the pools of the classes by name, all others as one.

    Tenants choose the names of the other pools; a label for each would stay in the registry forever.
    """
    sizes = dict.fromkeys((SHARE, RECLAIM), 0) | {OWN: 0}
    for pool in pools:
        name = pool.pool if pool.pool in CLASS_POOLS else OWN
        sizes[name] = sizes.get(name, 0) + len(CpuSet.parse(pool.cpus))
    for name in (*CLASS_POOLS, OWN):
        if name in sizes:
            telemetry.POOL_CPUS.labels(name).set(sizes[name])
        else:
            # A pool that is gone has no size: 0 would say that it is there and empty.
            telemetry.POOL_CPUS.remove(name)


def _in_words(problems: Sequence[str]) -> str:
    more = len(problems) - _SHOWN_PROBLEMS
    words = "; ".join(problems[:_SHOWN_PROBLEMS])
    return f"{words}; and {more} more" if more > 0 else words
