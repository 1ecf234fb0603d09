"""Ranks the pods of a sample when memory is short."""

from collections.abc import Iterable, Mapping

from services.evictor.core.detectors.memory.combined import MemoryActions
from services.evictor.core.detectors.memory.victims import MemoryUser, VictimOrder, in_order
from services.evictor.core.plugin import Candidate
from shared.contracts.envelope import Reason
from shared.contracts.pod import Pod
from shared.contracts.sample import PodReading
from shared.core.pods.qos import CRITICAL_PRIORITY


def memory_user(reading: PodReading, numas: Iterable[str]) -> MemoryUser[Pod]:
    """Return a pod as a user of memory; if the NUMA nodes of its memory are unknown, its whole use counts for each."""
    pod, usage, by_numa = reading.pod, reading.memory_usage_bytes, numa_usage_bytes(reading)
    return MemoryUser(
        namespace=pod.namespace,
        name=pod.name,
        qos=pod.qos,
        priority=_priority(pod),
        usage_bytes=usage,
        numa_usage_bytes={numa: usage if by_numa is None else by_numa.get(numa, 0) for numa in numas},
        of=pod,
    )


def _priority(pod: Pod) -> int:
    """A reclaimed pod's author chooses its priority, so no priority makes such a pod unevictable."""
    return min(pod.priority, CRITICAL_PRIORITY - 1) if pod.qos == "reclaimed_cores" else pod.priority


def numa_usage_bytes(reading: PodReading) -> dict[str, int] | None:
    """Return anonymous memory and page cache by NUMA node; None unless every container reports them."""
    usage: dict[str, int] = {}
    for container in reading.containers:
        if container.memory_numa is None:
            return None
        for share in container.memory_numa:
            used = (share.anon_bytes or 0) + (share.file_bytes or 0)
            usage[str(share.numa)] = usage.get(str(share.numa), 0) + used
    return usage if reading.containers else None


def ranked(
    pods: Iterable[PodReading],
    actions: MemoryActions,
    *,
    numa_total_bytes: Mapping[str, int] | None = None,
    min_utilization_ratio: float = 0.0,
    short: str | None = None,
) -> tuple[Candidate, ...]:
    """Every pod that the actions reach: reclaimed pods before tenants, low priority first, large use first.

    Args:
        short: the NUMA node whose free memory the pressure observes; None: the whole node's.
    """
    pods = tuple(pods)
    relief = {reading.pod.uid: _frees_bytes(reading, short) for reading in pods}
    order = in_order(
        [memory_user(reading, tuple(actions.numa_actions)) for reading in pods],
        VictimOrder(len(pods), min_utilization_ratio=min_utilization_ratio),
        actions,
        numa_total_bytes or {},
    )
    return tuple(
        Candidate(
            p.of,
            Reason(
                rule="reclaimed first, low priority first, large use first",
                numbers={"qos": p.qos, "priority": p.priority, "usage_bytes": p.usage_bytes},
            ),
            relief[p.of.uid],
        )
        # Stable: within reclaimed pods and within tenants the order of the shortages stays.
        for p in sorted(order, key=lambda p: p.qos != "reclaimed_cores")
    )


def _frees_bytes(reading: PodReading, numa: str | None) -> int | None:
    """Return the memory that an eviction of the pod frees there; None if unknown.

    The substitute of `memory_user` is good enough for an order, but not for a sum.
    """
    if numa is None:
        return reading.memory_usage_bytes
    by_numa = numa_usage_bytes(reading)
    return None if by_numa is None else by_numa.get(numa, 0)
