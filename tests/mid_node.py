"""A node of ten CPUs with prod and mid pods, for the tests of mid resources."""

from collections.abc import Callable
from typing import Any

from fixture_types import NewSample

from services.reporter.core.node_capacity import NodeCapacity
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading

GIB = 1 << 30
TEN = NodeCapacity(10_000, 10 * GIB)
MID = 7500


def reading(name: str, used_millis: int | None = None, asked_millis: int = 4000, **fields: Any) -> PodReading:
    """A pod that asks for 4 CPUs and 4 GiB, and uses so much of both."""
    memory = asked_millis * GIB // 1000
    containers = (Container(name="c", cpu_request_millis=asked_millis, memory_request_bytes=memory),)
    pod = Pod(**{"uid": name.encode().hex(), "name": name, "containers": containers} | fields)
    cores = None if used_millis is None else used_millis / 1000
    in_use = None if used_millis is None else used_millis * GIB // 1000
    return PodReading(
        pod=pod, containers=(ContainerReading(name="c", cpu_usage_cores=cores, memory_working_set_bytes=in_use),)
    )


NewNode = Callable[..., NodeSample]


def near(found: int, wanted: int) -> bool:
    """Within a bucket, and never more."""
    return wanted - 0.06 * 10_000 <= found <= wanted


def node_of_ten(sample: NewSample) -> NewNode:
    """Samples of a node of ten CPUs and 10 GiB on which these pods run, and a system that uses 1 CPU and 1 GiB."""

    def make(*pods: PodReading, **over: Any) -> NodeSample:
        millis = 1000 + sum(round(1000 * (one.containers[0].cpu_usage_cores or 0)) for one in pods)
        free = 10 * GIB - millis * GIB // 1000
        node = {"cpu_usage_cores": millis / 1000, "memory_total_bytes": 10 * GIB, "memory_available_bytes": free} | over
        return sample(node_reading=NodeReading(online_cpus="0-9", **node), pods=pods)

    return make
