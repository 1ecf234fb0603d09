"""Taking packed, and the order in which it goes: whole nodes and sockets, then cores, then threads."""

import pytest

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Cpu, Topology, UniformShape
from shared.errors import Refused
from sublet.reference.free_units import free_units
from sublet.reference.packed import take_packed

TUTORIAL_NODE = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=12, threads=2))
FOUR_NUMA = Topology.uniform(
    UniformShape(sockets=2, numa_per_socket=2, cores_per_numa=2, threads=2, numbering="adjacent")
)
"""Fewer sockets than nodes, so sockets lead: nodes 0-3 and 4-7 in socket 0, 8-11 and 12-15 in socket 1."""
TWO_IN_ONE = Topology.of(Cpu(cpu, 0, cpu // 4, cpu // 2) for cpu in range(8))
"""One NUMA node of two sockets: 0-3 and 4-7, siblings side by side."""
HYBRID = Topology.of(Cpu(cpu, cpu // 4, cpu // 4, cpu // 2 if cpu < 4 else cpu) for cpu in range(8))
"""Node 0 has two cores of two threads, node 1 four of one."""
CROSSED = Topology.of(
    Cpu(cpu, numa, socket, cpu)
    for cpu, numa, socket in ((0, 0, 0), (1, 0, 1), (2, 1, 0), (3, 1, 0), (4, 2, 1), (5, 2, 1))
)
"""Three nodes in two sockets; node 0 has one CPU in each."""


@pytest.mark.parametrize(
    ("machine", "available", "count", "taken"),
    [
        pytest.param(TUTORIAL_NODE, "0-47", 0, "", id="nothing wanted"),
        pytest.param(TUTORIAL_NODE, "0-47", -7, "", id="less than nothing wanted"),
        pytest.param(TUTORIAL_NODE, "0-47", 24, "0-11,24-35", id="a whole node"),
        pytest.param(TUTORIAL_NODE, "0-47", 26, "0-12,24-36", id="a node and a core of the next"),
        pytest.param(TUTORIAL_NODE, "0-47", 3, "0-1,24", id="a core and a thread"),
        pytest.param(TUTORIAL_NODE, "0-22,24-46", 2, "12,36", id="the fuller node first"),
        pytest.param(TUTORIAL_NODE, "0-46", 1, "23", id="the broken core first"),
        pytest.param(TUTORIAL_NODE, "0-46", 25, "0-11,23-35", id="a free node although the other is fuller"),
        pytest.param(FOUR_NUMA, "0-15", 8, "0-7", id="a whole socket"),
        pytest.param(FOUR_NUMA, "0-15", 12, "0-11", id="a socket, then a node"),
        pytest.param(FOUR_NUMA, "1-15", 4, "4-7", id="the free node of the fuller socket"),
        pytest.param(FOUR_NUMA, "0-3,5-15", 5, "0-3,5", id="what is left of the need from the fuller node beside it"),
        pytest.param(TWO_IN_ONE, "0-7", 4, "0-3", id="a socket inside a node"),
        pytest.param(TWO_IN_ONE, "1-7", 4, "4-7", id="the free one"),
        pytest.param(TWO_IN_ONE, "1-7", 1, "1", id="the broken core of the fuller socket"),
        pytest.param(HYBRID, "0-7", 4, "0-3", id="hybrid: a node of large cores"),
        pytest.param(HYBRID, "0-6", 4, "0-3", id="hybrid: the free node"),
        pytest.param(HYBRID, "0-6", 2, "4-5", id="hybrid: small cores of the fuller node"),
        pytest.param(HYBRID, "0-2,4-7", 1, "4", id="hybrid: a small core is a whole one and goes before a half"),
    ],
)  # fmt: skip
def test_exactly_these_cpus(machine: Topology, available: str, count: int, taken: str) -> None:
    assert str(take_packed(machine, CpuSet.parse(available), count)) == taken


def test_too_few_cpus_are_refused_with_both_numbers() -> None:
    with pytest.raises(Refused, match="4 CPUs wanted, 3 available") as refused:
        take_packed(TUTORIAL_NODE, CpuSet.parse("0-2"), 4)
    assert refused.value.reason == "not_enough_cpus"


@pytest.mark.parametrize(
    ("machine", "available", "sockets", "numas", "cores", "cpus"),
    [
        pytest.param(TWO_IN_ONE, "0-7", (0, 1), (0,), (0, 2, 4, 6), tuple(range(8)), id="everything"),
        pytest.param(TWO_IN_ONE, "0-4,6-7", (0,), (), (6, 0, 2), (4, 6, 7, 0, 1, 2, 3), id="the broken socket leads"),
        pytest.param(FOUR_NUMA, "0-3,5-15", (1,), (0, 2, 3), (6, 0, 2, 8, 10, 12, 14),
                     (5, 6, 7, 0, 1, 2, 3, *range(8, 16)), id="the broken node, then its neighbour in the socket"),
        pytest.param(CROSSED, "1-5", (1,), (1, 2), (2, 3, 1, 4, 5), (2, 3, 1, 4, 5),
                     id="a node counts to the socket in which it has CPUs left"),
        pytest.param(HYBRID, "1-5", (), (), (4, 5, 2), (4, 5, 1, 2, 3), id="hybrid: free is what has all its own"),
        pytest.param(TUTORIAL_NODE, "", (), (), (), (), id="nothing available"),
    ],
)  # fmt: skip
def test_what_is_free_and_in_which_order(
    machine: Topology,
    available: str,
    sockets: tuple[int, ...],
    numas: tuple[int, ...],
    cores: tuple[int, ...],
    cpus: tuple[int, ...],
) -> None:
    found = free_units(machine, CpuSet.parse(available))
    assert (found.sockets, found.numas, found.cores_in_order, found.cpus_in_order) == (sockets, numas, cores, cpus)
