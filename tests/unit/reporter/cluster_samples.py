"""Samples and allocations of which messages to the cluster are made."""

from typing import Any

from shared.contracts.allocation import Allocation, PodAllocation
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading

GIB = 1 << 30
ENVELOPE: dict[str, Any] = {"node": "n1", "boot_id": "0" * 16, "sent_at": "2026-01-01T00:00:00Z", "seq": 1}


def applied(cpu_millis: int = 4000, **fields: Any) -> Allocation:
    return Allocation.model_validate(
        {**ENVELOPE, "status": "applied", "reclaimed_cpu_millis": cpu_millis, "reclaimed_memory_bytes": GIB, **fields}
    )


def running(uid: str, qos: str = "shared_cores", cores: float | None = 0.5, **fields: Any) -> PodReading:
    asks = Container(name="c", cpu_request_millis=2000, memory_request_bytes=GIB)
    pod = Pod.model_validate({"uid": uid, "name": f"p-{uid}", "qos": qos, "containers": (asks,), **fields})
    used = ContainerReading(name="c", cpu_usage_cores=cores, memory_rss_bytes=GIB)
    return PodReading(pod=pod, containers=(used,) if cores is not None else ())


def sampled(*pods: PodReading, **fields: Any) -> NodeSample:
    reading = NodeReading(online_cpus="0-7", cpu_usage_cores=2.0, memory_total_bytes=8 * GIB,
                          memory_available_bytes=6 * GIB)  # fmt: skip
    return NodeSample.model_validate({**ENVELOPE, "window_s": 2.0, "node_reading": reading, "pods": pods, **fields})


def placed(uid: str, cpus: str, pool: str = "dedicated") -> PodAllocation:
    return PodAllocation(uid=uid, namespace="default", name=f"p-{uid}", pool=pool, cpus=cpus)
