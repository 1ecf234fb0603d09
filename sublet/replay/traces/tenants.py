"""From series of CPU use to the frames of nodes: which tenants share a node, and what is said between two values.

The rules, all of them stated in docs/replay.md:
- Ids: one that is there twice gets a number, as files of one name in two folders give: they are two tenants.
- Packing: ids in the order of sha256("<seed>/<id>"), as many on a node as asked; what fills no whole node is left out.
- Between values: a value holds from its time to the next one (`hold`); so it does, but every tenant's values change at
  a moment of its own within the interval (`phase`); or the use goes in a straight line from one to the next (`linear`).
  A frame every `step_s`; it says the use of the time that ends with it.
- Zeros: nothing that runs uses no CPU at all. In a tenant's first minute a zero may be a start, and is left; after that
  it is what rounding left of a little, and becomes `IDLE_CORES`.
- Presence: a tenant is there from its first value until one interval after its last.
- Loads: the kernel's damping over 60 and 300 s of the use, as if every wanted core were one runnable task.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, NamedTuple

from services.advisor.core.model.containers import CpuColumns
from services.advisor.core.model.machine import Bounds
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading, PoolReading
from shared.core.cgroups.layout import RECLAIM, SHARE
from shared.errors import BadConfig
from sublet.replay.traces.columns import TenantColumns
from sublet.replay.traces.frames import Frame, ReplayFrame, Trace, node_name, sample_of

Between = Literal["hold", "linear", "phase"]
LOAD1_S, LOAD5_S = 60.0, 300.0
STEP_S = 30.0
MAX_FRAMES = 5_000_000
"""Most frames of one node: two months of a frame a second."""
MILLIS = 1000
IDLE_CORES, START_S = 0.001, 60.0
STEPS_AT_ONCE = 64


_BETWEEN: dict[Between, str] = {
    "hold": "held",
    "linear": "in a straight line",
    "phase": "held, each tenant's from a moment of its own",
}


@dataclass(frozen=True, slots=True)
class TenantSeries:
    """CPU use of one tenant: times in seconds, ascending, and cores."""

    id: str
    times_s: Sequence[float]
    cores: Sequence[float]


@dataclass(frozen=True, slots=True)
class Packing:
    """How series become nodes."""

    cpus: int = 48
    smt: bool = True
    pods_per_node: int | None = None
    """0: all on one node; None: as the format has it."""
    pod_cores: float = 4.0
    """What each tenant requests; where the series are in percent, what 100 % means."""
    swept: tuple[float, ...] = ()
    """Values of `pod_cores` that are replayed one after the other, each with nodes of its own; empty: that one."""
    seed: int = 0
    step_s: float | None = None
    """None: 30 s, or the time between two values where that is shorter."""
    between: Between = "hold"
    nodes: int = 0
    """At most so many nodes; 0: all."""

    def each(self) -> "list[Packing]":
        """One for each value of `pod_cores`."""
        return [replace(self, pod_cores=cores) for cores in self.swept] or [self]


def nodes_of(series: Sequence[TenantSeries], interval_s: float, packing: Packing, name: str) -> Iterator[Trace]:
    """One trace a node. `interval_s` is the usual time between two values.

    Raises:
        BadConfig: there are fewer series than a node takes, or the step does not fit the interval.
    """
    # By hash, so that a seed gives another mix, and the same one in every Python.
    ordered = sorted(
        _numbered(series), key=lambda s: (hashlib.sha256(f"{packing.seed}/{s.id}".encode()).digest(), s.id)
    )
    size = packing.pods_per_node or len(ordered)
    if len(ordered) < size or not ordered:
        raise BadConfig(
            f"{name}: {len(ordered)} tenants, --pods-per-node {size}: not even one node is full; ask for fewer",
            reason="invalid",
        )
    step_s = _step_s(name, interval_s, packing.step_s)
    rule = (
        f"{size} tenants of {packing.pod_cores:g} cores on {packing.cpus} CPUs, seed {packing.seed}; a frame every "
        f"{step_s:g} s, values {_BETWEEN[packing.between]}"
    )
    count = len(ordered) // size
    sweep = f"-{packing.pod_cores:g}-cores" if packing.swept else ""
    for number in range(min(count, packing.nodes or count)):
        members = sorted(ordered[number * size : (number + 1) * size], key=lambda s: s.id)
        node = f"{node_name(name)}{sweep}-{number + 1:0{len(str(count))}}"
        resampled = _Resampled(node, members, interval_s, step_s, packing)
        yield Trace(node, packing.cpus, packing.smt, resampled.frames, rule=rule, columns=resampled.columns)


def _numbered(series: Sequence[TenantSeries]) -> Iterator[TenantSeries]:
    """The series, each with an id of its own."""
    taken = {one.id for one in series}
    seen: dict[str, int] = {}
    for one in series:
        number = seen[one.id] = seen.get(one.id, 0) + 1
        if number == 1:
            yield one
            continue
        while (found := f"{one.id}-{number}") in taken:
            number += 1
        seen[one.id] = number
        taken.add(found)
        yield replace(one, id=found)


def _step_s(name: str, interval_s: float, asked_s: float | None) -> float:
    if asked_s is None:
        return min(STEP_S, interval_s)
    if asked_s > interval_s:
        raise BadConfig(
            f"--step {asked_s:g}: {name} has a value every {interval_s:g} s: a longer step would pass over some",
            reason="invalid",
        )
    return asked_s


class _Step(NamedTuple):
    """The time that a frame speaks for, and how much of the loads before it is left at its end."""

    covers_s: float
    from_s: float
    to_s: float
    kept1: float
    kept5: float


class _Tenant:
    """One tenant while its node is replayed."""

    def __init__(self, series: TenantSeries, packing: Packing, interval_s: float) -> None:
        self._series, self._linear = series, packing.between == "linear"
        self._end_s = series.times_s[-1] + interval_s
        self._phase_s = interval_s * _fraction(f"{packing.seed}/{series.id}") if packing.between == "phase" else 0.0
        self.pod = _pod(series.id, packing.pod_cores)
        self.begin()

    def begin(self) -> None:
        """Begin at the first value."""
        self._load1: float | None = None
        self._load5 = 0.0
        self._index = 0
        """Of the value that holds, or from which the straight line goes."""

    def figures(self, steps: Iterable[_Step]) -> CpuColumns:
        """Use and loads, a value for each of these steps; None where it is not there. To be asked in order."""
        first_s, end_s, load1, load5 = self._series.times_s[0], self._end_s, self._load1, self._load5
        uses, loads1, loads5 = list[float | None](), list[float | None](), list[float | None]()
        # The value that holds, until the next one does.
        held, until_s = 0.0, -math.inf
        for _, from_s, to_s, kept1, kept5 in steps:
            at_s = (from_s + to_s) / 2 if self._linear else from_s
            if not first_s <= at_s < end_s:
                uses.append(None)
                loads1.append(None)
                loads5.append(None)
                continue
            if at_s - self._phase_s >= until_s:
                held, until_s = self._held(at_s - self._phase_s)
            use = self._between(at_s) if self._linear else held
            if use == 0 and from_s - first_s >= START_S:
                use = IDLE_CORES
            if load1 is None:
                load1 = load5 = use
            else:
                load1 = use + (load1 - use) * kept1
                load5 = use + (load5 - use) * kept5
            uses.append(use)
            loads1.append(load1)
            loads5.append(load5)
        self._load1, self._load5 = load1, load5
        return CpuColumns(uses, loads1, loads5)

    def _held(self, at_s: float) -> tuple[float, float]:
        """The value that holds at a moment, and until when. By its own phase a tenant's first value holds for longer,
        its last one for less: it comes and goes as ever."""
        times, index = self._series.times_s, self._index
        while index + 1 < len(times) and times[index + 1] <= at_s:
            index += 1
        self._index = index
        return self._series.cores[index], times[index + 1] if index + 1 < len(times) else math.inf

    def _between(self, at_s: float) -> float:
        """The use on the straight line from the value that holds to the next one."""
        times, cores, index = self._series.times_s, self._series.cores, self._index
        if index + 1 == len(times):
            return cores[index]
        part = (at_s - times[index]) / (times[index + 1] - times[index])
        return cores[index] + (cores[index + 1] - cores[index]) * part


def _fraction(text: str) -> float:
    """A number of 0 to 1 that is the text's own, in every Python."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6]) / 2**48


