"""What qrm says after a pass: the allocation as the kernel has it, conditions, figures, and a line where it changed."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from services.qrm.adapters.kernel.groups import Groups
from services.qrm.adapters.kernel.writer import Outcome
from services.qrm.conditions import Conditions
from services.qrm.core.placement.arrangement import Arrangement
from services.qrm.core.standing import Stage, Standing, offered, offered_by_numa
from services.qrm.core.statement import pods_in_force, pools_in_force, status_of
from shared import telemetry
from shared.contracts.advice import Mode
from shared.contracts.allocation import Allocation, PoolAllocation
from shared.contracts.envelope import Reason
from shared.contracts.pod import Pod
from shared.core.cgroups.layout import RECLAIM, RESERVE, SHARE
from shared.core.cpus.cpuset import CpuSet
from shared.wire import Wire

log = structlog.get_logger()

_SHOWN_PROBLEMS = 3
CLASS_POOLS = (SHARE, RECLAIM, RESERVE)
OWN = "own"
"""How the gauge names all pools together that pods have beside those of the classes."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass: what should be in force, by which advice, and what came of it."""

    stage: Stage
    mode: Mode
    standing: Standing | None
    what: Arrangement
    pods: Sequence[Pod]
    outcome: Outcome
    extra: Sequence[Reason]
    applied_in_s: float


class Teller:
    """Makes the allocations; `last` is the newest."""

    def __init__(self, wire: Wire, groups: Groups, conditions: Conditions) -> None:
        self._wire, self._groups, self._conditions = wire, groups, conditions
        self._offered = (0, 0)
        self.last: Allocation | None = None

    def tell(self, done: Pass, now_s: float) -> Allocation:
        """The allocation after a pass."""
        self._describe(done, now_s)
        limit = self._groups.memory_limit()
        kernel = (done.outcome.tree, done.outcome.granted, self._groups.layout)
        pods = pods_in_force(done.pods, done.what.owned, *kernel)
        at_rest = [pod for pod in pods if pod.uid not in done.what.starting]  # who starts is wider than his pool
        pools = pools_in_force(done.what.pools, at_rest, *kernel, limit)
        show_sizes(pools)
        standing = done.standing
        advice = standing.advice if standing else None
        reclaim = next((pool for pool in pools if pool.pool == RECLAIM), None)
        reclaim_cpus = CpuSet.parse(reclaim.cpus) if reclaim else CpuSet()
        if done.mode == "enforce":
            self._offered = offered(advice, len(reclaim_cpus), limit)
        as_wanted = not done.outcome.problems and not self._groups.foreign(now_s)
        allocation = self._wire.stamp(
            Allocation,
            based_on=(*advice.based_on, advice.ref) if advice else (),
            status=status_of(done.stage, done.mode, readable=reclaim is not None, as_wanted=as_wanted),
            mode=done.mode,
            pools=pools,
            pods=pods,
            reclaimed_cpu_millis=self._offered[0],
            reclaimed_memory_bytes=self._offered[1],
            reclaimed_numas=offered_by_numa(self._offered[0], reclaim_cpus, self._groups.numas),
            lease_left_s=max(0.0, standing.lease_until_s - now_s) if standing else 0.0,
            applied_in_s=done.applied_in_s,
            conditions=self._conditions.all(),
            why=(done.what.placement.why, *done.extra),
        )
        self._log(allocation, done.outcome)
        self.last = allocation
        return allocation

    def _describe(self, done: Pass, now_s: float) -> None:
        self._conditions.set("WriteFailed", _in_words([f"{p.group}: {p.why}" for p in done.outcome.problems]))
        self._conditions.set("PodUnplaced", _in_words([f"{pod}: {why}" for pod, why in done.what.problems.items()]))
        foreign = self._groups.foreign(now_s)
        words = f"somebody else keeps writing {', '.join(foreign)}: left alone" if foreign else ""
        self._conditions.set("ForeignWriter", words)
        lasting = "the last sets are kept" if done.stage == "held" else "the reclaimed pool is at its floor"
        self._conditions.set("NoFreshAdvice", "" if done.stage == "applied" else f"no fresh advice: {lasting}")

    def _log(self, allocation: Allocation, outcome: Outcome) -> None:
        last = self.last
        if last is not None and (last.status, last.pools) == (allocation.status, allocation.pools):
            return
        pools = {pool.pool: pool.cpus for pool in allocation.pools}
        log.info("allocation.changed", status=allocation.status, pools=pools, writes=outcome.writes,
                 based_on=allocation.based_on, applied_in_s=round(allocation.applied_in_s, 4))  # fmt: skip


def show_sizes(pools: Sequence[PoolAllocation]) -> None:
    """The pools of the classes by name, all others as one: their names are the tenants', and would stay for ever."""
    sizes = dict.fromkeys((SHARE, RECLAIM), 0) | {OWN: 0}
    for pool in pools:
        name = pool.pool if pool.pool in CLASS_POOLS else OWN
        sizes[name] = sizes.get(name, 0) + len(CpuSet.parse(pool.cpus))
    for name in (*CLASS_POOLS, OWN):
        if name in sizes:
            telemetry.POOL_CPUS.labels(name).set(sizes[name])
        else:
            telemetry.POOL_CPUS.remove(name)


def _in_words(problems: Sequence[str]) -> str:
    more = len(problems) - _SHOWN_PROBLEMS
    words = "; ".join(problems[:_SHOWN_PROBLEMS])
    return f"{words}; and {more} more" if more > 0 else words
