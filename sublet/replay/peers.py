"""The sizing formulas of Katalyst and Koordinator, for comparison on the same frames.

Formulas and their default intervals only: what their agents lose on the way (polling of metrics, delays of reports and
writes: docs/facts/katalyst-cpu.md#delays-on-the-way, docs/facts/koordinator.md#delays-of-koordinator) is not
counted against them.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from services.advisor.core.demand.cpu import largest_of_each
from services.advisor.core.demand.suppress import (
    SUPPRESS_THRESHOLD_PERCENT,
    NodeCpuUse,
    SuppressRule,
    WorkloadUse,
    best_effort_budget_millis,
)
from services.advisor.core.model.containers import once, once_beside_cpu
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, View, containers_of, cpu_columns
from shared.contracts.pod import QosClass
from shared.core.pydantic_words import first_fault
from shared.errors import BadConfig
from sublet.replay.contender import Decider, Sizes
from sublet.replay.traces.frames import FrameLoad, Trace

KATALYST_ROUND_S = 5.0
KATALYST_FLOOR_CPUS = 4

SUPPRESS_TICK_S = 1.0
SUPPRESS_FLOOR_CPUS = 2
SUPPRESS_GROWTH = 0.1
REPORT_S = 60.0
USAGE_WINDOW_S = 300.0
RESYNC_S = 300.0
DIFF_THRESHOLD = 0.1
_HIGHER_PRIORITY: tuple[QosClass, ...] = ("system_cores", "dedicated_cores", "shared_cores")


class PeerKnobs(BaseModel):
    """What an operator of a peer may set; the defaults are the peer's own."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class KatalystKnobs(PeerKnobs):
    """Katalyst's settings (docs/facts/katalyst-cpu.md#regulator, docs/facts/katalyst-cpu.md#regions-and-reserves)."""

    factor: Annotated[float, Field(ge=1, le=10)] = 1.25
    """On a container's usage."""
    reserve: Annotated[int, Field(ge=0, le=8192)] = 4
    """CPUs on top of what is required."""
    up: Annotated[int, Field(ge=1, le=8192)] = 10
    """Most CPUs that tenants get in a round of 5 s."""
    down: Annotated[int, Field(ge=1, le=8192)] = 2
    """Most CPUs that they lose in a round."""
    down_period: Annotated[float, Field(ge=0, le=86400)] = 30.0
    """Seconds from one loss to the next."""


class KoordinatorKnobs(PeerKnobs):
    """Koordinator's two thresholds, in percent of the node (docs/facts/koordinator-cpu-suppress.md#the-budget)."""

    suppress: Annotated[int, Field(ge=0, le=100)] = SUPPRESS_THRESHOLD_PERCENT
    """How busy the node may be: `cpuSuppressThresholdPercent`."""
    reclaim: Annotated[int, Field(ge=0, le=100)] = 60
    """How much of it is counted as batch-cpu and tenants' use together: `cpuReclaimThresholdPercent`."""


KATALYST_DEFAULTS, KOORDINATOR_DEFAULTS = KatalystKnobs(), KoordinatorKnobs()


def katalyst_estimate_cores(container: ContainerView, factor: float = KATALYST_DEFAULTS.factor) -> float:
    """Estimate of one shared container: max(factor x usage, load1, load5) over what is above 0, else request, else 4.

    Facts: docs/facts/katalyst-cpu.md#estimate-of-a-container.
    """
    cpu = container.cpu
    usage = None if cpu.usage_cores is None else factor * cpu.usage_cores
    known = [figure for figure in (usage, cpu.load1, cpu.load5) if figure is not None and figure > 0]
    return max(known) if known else container.request_cores or 4.0


