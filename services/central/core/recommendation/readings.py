"""Figures of each container, as used for learning."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from shared.contracts.cluster.figures import FiguredContainers, FiguredPods

CPU_SERIES, MEMORY_SERIES = "container_cpu_usage", "container_memory_usage"
"""Memory is the working set, because a request need not cover what the kernel could drop at once."""


class ContainerUsed(NamedTuple):
    """Use of a container; None: unknown, which is not a use of 0."""

    pod_uid: str
    container: str
    used: Mapping[str, float | None]
    """CPU in cores and memory in bytes."""


def container_readings(pods: FiguredPods, containers: FiguredContainers) -> Iterator[ContainerUsed]:
    """One container after the other."""
    series = containers.series
    for place, (pod, name) in enumerate(zip(containers.pods, containers.names, strict=True)):
        used = {"cpu": _figure(series, CPU_SERIES, place), "memory": _figure(series, MEMORY_SERIES, place)}
        yield ContainerUsed(pods.uids[pod], name, used)


def _figure(series: Mapping[str, tuple[float | None, ...]], name: str, place: int) -> float | None:
    return series[name][place] if name in series else None