def _pod(tenant: str, request_cores: float) -> Pod:
    uid = hashlib.sha256(tenant.encode()).hexdigest()[:32]
    container = Container(name="main", cpu_request_millis=round(request_cores * MILLIS))
    return Pod(uid=uid, name=node_name(tenant), containers=(container,))


class _Resampled:
    """The frames of one node: one at the start, then one after each step."""

    def __init__(
        self, node: str, members: Sequence[TenantSeries], interval_s: float, step_s: float, packing: Packing
    ) -> None:
        self._node, self._step_s, self._cpus, self._online = node, step_s, packing.cpus, f"0-{packing.cpus - 1}"
        self._tenants = [_Tenant(series, packing, interval_s) for series in members]
        self._first_s = min(series.times_s[0] for series in members)
        length_s = max(series.times_s[-1] for series in members) + interval_s - self._first_s
        self._steps = max(1, round(length_s / step_s))
        if self._steps > MAX_FRAMES:
            raise BadConfig(
                f"{node}: {self._steps} frames in {length_s:g} s, at most {MAX_FRAMES}: look at the times in the file, "
                "or ask for a longer --step",
                reason="invalid",
            )

    def frames(self) -> Iterator[Frame]:
        """The frames as samples, once."""
        for number, (step, found) in enumerate(self._figures()):
            sample = self._sample(number, step.to_s - self._first_s, found)
            yield Frame(number * self._step_s, step.covers_s, sample)

    def columns(self) -> Iterator[ReplayFrame]:
        """The frames without samples, once."""
        nothing = [0.0] * len(self._tenants)
        everybody = self._sample(0, 0.0, CpuColumns(nothing, nothing, nothing))
        columns = TenantColumns(everybody, Bounds.of(self._cpus, smt=True))
        for number, (step, found) in enumerate(self._figures()):
            yield columns.frame(number * self._step_s, step.covers_s, _used(found), found)

    def _figures(self) -> Iterator[tuple[_Step, CpuColumns]]:
        """Each step with the figures of all tenants: made tenant by tenant for many steps, which is quicker."""
        steps = self._all_steps()
        for tenant in self._tenants:
            tenant.begin()
        while some := list(islice(steps, STEPS_AT_ONCE)):
            found = [tenant.figures(some) for tenant in self._tenants]
            # Turned around: from a value for each step to one for each tenant.
            uses, loads1, loads5 = (zip(*column, strict=True) for column in zip(*found, strict=True))
            for step, *columns in zip(some, uses, loads1, loads5, strict=True):
                yield step, CpuColumns(*columns)

    def _all_steps(self) -> Iterator[_Step]:
        yield _Step(0.0, self._first_s, self._first_s, 1.0, 1.0)
        for number in range(1, self._steps + 1):
            from_s, to_s = self._first_s + (number - 1) * self._step_s, self._first_s + number * self._step_s
            kept1, kept5 = math.exp(-(to_s - from_s) / LOAD1_S), math.exp(-(to_s - from_s) / LOAD5_S)
            yield _Step(self._step_s, from_s, to_s, kept1, kept5)

    def _sample(self, seq: int, at_s: float, found: CpuColumns) -> NodeSample:
        used = _used(found)
        pods = [
            PodReading(
                pod=tenant.pod,
                containers=(ContainerReading(name="main", cpu_usage_cores=use, load1=load1, load5=load5),),
            )
            for tenant, use, load1, load5 in zip(self._tenants, *found, strict=True)
            if use is not None
        ]
        fields = {
            "window_s": self._step_s,
            "node_reading": NodeReading(online_cpus=self._online, cpu_usage_cores=used),
            "pools": (PoolReading(pool=SHARE, cpu_usage_cores=used), PoolReading(pool=RECLAIM)),
            "pods": tuple(pods),
        }
        return sample_of(self._node, seq, at_s, fields)


def _used(found: CpuColumns) -> float:
    return math.fsum([use for use in found.usage if use is not None])
