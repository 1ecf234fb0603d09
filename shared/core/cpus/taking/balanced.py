"""`take_by_numa_balance` takes CPUs evenly from the NUMA nodes (docs/facts/katalyst-cpu.md#balanced-taking)."""

from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest
from typing import Literal

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.taking.units import NOT_ENOUGH_CPUS, Taking, Unit, free
from shared.core.cpus.topology import Topology

__all__ = ["NOT_ENOUGH_CPUS", "Granularity", "take_by_numa_balance"]

Granularity = Literal["core", "thread"]


def take_by_numa_balance(
    topology: Topology,
    available: CpuSet,
    count: int,
    *,
    granularity: Granularity = "core",
    reverse: bool = False,
) -> CpuSet:
    """Take `count` of the available CPUs, turn by turn from each NUMA node, ascending.

    With "core" whole free cores go first, while one still fits into the need; what is left of the need, and everything
    with "thread", is taken CPU by CPU. Inside a node the lowest id goes first, with `reverse` the highest; the nodes
    take turns in ascending order either way. A count below 1 takes nothing. A core is free when all its CPUs are
    available, so a core with a sibling offline counts as whole. Linear in the number of CPUs.

    Raises:
        Refused: `not_enough_cpus`, fewer CPUs are available than wanted.
    """
    taking = Taking(available, count)
    # Whole cores first, so that no core is shared by two pools while there is a choice.
    if granularity == "core":
        taking.whole(_in_turns(_free_cores(topology, taking.left), reverse=reverse))
    if taking.need:
        taking.whole(_in_turns(_single_cpus(topology, taking.left), reverse=reverse))
    return taking.cpus


def _free_cores(topology: Topology, left: int) -> Iterator[list[Unit]]:
    """For each NUMA node its free cores, ascending."""
    for cores in topology.cores_by_numa.values():
        yield free(cores, left)


def _single_cpus(topology: Topology, left: int) -> Iterator[list[Unit]]:
    """For each NUMA node its CPUs that are left, ascending."""
    for cpus in topology.numas.values():
        yield [(cpu, 1 << cpu) for cpu in CpuSet(cpus.mask & left)]


def _in_turns(lists: Iterable[list[Unit]], *, reverse: bool) -> Iterator[Unit]:
    """First of each list, second of each list, and so on (with `reverse` from the end); an exhausted one is passed."""
    turns = zip_longest(*(units[::-1] if reverse else units for units in lists))
    return (unit for unit in chain.from_iterable(turns) if unit is not None)