@once
def katalyst_required_cores(containers: Sequence[ContainerView], factor: float) -> float:
    """What the share pool requires: estimates of shared containers, requests of dedicated ones."""
    shared = containers_of(containers, ("shared_cores",))
    found = largest_of_each(factor, cpu_columns(shared))
    # The usual case is that every figure is there.
    if found is None:
        found = tuple([katalyst_estimate_cores(container, factor) for container in shared])
    return math.fsum(found) + _dedicated_cores(containers)


@once_beside_cpu
def _dedicated_cores(containers: Sequence[ContainerView]) -> float:
    return math.fsum([one.request_cores for one in containers if one.qos == "dedicated_cores"])


@dataclass(frozen=True, slots=True)
class KatalystPool:
    """The share pool of one node, and when it last became smaller."""

    size: int = 0
    last_down_s: float = -math.inf
    fresh: bool = True
    """No size is in force yet: nothing limits the first step."""


@dataclass(frozen=True, slots=True)
class KatalystRegulator:
    """The regulator of one machine: even rounding, then step limits, then clamp to 4 … cpus - 4.

    Facts: docs/facts/katalyst-cpu.md#regulator: up at most 10 a round, down at most 2 in 30 s.
    """

    cpus: int
    smt: bool
    knobs: KatalystKnobs = KATALYST_DEFAULTS

    def round(self, pool: KatalystPool, required_cores: float, now_s: float) -> KatalystPool:
        """The pool after one round."""
        knobs, wanted = self.knobs, math.ceil(required_cores + self.knobs.reserve)
        wanted += wanted % 2 if self.smt else 0
        if not pool.fresh:
            if wanted < pool.size and now_s < pool.last_down_s + knobs.down_period:
                wanted = pool.size
            wanted = min(max(wanted, pool.size - knobs.down), pool.size + knobs.up)
        size = max(min(wanted, self.cpus - KATALYST_FLOOR_CPUS), min(KATALYST_FLOOR_CPUS, self.cpus))
        return KatalystPool(size, now_s if size < pool.size else pool.last_down_s, fresh=False)


class Katalyst:
    """Canonical policy and regulator in rounds of 5 s; the reclaimed pool is the rest, and all of it is offered."""

    def __init__(self, trace: Trace, knobs: KatalystKnobs = KATALYST_DEFAULTS) -> None:
        self._regulator = KatalystRegulator(trace.cpus, trace.smt, knobs)
        self._pool = KatalystPool()
        self._next_s = -math.inf

    def decide(self, view: View, system_cores: float, now_s: float) -> Sizes:  # noqa: ARG002
        """See `Decider`: all rounds that are due, on the figures of this frame."""
        cpus = view.bounds.cpus
        required = katalyst_required_cores(view.containers, self._regulator.knobs.factor)
        self._next_s = max(self._next_s, now_s) if self._next_s == -math.inf else self._next_s
        while self._next_s <= now_s:
            self._pool = self._regulator.round(self._pool, required, self._next_s)
            self._next_s += KATALYST_ROUND_S
        rest = cpus - self._pool.size
        return Sizes(self._pool.size, rest, rest)


def suppressed_cpus(
    cpus: int, load: FrameLoad, before: int | None, ticks: int, threshold_percent: int = SUPPRESS_THRESHOLD_PERCENT
) -> int:
    """CPUs of best-effort pods: a part of the node less what everybody else uses, at least 2.

    Growth is at most a tenth of the CPUs in a tick of 1 s; shrinking has no limit.

    Facts: docs/facts/koordinator-cpu-suppress.md#the-policy-cpuset.
    """
    tenants = WorkloadUse(round(load.tenants_cores * 1000), best_effort=False)
    node = NodeCpuUse(cpus * 1000, tenants.used_millis + round(load.system_cores * 1000))
    budget_millis = best_effort_budget_millis(node, (tenants,), SuppressRule(threshold_percent))
    wanted = max(SUPPRESS_FLOOR_CPUS, math.ceil(budget_millis / 1000))
    if before is not None:
        wanted = min(wanted, before + ticks * math.ceil(SUPPRESS_GROWTH * cpus))
    return min(wanted, cpus)


