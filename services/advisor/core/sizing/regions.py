"""`split` sorts the node's containers into regions: share pools, pods isolated from one, dedicated pods.

A region is on one NUMA node if its pods are bound to it, otherwise on all nodes without bound regions.

Facts: docs/facts/katalyst-cpu.md#regions-and-reserves.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from services.advisor.core.model.containers import once_beside_cpu
from services.advisor.core.model.region import NO_NUMA, Region, RegionType
from services.advisor.core.model.view import ContainerView
from shared.contracts.advice import isolation_pool
from shared.core.cgroups.layout import SHARE


@once_beside_cpu
def plain(containers: Sequence[ContainerView]) -> bool:
    """Return whether all shared containers are in the one share pool and none has CPUs of its own: the usual case."""
    for container in containers:
        if container.dedicated or container.bound or (container.pool != SHARE and container.qos == "shared_cores"):
            return False
    return True


def split(
    containers: Iterable[ContainerView],
    isolated: Collection[str] = (),
    numas: Collection[int] | None = None,
    *,
    always_share: bool = True,
) -> tuple[Region, ...]:
    """Return the regions in order of pool, type and NUMA node.

    Args:
        containers: all that hold CPUs; those without a share pool and without CPUs of their own are left out.
        isolated: pods (`ContainerView.pod`) that have left their share pool.
        numas: the machine's NUMA nodes; nothing is bound to another one. None: those of the containers.
        always_share: the share pool exists even without containers.
    """
    found: dict[tuple[str, RegionType, int], tuple[Region, list[ContainerView]]] = {}
    if always_share:
        found[SHARE, "share", NO_NUMA] = Region(SHARE, "share"), []
    for container in containers:
        for empty in _regions_of(container, container.pod in isolated, numas):
            key = (empty.pool, empty.type, NO_NUMA if empty.numa is None else empty.numa)
            found.setdefault(key, (empty, []))[1].append(container)
    return tuple(replace(found[key][0], containers=tuple(found[key][1])) for key in sorted(found))


def _regions_of(container: ContainerView, isolated: bool, known: Collection[int] | None) -> list[Region]:
    numas = [numa for numa, cpus in container.cpus_per_numa if cpus and (known is None or numa in known)]
    if container.dedicated:
        # Not placed yet: one region without a node, which blocks no node for others.
        if not container.bound or not numas:
            return [Region(container.pod, "dedicated")]
        return [Region(container.pod, "dedicated", numa, container.exclusive) for numa in numas]
    if container.qos != "shared_cores" or not container.pool:
        return []
    # A bound shared pod lies on one NUMA node; where it is not known yet it counts with the unbound.
    numa = numas[0] if container.bound and numas else None
    if isolated:
        return [Region(isolation_pool(container.pod), "isolation", numa)]
    return [Region(container.pool, "share", numa)]
