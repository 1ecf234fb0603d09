"""What each NUMA node has, how much of it is not reserved, and which pods are bound to it."""

from collections.abc import Iterator
from dataclasses import dataclass

from shared.contracts.allocation import Allocation, PodAllocation
from shared.contracts.pod import Pod
from shared.contracts.sample import NodeSample, NumaReading
from shared.core.cgroups.layout import RECLAIM, RESERVE
from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.shares import shared_out


@dataclass(frozen=True, slots=True)
class NumaZone:
    """One NUMA node; a figure that is not known is None."""

    numa: int
    socket: int | None
    cpus: int | None
    """None: it has only memory."""
    free_cpus: int | None
    """The unreserved CPUs; None without an allocation."""
    memory_bytes: int | None
    bound: tuple[Pod, ...] = ()
    """Pods all of whose CPUs are here, by name. A pod that spans NUMA nodes is bound to none of them: counting its
    request here would count it twice."""


def numa_zones(sample: NodeSample, allocation: Allocation | None) -> Iterator[NumaZone]:
    """Every NUMA node of the sample, ascending."""
    pods = {reading.pod.uid: reading.pod for reading in sample.pods}
    for numa in sorted(sample.numas, key=lambda one: one.numa):
        cpus = CpuSet.parse(numa.cpus)
        yield NumaZone(
            numa.numa,
            numa.socket,
            len(cpus) or None,
            _free(cpus, allocation) if cpus and allocation else None,
            numa.memory_total_bytes,
            tuple(pods[one.uid] for one in _bound(cpus, allocation) if one.uid in pods),
        )


def reclaimed_shares(allocation: Allocation, numas: tuple[NumaReading, ...], cpu_millis: int) -> dict[int, int]:
    """Divide an amount of reclaimed CPU by the pool's CPUs on each NUMA node; empty if none is known."""
    pool = allocation.pool(RECLAIM)
    if pool is None:
        return {}
    cpus = CpuSet.parse(pool.cpus)
    return shared_out(cpu_millis, {numa.numa: len(cpus & CpuSet.parse(numa.cpus)) for numa in numas})


def _free(cpus: CpuSet, allocation: Allocation) -> int:
    reserve = allocation.pool(RESERVE)
    return len(cpus - CpuSet.parse(reserve.cpus) if reserve else cpus)


def _bound(cpus: CpuSet, allocation: Allocation | None) -> list[PodAllocation]:
    found = [one for one in (allocation.pods if allocation else ()) if one.cpus and CpuSet.parse(one.cpus) <= cpus]
    return sorted(found, key=lambda one: (one.namespace, one.name, one.uid))
