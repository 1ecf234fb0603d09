"""`place_of` returns where a pod belongs: in the share pool, in a named pool, on a NUMA node, or on CPUs of its own.

The pod's annotations name the pool, and the newest allocation says where the pod runs. A pod that requested CPUs of its
own and did not get them runs in the share pool, and counts there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from services.advisor.core.model.region import DEDICATED
from shared.contracts.allocation import Allocation
from shared.contracts.pod import Pod, QosClass
from shared.core.cgroups.layout import RECLAIM, RESERVE, SHARE
from shared.core.cpus.cpuset import CpuSet
from shared.core.pods.koord_qos import BINDS_CPUS, QOS_LABEL
from shared.core.pods.qos import QOS_LEVEL
from shared.core.pods.qos_annotations import pod_qos

RAMP_UP = "ramp-up"
"""How an allocation names the place of a pod that has only just come."""


@dataclass(frozen=True, slots=True)
class PodPlace:
    """The share pool (of shared pods), the CPUs by NUMA node if the pod has its own, and how it is bound to them."""

    pool: str = SHARE
    cpus_per_numa: tuple[tuple[int, int], ...] = ()
    dedicated: bool = False
    bound: bool = False
    exclusive: bool = False


NO_PLACES: Mapping[str, PodPlace] = {}
PLAIN = PodPlace()


def places_in(allocation: Allocation, numas: Mapping[int, CpuSet]) -> dict[str, PodPlace]:
    """By UID, the pool of a pod and its own CPUs on each NUMA node; pods that have only just come are left out."""
    return {
        pod.uid: PodPlace(pod.pool, () if pod.pool in (SHARE, RECLAIM, RESERVE) else _per_numa(pod.cpus, numas))
        for pod in allocation.pods
        if pod.pool != RAMP_UP
    }


def _per_numa(cpus: str, numas: Mapping[int, CpuSet]) -> tuple[tuple[int, int], ...]:
    own = CpuSet.parse(cpus)
    return tuple((numa, len(inside & own)) for numa, inside in sorted(numas.items()) if inside & own)


def place_of(pod: Pod, seen: PodPlace | None) -> PodPlace:
    """Return where the pod is: as the allocation says (`seen`), or as the pod requests if the allocation does not
    know it."""
    own_cpus = pod.qos == "dedicated_cores" and pod.labels.get(QOS_LABEL) in BINDS_CPUS
    # Most pods: no parsing, and one object for all of them.
    if not pod.annotations and not own_cpus:
        return PLAIN
    requested = _requested(pod.qos, tuple(sorted(pod.annotations.items())), own_cpus)
    if seen is None:
        # A pool on a NUMA node has no name before the node is known; until then its pods are in the share pool.
        return replace(PLAIN, pool=SHARE if requested.bound else requested.pool, dedicated=requested.dedicated)
    if pod.qos == "dedicated_cores":
        # It requested CPUs and got none: while it runs in the share pool it must count there, or that pool is too
        # small.
        return replace(requested, cpus_per_numa=seen.cpus_per_numa) if seen.pool == DEDICATED else PLAIN
    if pod.qos != "shared_cores" or seen.pool == SHARE:
        return PLAIN
    if requested.bound and len(seen.cpus_per_numa) == 1:
        numa = seen.cpus_per_numa[0][0]
        return replace(requested, pool=bound_pool(requested.pool, numa), cpus_per_numa=seen.cpus_per_numa)
    return replace(PLAIN, pool=requested.pool)


def bound_pool(pool: str, numa: int) -> str:
    """The part of a share pool on one NUMA node (docs/facts/katalyst-cpu.md#who-takes-first)."""
    return f"{pool}-NUMA{numa}"


@lru_cache(maxsize=4096)
def _requested(qos: QosClass, annotations: tuple[tuple[str, str], ...], own_cpus: bool) -> PodPlace:
    """Return what the annotations request; cached, because every round reads the same pods."""
    said = pod_qos({**dict(annotations), QOS_LEVEL: qos})
    if said.cpuset_pool in (RECLAIM, RESERVE, DEDICATED):  # these are no pools of tenants: such a request is ignored
        return PLAIN
    bound = bool(said.numa_binding) or own_cpus
    return PodPlace(
        pool=said.cpuset_pool or SHARE,
        dedicated=qos == "dedicated_cores" and bound,
        bound=bound and qos in ("shared_cores", "dedicated_cores"),
        exclusive=bool(said.numa_exclusive),
    )
