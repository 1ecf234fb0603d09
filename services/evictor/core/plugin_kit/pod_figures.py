"""Sums figures and requests of one pod over its containers, and finds the NUMA nodes that pods are bound to."""

from collections.abc import Iterable

from services.evictor.core.plugin import View
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, Pod
from shared.contracts.sample import PodReading
from shared.core.cpus.cpuset import CpuSet
from shared.core.pods.qos_annotations import NUMA_BIND_RESULT


def bound_numas(view: View) -> dict[str, int]:
    """Return the NUMA node of each bound pod, by UID, without pods that are bound to no node or to several.

    A scheduler's annotation counts. A pod without one is on the NUMA node that holds all of its memory nodes, as
    applied, because on a host nobody annotates pods.
    """
    applied = {p.uid: CpuSet.parse(p.mems) for p in view.allocation.pods} if view.allocation else {}
    found = {r.pod.uid: _bound(r.pod, applied.get(r.pod.uid, CpuSet())) for r in view.pods}
    return {uid: numa for uid, numa in found.items() if numa is not None}


def _bound(pod: Pod, mems: CpuSet) -> int | None:
    annotated = pod.annotations.get(NUMA_BIND_RESULT, "")
    if annotated.isdecimal():
        return int(annotated)
    return next(iter(mems)) if len(mems) == 1 else None


def reclaimed_requests(pod: Pod) -> dict[str, int]:
    """Return a pod's requests for reclaimed resources, without zero requests."""
    amounts = {RECLAIMED_CPU: pod.cpu_request_millis, RECLAIMED_MEMORY: pod.memory_request_bytes}
    return {resource: amount for resource, amount in amounts.items() if amount > 0}


def cpu_usage_cores(reading: PodReading) -> float | None:
    """None unless each container has a figure."""
    return _sum(c.cpu_usage_cores for c in reading.containers)


def cpu_sys_cores(reading: PodReading) -> float | None:
    """CPU that the kernel spent on its behalf; None unless each container has a figure."""
    return _sum(c.cpu_sys_cores for c in reading.containers)


def load1(reading: PodReading) -> float | None:
    """The load over one minute; None unless each container has a figure."""
    return _sum(c.load1 for c in reading.containers)


def extra_sum(reading: PodReading, name: str) -> float | None:
    """A figure of `extra`; None unless each container has it."""
    return _sum(c.extra.get(name) for c in reading.containers)


def _sum(figures: Iterable[float | None]) -> float | None:
    known = list(figures)
    present = [figure for figure in known if figure is not None]
    return sum(present) if known and len(present) == len(known) else None
