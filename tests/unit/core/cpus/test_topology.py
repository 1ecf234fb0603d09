"""The machine's CPUs and how they lie together."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.cpus.topology import Cpu, Topology, UniformShape

shapes = st.fixed_dictionaries(
    {
        "sockets": st.integers(1, 3),
        "numa_per_socket": st.integers(1, 3),
        "cores_per_numa": st.integers(1, 6),
        "threads": st.integers(1, 3),
        "numbering": st.sampled_from(["split", "adjacent", "interleaved"]),
        "cores_per_l3": st.none() | st.integers(1, 6),
    }
)


@given(shapes)
def test_a_uniform_machine_has_the_counts_it_was_asked_for(shape: dict[str, Any]) -> None:
    machine = Topology.uniform(UniformShape(**shape))
    numas = shape["sockets"] * shape["numa_per_socket"]
    total = numas * shape["cores_per_numa"] * shape["threads"]
    assert list(machine.all) == list(range(total))
    assert (len(machine.numas), len(machine.sockets)) == (numas, shape["sockets"])
    assert len(machine.cores) == numas * shape["cores_per_numa"]
    assert machine.threads_per_core == shape["threads"]
    assert machine.smt == (shape["threads"] > 1)


@given(shapes)
def test_every_grouping_parts_the_cpus_and_the_smaller_lies_in_the_larger(shape: dict[str, Any]) -> None:
    machine = Topology.uniform(UniformShape(**shape))
    for groups in (machine.numas, machine.sockets, machine.cores):
        assert sum(len(cpus) for cpus in groups.values()) == len(machine.all)
        assert list(groups) == sorted(groups)
    for inner, outer in ((machine.cores, machine.numas), (machine.numas, machine.sockets)):
        assert all(sum(part <= whole for whole in outer.values()) == 1 for part in inner.values())


@given(shapes)
def test_a_core_is_named_after_its_lowest_cpu(shape: dict[str, Any]) -> None:
    machine = Topology.uniform(UniformShape(**shape))
    assert all(core == min(cpus) for core, cpus in machine.cores.items())
    assert [c for cores in machine.core_ids_by_numa.values() for c in cores] == [
        core for numa in machine.numas.values() for core in machine.cores if core in numa
    ]


@given(shapes, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(shape: dict[str, Any], random: Random) -> None:
    machine = Topology.uniform(UniformShape(**shape))
    rows = list(machine.cpus)
    random.shuffle(rows)
    assert Topology.of(rows) == machine


def test_the_machine_of_the_walk_through_has_siblings_24_apart() -> None:
    machine = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=12, threads=2))
    assert {str(cpus) for cpus in machine.numas.values()} == {"0-11,24-35", "12-23,36-47"}
    assert str(machine.cores[11]) == "11,35"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "no CPU"),
        ([Cpu(0, 0, 0, 0), Cpu(0, 0, 0, 1)], "given twice"),
        ([Cpu(0, 0, 0, 0), Cpu(1, 1, 0, 0)], "two NUMA nodes"),
    ],
    ids=["empty", "twice", "torn core"],
)
def test_what_is_no_machine_is_refused(rows: list[Cpu], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Topology.of(rows)


@pytest.mark.parametrize("field", ["sockets", "numa_per_socket", "cores_per_numa", "threads"])
def test_a_count_below_one_is_refused(field: str) -> None:
    shape: dict[str, Any] = {"sockets": 1, "numa_per_socket": 1, "cores_per_numa": 1, "threads": 1, field: 0}
    with pytest.raises(ValueError, match="at least 1"):
        Topology.uniform(UniformShape(**shape))


def test_the_same_core_id_in_two_sockets_is_two_cores() -> None:
    machine = Topology.of([Cpu(0, 0, 0, 0), Cpu(1, 1, 1, 0)])
    assert list(machine.cores) == [0, 1]
