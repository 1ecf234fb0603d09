"""The table of current use by pools and pods, shared by `status` and `top`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shared.contracts.allocation import PodAllocation
from shared.contracts.sample import GroupReading, PodReading
from shared.core.cgroups.layout import POOL_OF_QOS
from shared.core.cpus.cpuset import CpuSet
from sublet.output import table_of
from sublet.views.facts import NodeFacts
from sublet.views.figures import UNKNOWN, cores, memory, number

if TYPE_CHECKING:
    from rich.table import Table

_BAR = 5
_CPUS = 1
"""The column of CPU lists: only it may be folded."""


@dataclass(frozen=True, slots=True)
class Usage:
    """One line: a pool, or a pod in it. None: not known."""

    name: str
    cpus: str | None
    cpu_usage_cores: float | None
    load1: float | None
    memory_bytes: int | None
    cpi: float | None = None
    """Cycles per instruction."""


def pool_rows(facts: NodeFacts) -> list[Usage]:
    """The pools with what their cgroups use, in the order of the allocation; without those that hold nothing."""
    readings = {reading.pool: reading for reading in (facts.sample.pools if facts.sample else ())}
    allocated = facts.allocation.pools if facts.allocation else ()
    cpus = {p.pool: p.cpus for p in allocated}
    rows = [_row(name, cpus.get(name), [readings[name]] if name in readings else []) for name in {**cpus, **readings}]
    return [row for row in rows if row.cpus or row.cpu_usage_cores or row.memory_bytes]


def pod_rows(facts: NodeFacts, pool: str) -> list[Usage]:
    """The pods of a pool, ascending by namespace/name."""
    if facts.sample is None:
        return []
    allocated = {p.uid: p for p in (facts.allocation.pods if facts.allocation else ())}
    pods = [p for p in facts.sample.pods if _pool_of(p, allocated) == pool]
    return [
        _row(p.pod.key, allocated[p.pod.uid].cpus if p.pod.uid in allocated else None, p.containers)
        for p in sorted(pods, key=lambda p: p.pod.key)
    ]


def pod_usage(reading: PodReading, cpus: str | None) -> Usage:
    """One pod's line."""
    return _row(reading.pod.key, cpus, reading.containers)


def usage_rows(facts: NodeFacts, *, pods: bool) -> list[Usage]:
    """The pools, each with its pods set in below it where they are wanted."""
    rows = []
    for pool in pool_rows(facts):
        rows.append(pool)
        rows += [replace(pod, name=f"  {pod.name}") for pod in (pod_rows(facts, pool.name) if pods else ())]
    return rows


def table(title: str, rows: Iterable[Usage]) -> "Table":
    """The rows as a table, with the title above their names; CPI where it is counted."""
    rows = list(rows)
    header = [title, "CPUs", "count", "CPU used", "of its CPUs", "load1", "memory"]
    cells = [list(_cells(row)) for row in rows]
    if any(row.cpi is not None for row in rows):
        header.append("CPI")
        cells = [[*one, number(row.cpi)] for one, row in zip(cells, rows, strict=True)]
    return table_of(header, cells, right=(2, 3, 5, 6, 7), folded=(_CPUS,))


def _cells(row: Usage) -> Sequence[str]:
    count = UNKNOWN if row.cpus is None else str(len(CpuSet.parse(row.cpus)))
    figures = (count, cores(row.cpu_usage_cores), bar(row), cores(row.load1), memory(row.memory_bytes))
    return (row.name, row.cpus or UNKNOWN, *figures)


def bar(row: Usage) -> str:
    """How much of its CPUs is in use: a bar that needs no colour, and percent; more than all of them gets a "+"."""
    if row.cpu_usage_cores is None or not row.cpus:
        return UNKNOWN
    ratio = row.cpu_usage_cores / len(CpuSet.parse(row.cpus))
    filled = min(_BAR, round(ratio * _BAR))
    return f"{'#' * filled:.<{_BAR}}{'+' if ratio > 1 else ' '}{ratio:4.0%}"


def _pool_of(reading: PodReading, allocated: Mapping[str, PodAllocation]) -> str:
    entry = allocated.get(reading.pod.uid)
    return entry.pool if entry else POOL_OF_QOS[reading.pod.qos]


def _row(name: str, cpus: str | None, readings: Iterable[GroupReading]) -> Usage:
    known = list(readings)
    memories = [
        r.memory_working_set_bytes if r.memory_working_set_bytes is not None else r.memory_usage_bytes for r in known
    ]
    return Usage(
        name=name,
        cpus=cpus,
        cpu_usage_cores=_total([r.cpu_usage_cores for r in known]),
        load1=_total([r.load1 for r in known]),
        memory_bytes=_whole(_total(memories)),
        cpi=_cpi(known),
    )


def _total(values: Sequence[float | None]) -> float | None:
    """The sum, unless a part of it is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _cpi(readings: Sequence[GroupReading]) -> float | None:
    """Of those that have it, by what each uses."""
    known = [(r.extra["cpi"], r.cpu_usage_cores or 0.0) for r in readings if "cpi" in r.extra]
    if len(known) == 1:
        return known[0][0]
    used = sum(use for _, use in known)
    return sum(cpi * use for cpi, use in known) / used if used else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
