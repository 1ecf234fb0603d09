"""What figures say of each container, as it is learned from."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from shared.contracts.cluster.figures import FiguredContainers, FiguredPods

CPU_SERIES, MEMORY_SERIES = "container_cpu_usage", "container_memory_usage"
"""What the node tells of memory is the working set: what the kernel could drop at once is no use to ask for."""


class ContainerUsed(NamedTuple):
    """What a container uses; None: the node does not know, which is no use of 0."""

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
