"""Scores by what is taken of a node: the four strategies, what they count, and what they refuse."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.scheduling.allocation_score import (
    AllocationScoring,
    AllocationStrategy,
    ScoredResource,
    ShapePoint,
)
from shared.contracts.pod import RECLAIMED_CPU, RECLAIMED_MEMORY, TUTORIAL_RECLAIMED_CPU
from shared.errors import Refused

CPU, MEMORY = ScoredResource(RECLAIMED_CPU), ScoredResource(RECLAIMED_MEMORY)
MIB = 1 << 20


def amounts(cpu_millis: int, memory_bytes: int = 0) -> dict[str, int]:
    return {RECLAIMED_CPU: cpu_millis, RECLAIMED_MEMORY: memory_bytes}


def shape(*points: tuple[int, int]) -> tuple[ShapePoint, ...]:
    return tuple(ShapePoint(*point) for point in points)


def ratio(*points: tuple[int, int]) -> AllocationScoring:
    return AllocationScoring("requested_to_capacity_ratio", (CPU,), shape(*points))


@pytest.mark.parametrize(
    ("strategy", "score"),
    [
        pytest.param("least_allocated", 26, id="least"),
        pytest.param("most_allocated", 72, id="most"),
        pytest.param("requested_to_capacity_ratio", 70, id="ratio"),
    ],
)
def test_the_figures_of_a_worked_example(strategy: AllocationStrategy, score: int) -> None:
    resources = (ScoredResource(RECLAIMED_CPU, 30), ScoredResource(RECLAIMED_MEMORY, 70))
    scoring = AllocationScoring(strategy, resources, shape((10, 3), (20, 4), (50, 7)))
    assert scoring.score(amounts(3000, 3), amounts(9000, 12), amounts(5000, 5)) == score


@pytest.mark.parametrize(
    ("strategy", "taken", "score"),
    [
        pytest.param("least_allocated", amounts(1001), 50, id="least: more than there is is no less than nothing"),
        pytest.param("most_allocated", amounts(5000), 50, id="most: more than there is is all of it"),
        pytest.param("balanced", amounts(5000, 10), 100, id="balanced: more than there is is all of it"),
        pytest.param("balanced", amounts(500, 10), 75, id="balanced: half the distance"),
    ],
)
def test_a_node_that_is_full(strategy: AllocationStrategy, taken: dict[str, int], score: int) -> None:
    assert AllocationScoring(strategy, (CPU, MEMORY)).score({}, amounts(1000, 10), taken) == score


@pytest.mark.parametrize("strategy", ["least_allocated", "most_allocated", "requested_to_capacity_ratio", "balanced"])
def test_a_node_that_offers_nothing_scores_nothing(strategy: AllocationStrategy) -> None:
    assert AllocationScoring(strategy, (CPU,), shape((0, 5))).score(amounts(1), amounts(0), {}) == 0


def test_a_resource_that_a_node_does_not_offer_has_no_say() -> None:
    scoring = AllocationScoring("least_allocated", (CPU, MEMORY))
    assert scoring.score(amounts(250, 99), amounts(1000), {}) == 75


def test_more_than_two_are_balanced_by_their_deviation() -> None:
    three = (CPU, MEMORY, ScoredResource("x/y"))
    scoring = AllocationScoring("balanced", three)
    assert scoring.score({}, amounts(100, 100) | {"x/y": 100}, amounts(0, 50) | {"x/y": 100}) == 59


@pytest.mark.parametrize(
    ("points", "used", "score"),
    [
        pytest.param([(20, 3), (80, 9)], 0, 30, id="flat before the first"),
        pytest.param([(20, 3), (80, 9)], 50, 60, id="straight between"),
        pytest.param([(20, 3), (80, 9)], 100, 90, id="flat behind the last"),
        pytest.param([(0, 10), (30, 0)], 10, 67, id="a falling line is cut towards zero"),
        pytest.param([(0, 0), (100, 10)], 101, 100, id="more than there is reads the line at its end"),
    ],
)
def test_the_ratio_reads_a_broken_line(points: list[tuple[int, int]], used: int, score: int) -> None:
    assert ratio(*points).score(amounts(used), amounts(100), {}) == score


def test_what_scores_zero_leaves_the_weights_and_halves_go_up() -> None:
    resources = (ScoredResource(RECLAIMED_CPU, 2), ScoredResource(RECLAIMED_MEMORY, 2), ScoredResource("x/y", 50))
    scoring = AllocationScoring("requested_to_capacity_ratio", resources, shape((0, 0), (100, 10)))
    capacity = amounts(100, 100) | {"x/y": 100}
    assert scoring.score(amounts(10, 11), capacity, {}) == 11


@pytest.mark.parametrize(
    ("strategy", "init", "running", "wanted"),
    [
        pytest.param("least_allocated", [], [{}, {RECLAIMED_CPU: 5}], amounts(105, 400 * MIB), id="what is not named"),
        pytest.param("least_allocated", [], [amounts(0, 0)], amounts(0, 0), id="a written zero stays"),
        pytest.param("most_allocated", [{}], [amounts(5, 5)], amounts(100, 200 * MIB), id="an init container too"),
        pytest.param("most_allocated", [], [{TUTORIAL_RECLAIMED_CPU: 7}], amounts(7, 200 * MIB), id="either spelling"),
        pytest.param("balanced", [], [{RECLAIMED_CPU: 5}], {RECLAIMED_CPU: 5}, id="balanced counts what is written"),
    ],
)  # fmt: skip
def test_what_a_pod_does_not_name_counts_a_little(
    strategy: AllocationStrategy,
    init: list[Mapping[str, int]],
    running: list[Mapping[str, int]],
    wanted: Mapping[str, int],
) -> None:
    assert AllocationScoring(strategy, (CPU, MEMORY)).request(init, running, {}) == wanted


def test_overhead_is_added_and_other_resources_have_no_usual_amount() -> None:
    scoring = AllocationScoring("least_allocated", (CPU, ScoredResource("x/y")))
    assert scoring.request([], [{}], {RECLAIMED_CPU: 50}) == {RECLAIMED_CPU: 150}


@pytest.mark.parametrize(
    ("strategy", "weight", "points", "reason"),
    [
        pytest.param("least_allocated", 0, [], "invalid_weight", id="weight below 1"),
        pytest.param("most_allocated", 101, [], "invalid_weight", id="weight above 100"),
        pytest.param("balanced", 2, [], "invalid_weight", id="balanced weighs nothing"),
        pytest.param("requested_to_capacity_ratio", 1, [], "invalid_shape", id="no shape"),
        pytest.param("requested_to_capacity_ratio", 1, [(5, 1), (5, 2)], "invalid_shape", id="does not rise"),
        pytest.param("requested_to_capacity_ratio", 1, [(-1, 1)], "invalid_shape", id="utilization below 0"),
        pytest.param("requested_to_capacity_ratio", 1, [(101, 1)], "invalid_shape", id="utilization above 100"),
        pytest.param("requested_to_capacity_ratio", 1, [(5, 11)], "invalid_shape", id="score above 10"),
        pytest.param("requested_to_capacity_ratio", 1, [(5, -1)], "invalid_shape", id="score below 0"),
    ],
)
def test_weights_and_shapes_out_of_bounds_are_refused(
    strategy: AllocationStrategy, weight: int, points: list[tuple[int, int]], reason: str
) -> None:
    with pytest.raises(Refused) as refused:
        AllocationScoring(strategy, (ScoredResource(RECLAIMED_CPU, weight),), shape(*points))
    assert refused.value.reason == reason


def test_a_shape_that_nobody_reads_is_not_judged() -> None:
    AllocationScoring("least_allocated", (CPU,), shape((500, 500)))


OFFERS = st.fixed_dictionaries({name: st.integers(0, 99) for name in amounts(0)})


@given(OFFERS, OFFERS, OFFERS, OFFERS)
def test_law_scores_lie_within_bounds_and_least_and_most_run_against_each_other(
    wanted: dict[str, int], capacity: dict[str, int], taken: dict[str, int], more: dict[str, int]
) -> None:
    fuller = {name: taken[name] + more[name] for name in taken}
    found: dict[str, list[int]] = {}
    for strategy in ("least_allocated", "most_allocated", "balanced"):
        scores = [
            [AllocationScoring(strategy, resources).score(wanted, capacity, there) for there in (taken, fuller)]
            for resources in ((CPU, MEMORY), (MEMORY, CPU))
        ]
        assert scores[0] == scores[1]
        assert all(0 <= score <= 100 for score in scores[0])
        found[strategy] = scores[0]
    assert found["least_allocated"][1] <= found["least_allocated"][0]
    assert found["most_allocated"][0] <= found["most_allocated"][1]
