"""Dies, L3 groups, isolated CPUs and cores of different sizes."""

from collections.abc import Mapping
from typing import TypeVar

from hypothesis import given
from machines import irregular, regular

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Cpu, Topology

HYBRID = Topology.of(Cpu(cpu, 0, 0, cpu // 2 if cpu < 4 else cpu, 0 if cpu < 8 else -1) for cpu in range(10))
"""Two cores of two threads, four of one that share their L3, two of one without any."""


Name = TypeVar("Name")


def texts(groups: Mapping[Name, CpuSet]) -> dict[Name, str]:
    return {name: str(cpus) for name, cpus in groups.items()}


def test_the_same_core_id_on_two_dies_is_two_cores() -> None:
    rows = [Cpu(die * 2 + cpu, 0, 0, cpu, die=die) for die in (0, 1) for cpu in (0, 1)]
    machine = Topology.of(rows)
    assert texts(machine.cores) == {0: "0", 1: "1", 2: "2", 3: "3"}
    assert texts(machine.dies) == {(0, 0): "0-1", (0, 1): "2-3"}


def test_die_ids_begin_anew_in_every_socket() -> None:
    machine = Topology.of(Cpu(cpu, 0, cpu // 2, cpu, die=cpu % 2) for cpu in range(4))
    assert texts(machine.dies) == {(0, 0): "0", (0, 1): "1", (1, 0): "2", (1, 1): "3"}


def test_cpus_of_an_unknown_l3_are_one_group() -> None:
    assert texts(HYBRID.l3_groups) == {-1: "8-9", 0: "0-7"}


def test_a_machine_with_some_cores_of_two_threads_has_smt() -> None:
    assert HYBRID.smt
    assert HYBRID.threads_per_core == 1
    assert not Topology.of(Cpu(cpu, 0, 0, cpu) for cpu in range(4)).smt


def test_isolated_cpus_are_of_the_machine_but_not_placeable() -> None:
    machine = Topology.of(HYBRID.cpus, CpuSet.parse("2-3,9,40"))
    assert machine.all == HYBRID.all
    assert (str(machine.isolated), str(machine.placeable)) == ("2-3,9", "0-1,4-8")
    assert machine != HYBRID


def test_where_every_cpu_is_isolated_all_are_placeable_since_none_would_be_left() -> None:
    assert Topology.of(HYBRID.cpus, HYBRID.all).placeable == HYBRID.all
    assert HYBRID.placeable == HYBRID.all


@given(regular(max_threads=3) | irregular())
def test_every_grouping_parts_the_cpus_and_cores_are_listed_where_they_lie(machine: Topology) -> None:
    for groups in (machine.sockets, machine.numas, machine.cores, machine.l3_groups, machine.dies):
        assert sum(map(len, groups.values())) == len(machine.all)
        assert CpuSet(sum(cpus.mask for cpus in groups.values())) == machine.all
        assert list(groups) == sorted(groups)
    for groups, cores_by in ((machine.sockets, machine.cores_by_socket), (machine.numas, machine.cores_by_numa)):
        assert list(cores_by) == list(groups)
        for name, cores in cores_by.items():
            assert list(cores) == [(core, cpus.mask) for core, cpus in machine.cores.items() if cpus <= groups[name]]
