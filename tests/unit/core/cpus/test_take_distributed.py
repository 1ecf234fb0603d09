"""Taking evenly over few NUMA nodes: worked choices, and the search for the most even one."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.cpus.cpuset import CpuSet
from shared.core.cpus.topology import Topology, UniformShape
from shared.errors import Refused
from sublet.reference.distributed import take_distributed
from sublet.reference.even_split import MOST_STEPS, even_parts
from sublet.reference.packed import take_packed

TUTORIAL_NODE = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=12, threads=2))
THREE = Topology.uniform(UniformShape(sockets=3, numa_per_socket=1, cores_per_numa=4, threads=1))
"""Nodes 0-3, 4-7 and 8-11, one thread a core."""


@pytest.mark.parametrize(
    ("machine", "available", "count", "group", "taken"),
    [
        pytest.param(TUTORIAL_NODE, "0-47", 0, 1, "", id="nothing wanted"),
        pytest.param(TUTORIAL_NODE, "0-47", -2, 2, "", id="less than nothing wanted"),
        pytest.param(TUTORIAL_NODE, "0-47", 24, 1, "0-11,24-35", id="one node can hold it"),
        pytest.param(TUTORIAL_NODE, "0-47", 26, 2, "0-6,12-17,24-30,36-41", id="even, the rest as a group"),
        pytest.param(TUTORIAL_NODE, "0-47", 26, 1, "0-6,12-18,24-29,36-41", id="even, CPU by CPU"),
        pytest.param(TUTORIAL_NODE, "0-47", 3, 2, "0-1,24", id="no multiple of the group: packed"),
        pytest.param(TUTORIAL_NODE, "0-10,12-47", 24, 1, "12-23,36-47", id="the node that can hold it"),
        pytest.param(
            TUTORIAL_NODE, "0-10,12-46", 30, 2, "0-7,12-18,24-31,36-42", id="like nodes, the lower id gives the rest"
        ),
        pytest.param(THREE, "0-3,4-5,8-11", 2, 1, "0-1", id="the choice that leaves the nodes even, the first of two"),
        pytest.param(THREE, "0,4,8", 3, 3, "0,4,8", id="no node holds a group: packed"),
        pytest.param(THREE, "0-1,4-7,8-10", 6, 1, "4-6,8-10", id="two nodes evenly rather than three"),
    ],
)
def test_exactly_these_cpus(machine: Topology, available: str, count: int, group: int, taken: str) -> None:
    assert str(take_distributed(machine, CpuSet.parse(available), count, group_cpus=group)) == taken


def test_too_few_cpus_are_refused_with_both_numbers() -> None:
    with pytest.raises(Refused, match="4 CPUs wanted, 3 available") as refused:
        take_distributed(TUTORIAL_NODE, CpuSet.parse("0-2"), 4, group_cpus=2)
    assert refused.value.reason == "not_enough_cpus"


@pytest.mark.parametrize("group", [0, -1])
def test_a_group_of_no_cpu_is_an_error(group: int) -> None:
    with pytest.raises(ValueError, match=f"group_cpus {group}: want at least 1"):
        take_distributed(TUTORIAL_NODE, TUTORIAL_NODE.all, 4, group_cpus=group)


@pytest.mark.parametrize(
    ("free", "count", "group", "fewest", "parts"),
    [
        pytest.param([8, 8], 4, 1, 1, [(0, 4)], id="the first of like nodes"),
        pytest.param([4, 8], 4, 1, 1, [(1, 4)], id="the node whose taking evens"),
        pytest.param([4, 8, 8], 6, 2, 2, [(1, 2), (2, 2), (1, 2)], id="the rest goes where it evens"),
        pytest.param([2, 2], 5, 1, 1, None, id="nothing fits"),
        pytest.param([3, 3], 4, 2, 1, [(0, 2), (1, 2)], id="not in one node, so in two"),
        pytest.param([3, 1], 4, 2, 1, None, id="enough CPUs, not enough groups"),
        pytest.param(
            [7, 8, 6, 15], 21, 3, 4, [(0, 3), (1, 3), (2, 3), (3, 3), (3, 3), (3, 3), (3, 3)],
            id="givers with enough CPUs for the rest but not in groups are passed over",
        ),
        pytest.param([4, 5, 4], 2, 1, 2, [(0, 1), (1, 1)], id="the first of two choices that leave the same"),
        pytest.param(
            [10, 7, 1, 1, 1, 1], 11, 1, 6, [*((node, 1) for node in range(6)), (0, 1), (1, 1), (0, 1), (1, 1), (0, 1)],
            id="of givers that leave the same the larger number",
        ),
        pytest.param([10000, 10001, 1, 1], 1, 1, 1, [(0, 1)], id="equal to a thousandth of a CPU is equal"),
        pytest.param([1, 927, 928], 1, 1, 1, [(1, 1)], id="rounded to the nearer thousandth"),
        pytest.param([16] * 64, 320, 2, 20, [(node, 16) for node in range(20)], id="many like nodes cost nothing"),
    ],
)  # fmt: skip
def test_parts(free: list[int], count: int, group: int, fewest: int, parts: list[tuple[int, int]] | None) -> None:
    assert even_parts(free, count, group, fewest) == parts


def test_nodes_that_are_all_different_are_searched_for_a_bounded_number_of_steps() -> None:
    free = list(range(100, 140))
    parts = even_parts(free, 2000, 1, 17)
    assert 3 ** len(free) > MOST_STEPS
    assert parts is not None
    assert sum(cpus for _, cpus in parts) == 2000


def _could_split(free: list[int], count: int, group: int, nodes: int) -> bool:
    """Whether any choice of so many nodes holds the count in groups, with an equal share on each."""
    share = count // nodes // group * group
    return any(
        min(chosen) >= share and sum(cpus // group for cpus in chosen) * group >= count
        for chosen in combinations(free, nodes)
    )


@given(st.lists(st.integers(1, 12), min_size=1, max_size=7), st.integers(1, 3), st.data())
def test_parts_fit_their_nodes_are_groups_and_make_up_the_count(
    free: list[int], group: int, data: st.DataObject
) -> None:
    count = group * data.draw(st.integers(1, max(1, sum(free) // group)))
    parts = even_parts(free, count, group, 1)
    if parts is None:
        assert not any(_could_split(free, count, group, nodes) for nodes in range(1, count // group + 1))
        return
    given_by = {node: sum(cpus for other, cpus in parts if other == node) for node, _ in parts}
    assert sum(given_by.values()) == count
    assert all(cpus <= free[node] and cpus % group == 0 for node, cpus in given_by.items())


@given(st.integers(1, 24))
def test_what_one_node_can_hold_is_taken_as_packed_takes_it(count: int) -> None:
    assert take_distributed(TUTORIAL_NODE, TUTORIAL_NODE.all, count) == take_packed(
        TUTORIAL_NODE, TUTORIAL_NODE.all, count
    )
