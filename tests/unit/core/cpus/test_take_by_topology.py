"""Taking close together: free socket, L3 group, core, thread, in exactly this order."""

import pytest

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.taking.by_topology import take_by_topology
from shared.core.cpus.topology import Cpu, Topology, UniformShape
from shared.errors import Refused

TWO_SOCKETS = Topology.uniform(
    UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=4, threads=2, numbering="adjacent", cores_per_l3=2)
)
"""CPUs 0-7 and 8-15, siblings side by side, four CPUs an L3 group."""
HYBRID = Topology.of(
    [Cpu(cpu, 0, 0, cpu // 2, 0) for cpu in range(4)] + [Cpu(cpu, 0, 0, cpu, 1) for cpu in range(4, 8)]
)
"""Two cores of two threads (0-1, 2-3, L3 group 0), four of one (4-7, L3 group 1)."""
MANY_L3 = Topology.of(Cpu(cpu, cpu % 192 // 96, cpu % 192 // 96, cpu % 192, cpu % 24) for cpu in range(384))
"""An L3 group is every 24th CPU, on both sockets."""
ALIGNED = "1,25,49,73,193,217,241,265"


@pytest.mark.parametrize(
    ("machine", "available", "count", "align_l3", "taken"),
    [
        pytest.param(TWO_SOCKETS, "0-15", 0, True, "", id="nothing wanted"),
        pytest.param(TWO_SOCKETS, "0-15", -1, False, "", id="less than nothing wanted"),
        pytest.param(TWO_SOCKETS, "0-15", 8, False, "0-7", id="a free socket goes whole"),
        pytest.param(TWO_SOCKETS, "1-15", 8, False, "8-15", id="only a free one does"),
        pytest.param(TWO_SOCKETS, "1-15", 10, False, "2-3,8-15", id="a socket, then a core of the other"),
        pytest.param(TWO_SOCKETS, "1-15", 11, False, "1-3,8-15", id="a single CPU comes from the broken core"),
        pytest.param(TWO_SOCKETS, "1-15", 3, False, "1-3", id="the fuller socket gives first"),
        pytest.param(TWO_SOCKETS, "0-13", 4, False, "8-11", id="whatever its id"),
        pytest.param(TWO_SOCKETS, "0,2,4,6,9,11", 3, False, "0,9,11", id="no free core: from the fuller socket"),
        pytest.param(TWO_SOCKETS, "0-7", 6, True, "0-5", id="a whole L3 group, the rest in one other"),
        pytest.param(TWO_SOCKETS, "0-2,4-7,8-9", 2, True, "8-9", id="the group that fits exactly"),
        pytest.param(TWO_SOCKETS, "0-3,5-7", 2, True, "6-7", id="the smallest group that can hold it"),
        pytest.param(TWO_SOCKETS, "0-3,5-7", 2, False, "0-1", id="without alignment the lowest free core"),
        pytest.param(TWO_SOCKETS, "1-6,8", 5, True, "1-5", id="the largest group first, the lower id of two"),
        pytest.param(MANY_L3, f"{ALIGNED},0,24,48,72,96,120,144,168,192,216,240,264,288,312,336", 8, True, ALIGNED,
                     id="the example of Katalyst's own test"),
        pytest.param(HYBRID, "0-7", 3, False, "4-6", id="hybrid: small cores are whole cores"),
        pytest.param(HYBRID, "0-7", 6, False, "0-1,4-7", id="hybrid: small cores, then a large one"),
        pytest.param(HYBRID, "0-7", 5, False, "0,4-7", id="hybrid: one large core is broken when it must be"),
        pytest.param(HYBRID, "0-7", 2, True, "0-1", id="hybrid: inside the first of two like groups"),
        pytest.param(HYBRID, "1-7", 1, False, "4", id="hybrid: a small core before half of a large one"),
    ],
)  # fmt: skip
def test_exactly_these_cpus(machine: Topology, available: str, count: int, align_l3: bool, taken: str) -> None:
    assert str(take_by_topology(machine, CpuSet.parse(available), count, align_l3=align_l3)) == taken


def test_an_unknown_l3_is_a_group_like_any_other() -> None:
    machine = Topology.of(Cpu(cpu, 0, 0, cpu, -1 if cpu < 4 else 7) for cpu in range(8))
    assert str(take_by_topology(machine, CpuSet.parse("0-2,4-7"), 2, align_l3=True)) == "0-1"


def test_too_few_cpus_are_refused_with_both_numbers() -> None:
    with pytest.raises(Refused, match=r"3 CPUs wanted, 2 available \(0,9\)") as refused:
        take_by_topology(TWO_SOCKETS, CpuSet.parse("0,9"), 3)
    assert refused.value.reason == "not_enough_cpus"
