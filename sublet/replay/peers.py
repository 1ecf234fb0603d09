"""The sizing formulas of Katalyst and Koordinator, for comparison on the same frames.

Formulas and their default intervals only: what their agents lose on the way (polling of metrics, delays of reports and
writes: docs/facts/katalyst-cpu.md#delays-on-the-way, docs/facts/koordinator.md#delays-of-koordinator) is not
counted against them.
"""

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from services.advisor.core.demand.suppress import NodeCpuUse, SuppressRule, WorkloadUse, best_effort_budget_millis
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, View
from sublet.replay.contender import Decider, Sizes
from sublet.replay.traces.frames import Trace

KATALYST_ROUND_S = 5.0
KATALYST_RESERVE_CPUS = 4
KATALYST_UP_CPUS = 10
KATALYST_DOWN_CPUS = 2
KATALYST_DOWN_PERIOD_S = 30.0

SUPPRESS_TICK_S = 1.0
SUPPRESS_FLOOR_CPUS = 2
SUPPRESS_GROWTH = 0.1
RECLAIM_PERCENT = 60
REPORT_S = 60.0
USAGE_WINDOW_S = 300.0
RESYNC_S = 300.0
DIFF_THRESHOLD = 0.1


def katalyst_estimate_cores(container: ContainerView) -> float:
    """Estimate of one shared container: max(1.25 x usage, load1, load5) over what is above 0, else request, else 4.

    Facts: docs/facts/katalyst-cpu.md#estimate-of-a-container.
    """
    cpu = container.cpu
    usage = None if cpu.usage_cores is None else 1.25 * cpu.usage_cores
    known = [figure for figure in (usage, cpu.load1, cpu.load5) if figure is not None and figure > 0]
    return max(known) if known else container.request_cores or 4.0


@dataclass(frozen=True, slots=True)
class KatalystPool:
    """The share pool of one node, and when it last became smaller."""

    size: int = 0
    last_down_s: float = -math.inf
    fresh: bool = True
    """No size is in force yet: nothing limits the first step."""


def katalyst_round(pool: KatalystPool, required_cores: float, cpus: int, smt: bool, now_s: float) -> KatalystPool:
    """One round of the regulator: even rounding, then step limits, then clamp to 4 … cpus - 4.

    Facts: docs/facts/katalyst-cpu.md#regulator: up at most 10 a round, down at most 2 in 30 s.
    """
    wanted = math.ceil(required_cores + KATALYST_RESERVE_CPUS)
    wanted += wanted % 2 if smt else 0
    if not pool.fresh:
        if wanted < pool.size and now_s < pool.last_down_s + KATALYST_DOWN_PERIOD_S:
            wanted = pool.size
        wanted = min(max(wanted, pool.size - KATALYST_DOWN_CPUS), pool.size + KATALYST_UP_CPUS)
    size = max(min(wanted, cpus - KATALYST_RESERVE_CPUS), min(KATALYST_RESERVE_CPUS, cpus))
    return KatalystPool(size, now_s if size < pool.size else pool.last_down_s, fresh=False)


class Katalyst:
    """Canonical policy and regulator in rounds of 5 s; the reclaimed pool is the rest, and all of it is offered."""

    def __init__(self, trace: Trace) -> None:
        self._smt = trace.smt
        self._pool = KatalystPool()
        self._next_s = -math.inf

    def decide(self, view: View, system_cores: float, now_s: float) -> Sizes:  # noqa: ARG002
        """See `Decider`: all rounds that are due, on the figures of this frame."""
        cpus = view.bounds.cpus
        containers = view.of("shared_cores")
        required = math.fsum(katalyst_estimate_cores(c) for c in containers)
        required += math.fsum(c.request_cores for c in view.of("dedicated_cores"))
        self._next_s = max(self._next_s, now_s) if self._next_s == -math.inf else self._next_s
        while self._next_s <= now_s:
            self._pool = katalyst_round(self._pool, required, cpus, self._smt, self._next_s)
            self._next_s += KATALYST_ROUND_S
        rest = cpus - self._pool.size
        return Sizes(self._pool.size, rest, rest)


