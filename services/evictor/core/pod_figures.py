"""Figures of one pod, summed over its containers, and the NUMA node that it is bound to."""

from collections.abc import Iterable

from shared.contracts.pod import Pod
from shared.contracts.sample import PodReading
from shared.core.pod_qos import NUMA_BIND_RESULT


def bound_numa(pod: Pod) -> int | None:
    """The NUMA node that a pod was bound to; None where it was not, or the annotation cannot be read."""
    said = pod.annotations.get(NUMA_BIND_RESULT, "")
    return int(said) if said.isdecimal() else None


def cpu_usage_cores(reading: PodReading) -> float | None:
    """None unless each container has a figure."""
    return _sum(c.cpu_usage_cores for c in reading.containers)


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
