"""Sums up what pods of a node request and use, from which its bearable over-commitment is derived.

A pod without a figure counts with its request; a sample that leaves pods out is ignored.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from services.reporter.core.batch_demand import asked_cpu_millis, asked_memory_bytes
from shared.contracts.kube.overcommit import Resource
from shared.contracts.sample import NodeSample, PodReading

STALLED_PERCENT = 5.0
"""Percentage of ten seconds in which all tasks waited for memory, from which all memory counts as used, whatever
pods report."""


@dataclass(frozen=True, slots=True)
class PodsDemand:
    """Of one resource: milli-cores or bytes."""

    request: int
    usage: int


def demands(sample: NodeSample) -> dict[Resource, PodsDemand] | None:
    """Return the demands of all pods except reclaimed ones, which request neither resource. None: not all pods are
    reported."""
    if sample.pods_left_out:
        return None
    pods = [one for one in sample.pods if one.pod.qos != "reclaimed_cores" and one.pod.phase in ("Running", "Pending")]
    memory = _together([PodsDemand(asked_memory_bytes(one.pod), _memory_bytes(one)) for one in pods])
    if (pressure := sample.node_reading.memory_pressure) is not None and pressure.full_avg10_percent >= STALLED_PERCENT:
        memory = PodsDemand(memory.request, max(memory.usage, sample.node_reading.memory_total_bytes or 0))
    return {
        "cpu": _together([PodsDemand(asked_cpu_millis(one.pod), _cpu_millis(one)) for one in pods]),
        "memory": memory,
    }


def _together(found: Sequence[PodsDemand]) -> PodsDemand:
    return PodsDemand(sum(one.request for one in found), sum(one.usage for one in found))


def _cpu_millis(pod: PodReading) -> int:
    """The largest of usage and loads: who waits for a CPU would use more."""
    figures = [(one.cpu_usage_cores, one.load1, one.load5) for one in pod.containers]
    sums = [
        sum(known) for column in zip(*figures, strict=True) if (known := [one for one in column if one is not None])
    ]
    used = round(max(sums, default=0.0) * 1000)
    # A container without a figure cannot be assumed to use little.
    unknown = not figures or any(set(row) == {None} for row in figures)
    return max(used, asked_cpu_millis(pod.pod)) if unknown else used


def _memory_bytes(pod: PodReading) -> int:
    used = pod.memory_usage_bytes
    return asked_memory_bytes(pod.pod) if used is None else used
