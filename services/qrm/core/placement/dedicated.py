"""A dedicated pod takes whole CPUs of its NUMA nodes (docs/facts/katalyst-cpu.md#cpus-at-admission).

`services.qrm.core.placement.assignment` applies this to the pods of a node, one after another.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.taking.balanced import NOT_ENOUGH_CPUS
from shared.core.cpus.taking.by_topology import take_by_topology
from shared.core.cpus.topology import Topology
from shared.errors import Refused

NOT_ENOUGH_WHOLE_CORES = "not_enough_whole_cores"


def whole_cpus(cores: float) -> int:
    """Return the CPUs that hold so many cores; a rounding error of the sum adds no CPU."""
    return math.ceil(cores - 1e-9)


@dataclass(frozen=True, slots=True)
class DedicatedRequest:
    """CPUs that a dedicated pod asks for.

    Over several NUMA nodes the first is filled first, or with `evenly` each gives the same, the first ones one more
    where it does not divide. `whole_cores` takes from cores that are free as a whole only.
    """

    cores: float
    exclusive: bool = False
    evenly: bool = False
    whole_cores: bool = False


def of_dedicated(topology: Topology, free: CpuSet, numas: Sequence[int], request: DedicatedRequest) -> CpuSet:
    """Return CPUs of a dedicated pod on its NUMA nodes: all free ones if exclusive, otherwise by topology with L3.

    Raises:
        Refused: `not_enough_whole_cores`, `not_enough_cpus`.
    """
    inside = {numa: topology.numas.get(numa, CpuSet()) & free for numa in numas}
    need = whole_cpus(request.cores)
    if request.whole_cores:
        inside = {numa: _whole(topology, cpus) for numa, cpus in inside.items()}
    have = sum(map(len, inside.values()))
    if have < need:
        raise Refused(
            f"{need} CPUs wanted, NUMA nodes {', '.join(map(str, numas)) or '(none)'} have {have} free"
            + (" in whole cores" if request.whole_cores else ""),
            reason=NOT_ENOUGH_WHOLE_CORES if request.whole_cores else NOT_ENOUGH_CPUS,
        )
    # No other pod uses its nodes, and what it does not use would be idle, so it gets everything that is free there.
    if request.exclusive:
        return CpuSet.union(inside.values())
    shares = _even(need, len(numas)) if request.evenly else _filled(need, [len(cpus) for cpus in inside.values()])
    taken = CpuSet()
    for (numa, cpus), share in zip(inside.items(), shares, strict=True):
        # The sum may fit while a single node does not: "evenly" is a promise, and not a preference.
        if share > len(cpus):
            raise Refused(f"{share} CPUs wanted of NUMA node {numa}, {len(cpus)} free", reason=NOT_ENOUGH_CPUS)
        taken |= take_by_topology(topology, cpus, share, align_l3=True)
    return taken


def _whole(topology: Topology, cpus: CpuSet) -> CpuSet:
    """The part of a set that consists of whole cores."""
    return CpuSet.union(core for core in topology.cores.values() if core <= cpus)


def _even(need: int, nodes: int) -> list[int]:
    each, more = divmod(need, nodes)
    return [each + (place < more) for place in range(nodes)]


def _filled(need: int, free: Sequence[int]) -> list[int]:
    shares = []
    for size in free:
        share = min(need, size)
        shares.append(share)
        need -= share
    return shares
