"""What pods of a node ask for and use, as the over-commitment that it can bear is made of.

A pod without a figure counts as using what it asks for; a sample that leaves pods out says nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from services.reporter.core.batch_demand import asked_cpu_millis, asked_memory_bytes
from shared.contracts.kube.overcommit import Resource
from shared.contracts.sample import NodeSample, PodReading


@dataclass(frozen=True, slots=True)
class PodsDemand:
    """Of one resource: milli-cores or bytes."""

    request: int
    usage: int


def demands(sample: NodeSample) -> dict[Resource, PodsDemand] | None:
    """Of all pods that run beside each other; reclaimed ones ask for neither. None: not all pods are told."""
    if sample.pods_left_out:
        return None
    pods = [one for one in sample.pods if one.pod.qos != "reclaimed_cores" and one.pod.phase in ("Running", "Pending")]
    return {
        "cpu": _together([PodsDemand(asked_cpu_millis(one.pod), _cpu_millis(one)) for one in pods]),
        "memory": _together([PodsDemand(asked_memory_bytes(one.pod), _memory_bytes(one)) for one in pods]),
    }


def _together(found: Sequence[PodsDemand]) -> PodsDemand:
    return PodsDemand(sum(one.request for one in found), sum(one.usage for one in found))


def _cpu_millis(pod: PodReading) -> int:
    """The largest of usage and loads: who waits for a CPU would use more."""
    columns = zip(*((one.cpu_usage_cores, one.load1, one.load5) for one in pod.containers), strict=True)
    sums = [sum(known) for column in columns if (known := [figure for figure in column if figure is not None])]
    return round(max(sums) * 1000) if sums else asked_cpu_millis(pod.pod)


def _memory_bytes(pod: PodReading) -> int:
    used = pod.memory_usage_bytes
    return asked_memory_bytes(pod.pod) if used is None else used