def suppressed_cpus(cpus: int, tenants_cores: float, system_cores: float, before: int | None, ticks: int) -> int:
    """CPUs of best-effort pods: 65 % of the node less what everybody else uses, at least 2.

    Growth is at most a tenth of the CPUs in a tick of 1 s; shrinking has no limit.

    Facts: docs/facts/koordinator-cpu-suppress.md#the-policy-cpuset.
    """
    tenants = WorkloadUse(round(tenants_cores * 1000), best_effort=False)
    node = NodeCpuUse(cpus * 1000, tenants.used_millis + round(system_cores * 1000))
    budget_millis = best_effort_budget_millis(node, (tenants,), SuppressRule())
    wanted = max(SUPPRESS_FLOOR_CPUS, math.ceil(budget_millis / 1000))
    if before is not None:
        wanted = min(wanted, before + ticks * math.ceil(SUPPRESS_GROWTH * cpus))
    return min(wanted, cpus)


def batch_allocatable_millis(cpus: int, system_cores: float, high_priority_cores: float) -> int:
    """batch-cpu of a node: capacity less a margin of 40 %, system use and the use of pods of higher priority.

    Facts: docs/facts/koordinator-batch.md#amount-of-a-batch-resource.
    """
    return max(0, cpus * 10 * RECLAIM_PERCENT - round(1000 * system_cores) - round(1000 * high_priority_cores))


class Koordinator:
    """CPU suppression by the last sample, and batch-cpu by the mean use of five minutes, reported each minute."""

    def __init__(self, trace: Trace) -> None:  # noqa: ARG002
        self._cpus: int | None = None
        self._ticked_s = -math.inf
        self._window: deque[tuple[float, float, float]] = deque()
        self._next_report_s = -math.inf
        self._synced_s = -math.inf
        self._batch_millis: int | None = None

    def decide(self, view: View, system_cores: float, now_s: float) -> Sizes:
        """See `Decider`."""
        cpus = view.bounds.cpus
        tenants = [c for c in view.containers if c.qos != "reclaimed_cores"]
        used = math.fsum(c.cpu.usage_cores or 0.0 for c in tenants)
        counted = math.fsum(c.request_cores if c.cpu.usage_cores is None else c.cpu.usage_cores for c in tenants)
        if self._cpus is None:
            self._cpus, self._ticked_s = suppressed_cpus(cpus, used, system_cores, None, 0), now_s
        elif (ticks := int((now_s - self._ticked_s) / SUPPRESS_TICK_S)) > 0:
            self._cpus = suppressed_cpus(cpus, used, system_cores, self._cpus, ticks)
            self._ticked_s += ticks * SUPPRESS_TICK_S
        self._observe(now_s, counted, system_cores)
        self._report(cpus, now_s)
        return Sizes(cpus, self._cpus, (self._batch_millis or 0) / 1000, shared_cores=self._cpus)

    def _observe(self, now_s: float, used_cores: float, system_cores: float) -> None:
        self._window.append((now_s, used_cores, system_cores))
        while self._window[0][0] <= now_s - USAGE_WINDOW_S and len(self._window) > 1:
            self._window.popleft()

    def _report(self, cpus: int, now_s: float) -> None:
        """A report each minute; it is published when it differs by more than a tenth, or after five minutes."""
        if now_s < self._next_report_s:
            return
        self._next_report_s = now_s + REPORT_S
        count = len(self._window)
        used = math.fsum(used for _, used, _ in self._window) / count
        system = math.fsum(system for _, _, system in self._window) / count
        new, old = batch_allocatable_millis(cpus, system, used), self._batch_millis
        if old is None or abs(new - old) > old * DIFF_THRESHOLD or now_s >= self._synced_s + RESYNC_S:
            self._batch_millis, self._synced_s = new, now_s


@dataclass(frozen=True)
class PeerContender:
    """A peer's formulas as a row of the comparison."""

    name: str
    make: Callable[[Trace], Decider]

    def bounds(self, trace: Trace) -> Bounds:
        """See `Contender`."""
        return Bounds.of(trace.cpus, smt=trace.smt)

    def start(self, trace: Trace) -> Decider:
        """See `Contender`."""
        return self.make(trace)


PEERS: Mapping[str, PeerContender] = {
    peer.name: peer for peer in (PeerContender("katalyst", Katalyst), PeerContender("koordinator", Koordinator))
}


def peer_row(name: str, taken: Collection[str]) -> PeerContender:
    """The peer of that name; where a policy's row has the name already, this one says what it is."""
    peer = PEERS[name]
    return replace(peer, name=f"{name} (peer)") if name in taken else peer