def batch_allocatable_millis(cpus: int, load: FrameLoad, reclaim_percent: int = KOORDINATOR_DEFAULTS.reclaim) -> int:
    """batch-cpu of a node: a part of the capacity less system use and the use of pods of higher priority.

    Facts: docs/facts/koordinator-batch.md#amount-of-a-batch-resource.
    """
    used_millis = round(1000 * load.system_cores) + round(1000 * load.tenants_cores)
    return max(0, cpus * 10 * reclaim_percent - used_millis)


@once
def koordinator_used_cores(containers: Sequence[ContainerView]) -> tuple[float, float]:
    """What pods of higher priority use as far as it is measured, and with the requests of those that are not."""
    tenants = containers_of(containers, _HIGHER_PRIORITY)
    usage = cpu_columns(tenants).usage
    used = math.fsum([one or 0.0 for one in usage])
    if None not in usage:
        return used, used
    counted = [c.request_cores if one is None else one for c, one in zip(tenants, usage, strict=True)]
    return used, math.fsum(counted)


class Koordinator:
    """CPU suppression by the last sample, and batch-cpu by the mean use of five minutes, reported each minute."""

    def __init__(self, trace: Trace, knobs: KoordinatorKnobs = KOORDINATOR_DEFAULTS) -> None:  # noqa: ARG002
        self._knobs = knobs
        self._cpus: int | None = None
        self._ticked_s = -math.inf
        self._window: deque[tuple[float, float, float]] = deque()
        self._next_report_s = -math.inf
        self._synced_s = -math.inf
        self._batch_millis: int | None = None

    def decide(self, view: View, system_cores: float, now_s: float) -> Sizes:
        """See `Decider`."""
        cpus = view.bounds.cpus
        used, counted = koordinator_used_cores(view.containers)
        load, percent = FrameLoad(used, system_cores), self._knobs.suppress
        if self._cpus is None:
            self._cpus, self._ticked_s = suppressed_cpus(cpus, load, None, 0, percent), now_s
        elif (ticks := int((now_s - self._ticked_s) / SUPPRESS_TICK_S)) > 0:
            self._cpus = suppressed_cpus(cpus, load, self._cpus, ticks, percent)
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
        new, old = batch_allocatable_millis(cpus, FrameLoad(used, system), self._knobs.reclaim), self._batch_millis
        if old is None or abs(new - old) > old * DIFF_THRESHOLD or now_s >= self._synced_s + RESYNC_S:
            self._batch_millis, self._synced_s = new, now_s


@dataclass(frozen=True)
class PeerContender:
    """A peer's formulas as a row of the comparison."""

    name: str
    make: Callable[[Trace, Any], Decider]
    knobs: PeerKnobs

    def bounds(self, trace: Trace) -> Bounds:
        """See `Contender`."""
        return Bounds.of(trace.cpus, smt=trace.smt)

    def start(self, trace: Trace) -> Decider:
        """See `Contender`."""
        return self.make(trace, self.knobs)


PEERS: Mapping[str, PeerContender] = {
    peer.name: peer
    for peer in (
        PeerContender("katalyst", Katalyst, KATALYST_DEFAULTS),
        PeerContender("koordinator", Koordinator, KOORDINATOR_DEFAULTS),
    )
}


def peer_of(name: str, row: str, given: Mapping[str, Any]) -> PeerContender:
    """The peer of that name as the row of that name, with these knobs.

    Raises:
        BadConfig: there is no such knob, or a value is out of its bounds.
    """
    peer = PEERS[name]
    try:
        knobs = type(peer.knobs).model_validate(given)
    except ValidationError as error:
        known = ", ".join(type(peer.knobs).model_fields)
        raise BadConfig(
            f"--peer {row}: {first_fault(error, whole='peer')}; its knobs are {known}", reason="invalid"
        ) from None
    return replace(peer, name=row, knobs=knobs)
