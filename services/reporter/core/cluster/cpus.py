"""The node's CPUs as the bus tells them while somebody looks: topology, use, pools and pods."""

from collections.abc import Mapping
from typing import Any

from shared.contracts.allocation import Allocation, PodAllocation
from shared.contracts.cluster.cpus import MAX_CPUS, MAX_PODS, MAX_POOLS, CpuPod, CpuPool, CpuTable
from shared.contracts.sample import NodeSample, PodReading
from shared.core.cpus.topology import Topology


def cpu_fields(topology: Topology, sample: NodeSample | None, allocation: Allocation | None) -> dict[str, Any]:
    """The fields of a CpuMap. Without a fresh sample no use is told; without an allocation no pool and no pod."""
    pods = () if allocation is None else allocation.pods
    return {
        "table": _table(topology, sample),
        "pools": _pools(allocation),
        "pods": _pods(pods, sample),
        "pods_left_out": max(0, len(pods) - MAX_PODS) + (0 if sample is None else sample.pods_left_out),
    }


def shorter(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same fields with half of the pods, for a message that is too long; None: there is no pod to leave out."""
    pods = fields["pods"]
    if not pods:
        return None
    kept = len(pods) // 2
    return {**fields, "pods": pods[:kept], "pods_left_out": fields["pods_left_out"] + len(pods) - kept}


def _table(topology: Topology, sample: NodeSample | None) -> CpuTable:
    cpus = topology.cpus[:MAX_CPUS]
    measured = sample.node_reading.cpus if sample is not None else None
    busy = measured.by_cpu() if measured is not None else {}
    return CpuTable(
        ids=tuple(cpu.id for cpu in cpus),
        sockets=tuple(cpu.socket for cpu in cpus),
        numas=tuple(cpu.numa for cpu in cpus),
        l3s=tuple(cpu.l3 for cpu in cpus),
        cores=tuple(cpu.core for cpu in cpus),
        busy_percent=tuple(busy.get(cpu.id) for cpu in cpus),
    )


def _pools(allocation: Allocation | None) -> tuple[CpuPool, ...]:
    pools = () if allocation is None else allocation.pools
    return tuple(CpuPool(pool=pool.pool, cpus=pool.cpus) for pool in pools[:MAX_POOLS])


def _pods(pods: tuple[PodAllocation, ...], sample: NodeSample | None) -> tuple[CpuPod, ...]:
    readings = {} if sample is None else {reading.pod.uid: reading for reading in sample.pods}
    told = sorted(pods, key=lambda pod: (pod.namespace, pod.name, pod.uid))[:MAX_PODS]
    return tuple(
        CpuPod(uid=pod.uid, namespace=pod.namespace, name=pod.name, pool=pod.pool, cpus=pod.cpus,
               cpu_millis=_used_millis(readings.get(pod.uid)))
        for pod in told
    )  # fmt: skip


def _used_millis(reading: PodReading | None) -> int | None:
    containers = () if reading is None else reading.containers
    known = [container.cpu_usage_cores for container in containers if container.cpu_usage_cores is not None]
    return round(sum(known) * 1000) if known else None
