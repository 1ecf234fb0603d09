"""`take_by_topology` takes CPUs of a NUMA-bound block or a dedicated pod: free socket, L3 group, core, thread.

Facts: docs/facts/katalyst-cpu.md#taking-by-topology.
"""

from itertools import chain

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.taking.units import Taking, Unit, by_available, free, units_of
from shared.core.cpus.topology import Topology


def take_by_topology(topology: Topology, available: CpuSet, count: int, *, align_l3: bool = False) -> CpuSet:
    """Take `count` of the available CPUs, as close together as the machine allows; below 1 takes nothing.

    First free sockets, the smallest available first; then, with `align_l3`, whole L3 groups, and the rest from one
    group alone; then free cores; then single CPUs, from broken cores first. Among equals the lowest id goes first.
    CPUs whose L3 is unknown are one group of their own.

    Raises:
        Refused: `not_enough_cpus`, fewer CPUs are available than wanted.
    """
    taking = Taking(available, count)
    if taking.need:
        # A free socket is taken only where all of it is needed; the smallest first leaves the larger ones whole.
        taking.whole(free(by_available(units_of(topology.sockets), taking.left), taking.left))
    if align_l3 and taking.need:
        _take_aligned(topology, taking)
    if taking.need:
        taking.whole(free(_cores(topology, taking.left), taking.left))
    if taking.need:
        taking.singly(_cores(topology, taking.left))
    return taking.cpus


def _take_aligned(topology: Topology, taking: Taking) -> None:
    """Take whole L3 groups while none can hold what is needed; then leave only the group that fits it best.

    That is the smallest group that can hold the need, so one of exactly that size is taken whole. Taking a group
    changes no other, so one order serves all rounds: the largest first, the lower id first among equals.
    """
    sizes = sorted((-(mask & taking.left).bit_count(), name) for name, mask in units_of(topology.l3_groups))
    too_small = 0
    while -sizes[too_small][0] < taking.need:
        taking.whole([_left_of(topology, sizes[too_small][1], taking)])
        too_small += 1
    if taking.need:
        _, best = min((-size, name) for size, name in sizes[too_small:] if -size >= taking.need)
        taking.left = _left_of(topology, best, taking)[1]


def _left_of(topology: Topology, l3: int, taking: Taking) -> Unit:
    return l3, topology.l3_groups[l3].mask & taking.left


def _cores(topology: Topology, left: int) -> list[Unit]:
    """Cores with anything left: by socket, the fullest first, and inside it the most broken first."""
    sockets = by_available(units_of(topology.sockets), left)
    return list(chain.from_iterable(by_available(topology.cores_by_socket[socket], left) for socket, _ in sockets))
