"""The score of a machine for a bound pod."""

from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.scheduling.numa.binding import BindableContainer, BindablePod, NumaBinding
from services.central.core.scheduling.numa.machine import Machine, NumaNode, TopologyPolicy
from services.central.core.scheduling.numa.score import NumaScore, NumaScoring, numa_score

Amounts = Mapping[str, int]
LEAST, MOST, BALANCED = NumaScoring("least_allocated"), NumaScoring("most_allocated"), NumaScoring("balanced")
DYNAMIC = NumaBinding()


def bare(
    *free: Amounts, allocatable: Amounts | None = None, topology: TopologyPolicy = "single_numa_container"
) -> Machine:
    """A machine of nodes on which this much is free."""
    return Machine(topology, tuple(NumaNode(i, allocatable or one, one, one) for i, one in enumerate(free)))


def bound(*requests: Amounts, exclusive: bool = False) -> BindablePod:
    containers = tuple(BindableContainer(f"c{i}", one) for i, one in enumerate(requests))
    return BindablePod(containers, "dedicated_cores", numa_binding=True, numa_exclusive=exclusive)


def score(pod: BindablePod, machine: Machine, scoring: NumaScoring = LEAST) -> int:
    return numa_score(pod, DYNAMIC, machine, scoring).score


def test_a_pod_that_nobody_binds_likes_every_machine_and_one_that_is_bound_none_that_does_not_bind() -> None:
    free = {"cpu": 4000, "memory": 4}
    unbound = BindablePod((BindableContainer("c", free),))
    assert numa_score(unbound, DYNAMIC, bare(free), LEAST) == NumaScore(100)
    assert numa_score(bound(free), DYNAMIC, bare(free, topology="none"), LEAST) == NumaScore(0)


@pytest.mark.parametrize(
    ("scoring", "wanted"),
    [
        pytest.param(LEAST, 62, id="least"),
        pytest.param(MOST, 37, id="most"),
        pytest.param(BALANCED, 96, id="balanced"),
        pytest.param(NumaScoring("least_allocated", {"cpu": 3, "memory": 1}), 68, id="weights"),
        pytest.param(NumaScoring("least_allocated", {"cpu": 0, "memory": -5}), 62, id="a weight below 1 is 1"),
    ],
)
def test_a_node_is_scored_over_what_is_asked_for(scoring: NumaScoring, wanted: int) -> None:
    assert score(bound({"cpu": 1000, "memory": 2, "x/y": 9}), bare({"cpu": 4000, "memory": 4}), scoring) == wanted


@pytest.mark.parametrize(
    ("scoring", "wanted"), [pytest.param(LEAST, 50, id="least"), pytest.param(MOST, 50, id="most"),
                            pytest.param(BALANCED, 100, id="balanced: one resource is balanced")],
)  # fmt: skip
def test_what_is_not_asked_for_has_no_say(scoring: NumaScoring, wanted: int) -> None:
    assert score(bound({"cpu": 500, "memory": 0}), bare({"cpu": 1000, "memory": 7}), scoring) == wanted


@pytest.mark.parametrize(
    ("free", "scoring", "wanted"),
    [
        pytest.param({"cpu": 500, "memory": 4}, LEAST, 25, id="least: too little of one"),
        pytest.param({"cpu": 500, "memory": 4}, MOST, 25, id="most: too little of one"),
        pytest.param({"cpu": 500, "memory": 4}, BALANCED, 0, id="balanced: too little of one"),
        pytest.param({"cpu": 0, "memory": 4}, LEAST, 25, id="least: none of one"),
        pytest.param({"cpu": 0, "memory": 4}, BALANCED, 87, id="balanced: none of one counts as all of it"),
    ],
)
def test_too_little_of_a_resource_scores_nothing(free: Amounts, scoring: NumaScoring, wanted: int) -> None:
    assert score(bound({"cpu": 1000, "memory": 2}), bare(free), scoring) == wanted


def test_the_smallest_score_above_zero_is_the_containers_and_their_mean_the_machines() -> None:
    machine = bare({"cpu": 100, "memory": 0}, {"cpu": 4000, "memory": 0}, {"cpu": 2000, "memory": 0})
    found = numa_score(bound({"cpu": 1000}, {"cpu": 3000}, {"cpu": 9000}, {"x/y": 1}), DYNAMIC, machine, LEAST)
    assert found == NumaScore(25, {"c0": 50, "c1": 25, "c2": 0})


def test_a_pod_that_asks_for_nothing_that_is_scored_likes_every_machine() -> None:
    assert numa_score(bound({"x/y": 1}), DYNAMIC, bare({"cpu": 1}), BALANCED) == NumaScore(100)


def test_kubelets_score_counts_all_resources_and_the_pod_as_a_whole() -> None:
    pod = BindablePod(
        (BindableContainer("a", {"cpu": 1000, "memory": 1}), BindableContainer("b", {"cpu": 1000, "memory": 1}))
    )
    machine = bare({"cpu": 4000, "memory": 4}, topology="single_numa_pod")
    assert numa_score(pod, NumaBinding("native"), machine, LEAST) == NumaScore(50, {"pod": 50})


def test_for_an_exclusive_pod_a_node_that_is_not_idle_has_nothing() -> None:
    machine = bare({"cpu": 4000}, {"cpu": 3000}, allocatable={"cpu": 4000})
    assert score(bound({"cpu": 1000}), machine) == 66
    assert score(bound({"cpu": 1000}, exclusive=True), machine) == 75


def test_exclusive_and_numeric_is_scored_on_sets_of_as_few_nodes_as_do() -> None:
    machine = bare(*[{"cpu": 4000, "memory": 8}] * 3, topology="numeric_container")
    assert score(bound({"cpu": 6000, "memory": 4}, exclusive=True), machine) == (25 + 75) // 2
    assert score(bound({"cpu": 6000, "memory": 4}), machine) == 25, "one node each: too few CPUs on any"


@given(
    st.lists(st.fixed_dictionaries({"cpu": st.integers(0, 9), "memory": st.integers(0, 9)}), min_size=1, max_size=4),
    st.lists(st.fixed_dictionaries({"cpu": st.integers(0, 9), "memory": st.integers(0, 9)}), max_size=3),
    st.sampled_from([LEAST, MOST, BALANCED]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_law_scores_lie_within_bounds_whatever_the_order_of_nodes(
    free: list[Amounts], requests: list[Amounts], scoring: NumaScoring, exclusive: bool, order: Random
) -> None:
    shuffled = order.sample(free, len(free))
    pod = bound(*requests, exclusive=exclusive)
    for topology in ("single_numa_container", "numeric_container"):
        found = [numa_score(pod, DYNAMIC, bare(*nodes, topology=topology), scoring) for nodes in (free, shuffled)]
        assert found[0] == found[1]
        assert all(0 <= one <= 100 for one in (found[0].score, *found[0].containers.values()))
