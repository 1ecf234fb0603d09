"""What is wholly free on a machine, and the order in which the packed rule goes.

Units go by (available CPUs ascending, id ascending), so what is nearly used up goes first. The larger of socket and
NUMA node leads: nodes where there are at least as many sockets as nodes, else sockets. Inside each leading unit come
the units of the other sort, inside those the cores.

Facts: docs/facts/katalyst-cpu.md#free-units, docs/facts/katalyst-cpu.md#packed-taking.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.taking.units import Unit, by_available, free, units_of
from shared.core.cpus.topology import Topology
from shared.whatif.decisions import Answer, decision
from shared.whatif.taking import AvailableQuestion


@dataclass(frozen=True, slots=True)
class FreeUnits:
    """Ids of free sockets and NUMA nodes, ascending; free cores and all available CPUs in the packed rule's order."""

    sockets: tuple[int, ...]
    numas: tuple[int, ...]
    cores_in_order: tuple[int, ...]
    cpus_in_order: tuple[int, ...]


def free_units(topology: Topology, available: CpuSet) -> FreeUnits:
    """What is wholly free when just `available` may be taken."""
    cores = list(cores_in_order(topology, available.mask))
    return FreeUnits(
        sockets=_ids(free(units_of(topology.sockets), available.mask)),
        numas=_ids(free(units_of(topology.numas), available.mask)),
        cores_in_order=_ids(free(cores, available.mask)),
        cpus_in_order=tuple(cpu for _, mask in cores for cpu in CpuSet(mask & available.mask)),
    )


def leading_in_order(topology: Topology, available: int) -> list[Unit]:
    """The leading units (NUMA nodes, or sockets where there are fewer of them) with anything available."""
    return by_available(units_of(_leading(topology)), available)


def second_in_order(topology: Topology, available: int) -> Iterator[Unit]:
    """The units inside the leading ones, in the order of those; one that reaches into several comes once."""
    units, seen = units_of(_second(topology)), set()
    for _, leading in leading_in_order(topology, available):
        inside = ((name, mask) for name, mask in units if mask & leading & available)
        for name, mask in by_available(inside, available):
            if name not in seen:
                seen.add(name)
                yield name, mask


def numas_in_order(topology: Topology, available: int) -> list[Unit]:
    """The NUMA nodes with anything available."""
    if _nodes_lead(topology):
        return leading_in_order(topology, available)
    return list(second_in_order(topology, available))


def cores_in_order(topology: Topology, available: int) -> Iterator[Unit]:
    """The cores with anything available, in the order of the units that they lie in."""
    inside = topology.cores_by_socket if _nodes_lead(topology) else topology.cores_by_numa
    for name, _ in second_in_order(topology, available):
        yield from by_available(inside[name], available)


def _nodes_lead(topology: Topology) -> bool:
    return len(topology.sockets) >= len(topology.numas)


def _leading(topology: Topology) -> Mapping[int, CpuSet]:
    return topology.numas if _nodes_lead(topology) else topology.sockets


def _second(topology: Topology) -> Mapping[int, CpuSet]:
    return topology.sockets if _nodes_lead(topology) else topology.numas


def _ids(units: list[Unit]) -> tuple[int, ...]:
    return tuple(name for name, _ in units)


class FreeUnitsAnswer(Answer):
    """Outputs of `free_units`."""

    sockets: list[int]
    numas: list[int]
    cores_in_order: list[int]
    cpus_in_order: list[int]


@decision("free_units", area="placement", asks=AvailableQuestion, answers=FreeUnitsAnswer)
def free_units_answer(question: AvailableQuestion) -> FreeUnitsAnswer:
    """What is wholly free, and the order in which the packed rule goes."""
    found = free_units(question.topology.topology, question.available_cpus)
    return FreeUnitsAnswer(
        sockets=list(found.sockets),
        numas=list(found.numas),
        cores_in_order=list(found.cores_in_order),
        cpus_in_order=list(found.cpus_in_order),
    )
