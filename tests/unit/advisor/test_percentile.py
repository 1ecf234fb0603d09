"""The policy `percentile`: laws over whole courses of rounds, and what a young container counts."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.advisor.core.model.figures import Figures, NodeMemory, Resident
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import ContainerView, Signs, View
from services.advisor.core.policy import Demand
from services.advisor.policies.percentile import POLICY, ContainerPast, PercentileSettings
from shared.contracts.pod import QosClass

GIB = 1 << 30
BOUNDS = Bounds.of(48, smt=True)
OLD = PercentileSettings(cold_start_s=0)
"""No container is ever young."""


def container(
    name: str = "a",
    usage: float | None = None,
    request: float = 2.0,
    load1: float | None = None,
    qos: QosClass = "shared_cores",
    held: int | None = None,
    uid: str | None = None,
) -> ContainerView:
    return ContainerView(f"default/{name}", uid or f"uid-{name}", "main", qos, request, GIB,
                         Figures(usage, load1), Resident(held))  # fmt: skip


def view(*containers: ContainerView, **over: Any) -> View:
    return View(BOUNDS, containers, NodeMemory(total_bytes=100 * GIB), **over)


def lived(
    views: list[View],
    settings: PercentileSettings = OLD,
    period_s: float = 10.0,
    state: Mapping[tuple[str, str], ContainerPast] | None = None,
    start_s: float = 0.0,
) -> tuple[Mapping[tuple[str, str], ContainerPast], Demand]:
    """State and demand after one round for each view."""
    state = POLICY.start() if state is None else state
    for round_, seen in enumerate(views):
        state, demand = POLICY.judge(state, seen, start_s + round_ * period_s, settings)
    return state, demand


usages = st.floats(0, 64)
courses = st.lists(st.tuples(st.floats(0.05, 400), st.lists(usages, min_size=2, max_size=2)), min_size=1, max_size=40)


def rounds(course: list[tuple[float, list[float]]]) -> list[tuple[float, View]]:
    """(time, view) of a course of two containers."""
    times = accumulate(passed_s for passed_s, _ in course)
    return [(t, view(*(container("ab"[i], use, held=int(use * GIB)) for i, use in enumerate(uses))))
            for t, (_, uses) in zip(times, course, strict=True)]  # fmt: skip


@given(course=courses, young_s=st.sampled_from([0.0, 1800.0]))
def test_the_tenants_never_count_less_than_they_use_now(
    course: list[tuple[float, list[float]]], young_s: float
) -> None:
    state, settings = POLICY.start(), PercentileSettings(cold_start_s=young_s)
    for now_s, seen in rounds(course):
        state, demand = POLICY.judge(state, seen, now_s, settings)
        assert demand.cores >= sum(present(c.cpu.usage_cores) for c in seen.containers) - 1e-9
        assert demand.memory_bytes >= sum(present(c.memory.rss_bytes) for c in seen.containers)


@given(course=courses, margin=st.floats(0, 500), more=st.floats(0, 500))
def test_a_larger_margin_never_gives_tenants_less(
    course: list[tuple[float, list[float]]], margin: float, more: float
) -> None:
    demands = []
    for percent in (margin, margin + more):
        state, settings = POLICY.start(), PercentileSettings(cold_start_s=0, margin_percent=percent)
        for now_s, seen in rounds(course):
            state, demand = POLICY.judge(state, seen, now_s, settings)
        demands.append(demand)
    assert demands[0].cores <= demands[1].cores
    assert demands[0].memory_bytes <= demands[1].memory_bytes


@given(course=courses, extra=st.floats(0, 32))
def test_more_use_now_never_gives_tenants_less_whatever_the_past(
    course: list[tuple[float, list[float]]], extra: float
) -> None:
    *before, (now_s, last) = rounds(course)
    state = POLICY.start()
    for at_s, seen in before:
        state, _ = POLICY.judge(state, seen, at_s, OLD)
    first, *rest = last.containers
    busier = replace(first, cpu=Figures(present(first.cpu.usage_cores) + extra))
    _, less = POLICY.judge(state, last, now_s, OLD)
    _, more = POLICY.judge(state, replace(last, containers=(busier, *rest)), now_s, OLD)
    assert more.cores >= less.cores


def test_a_spike_that_was_never_seen_before_counts_in_the_round_that_sees_it() -> None:
    state, quiet = lived([view(container(usage=1.0))] * 500)
    _, spike = POLICY.judge(state, view(container(usage=30.0)), 5000.0, OLD)
    assert quiet.cores < 1.3
    assert spike.cores == 30.0


def test_a_peak_that_comes_again_and_again_stays_reserved_between_its_visits() -> None:
    """One minute in ten at 8 cores is more than a twentieth of the time."""
    day = [view(container(usage=8.0 if second % 60 < 6 else 1.0)) for second in range(1000)]
    _, demand = lived(day)
    assert day[-1].containers[0].cpu.usage_cores == 1.0
    assert 8 * 1.1 <= demand.cores <= 8 * 1.1 * 1.06


def test_what_queues_counts_like_what_runs() -> None:
    _, demand = lived([view(container(usage=1.0, load1=6.0))])
    assert demand.cores == 6.0


def test_a_container_that_has_gone_leaves_nothing_behind() -> None:
    """Also when its successor has its name: the key is the pod's UID."""
    state, _ = lived([view(container("a", 20.0), container("b", 1.0))] * 100)
    assert set(state) == {("uid-a", "main"), ("uid-b", "main")}
    state, _ = POLICY.judge(state, view(container("a", 1.0, uid="successor")), 1000.0, OLD)
    assert set(state) == {("successor", "main")}
    _, demand = POLICY.judge(state, view(container("a", 1.0, uid="successor")), 1010.0, OLD)
    assert demand.cores == pytest.approx(1.0, rel=0.2)


def test_reclaimed_pods_count_nothing_and_are_not_remembered() -> None:
    state, demand = lived([view(container(usage=9.0, held=GIB, qos="reclaimed_cores"))])
    assert (dict(state), demand.cores, demand.memory_bytes) == ({}, 0.0, 0)


def test_dedicated_containers_count_their_request() -> None:
    _, demand = lived([view(container(usage=0.5, request=6.0, qos="dedicated_cores"))] * 10)
    assert demand.cores == 6.0


@pytest.mark.parametrize(
    ("settings", "now_s", "cores"),
    [
        pytest.param(PercentileSettings(), 100.0, 2.5, id="young: canonical, 1.25 x usage"),
        pytest.param(PercentileSettings(cold_start="request"), 100.0, 8.0, id="young: its request"),
        pytest.param(PercentileSettings(cold_start_s=100), 100.0, 2.2, id="no longer young"),
        pytest.param(PercentileSettings(cold_start_s=0), 100.0, 2.2, id="never young"),
    ],
)
def test_what_a_young_container_counts(settings: PercentileSettings, now_s: float, cores: float) -> None:
    state, _ = lived([view(container(usage=2.0, request=8.0))] * 10, settings)
    _, demand = POLICY.judge(state, view(container(usage=2.0, request=8.0)), now_s, settings)
    assert demand.cores == pytest.approx(cores, rel=0.05)
    assert demand.cores >= cores


def test_a_container_without_figures_counts_its_request_and_keeps_its_past() -> None:
    state, _ = lived([view(container(usage=5.0, held=3 * GIB, request=2.0))] * 100)
    after, blind = POLICY.judge(state, view(container(usage=5.0)).blind(), 1000.0, OLD)
    assert blind.cores >= 5.0 * 1.1
    assert blind.memory_bytes >= 3 * GIB * 1.1
    assert after == state
    _, more = POLICY.judge(state, view(container(request=40.0)).blind(), 1000.0, OLD)
    assert more.cores == 40.0


def test_what_the_pool_is_seen_to_use_is_the_least_that_counts() -> None:
    _, demand = lived([view(container(usage=1.0), tenants_usage_cores=12.0)])
    assert demand.cores == 12.0


def test_tasks_that_wait_in_the_tenants_pool_need_a_cpu_each_at_once() -> None:
    _, demand = lived([view(container(usage=8.0), tenants_usage_cores=8.0, signs=Signs(waiting_tasks=32.0))])
    assert demand.cores == 40.0


def test_memory_counts_its_high_percentile_above_what_is_held_now() -> None:
    state, _ = lived([view(container(usage=1.0, held=8 * GIB))] * 100)
    _, demand = POLICY.judge(state, view(container(usage=1.0, held=GIB)), 1000.0, OLD)
    assert 8 * GIB * 1.1 <= demand.memory_bytes <= 8 * GIB * 1.1 * 1.05


def test_the_state_of_a_round_is_not_changed_by_the_next() -> None:
    state, _ = lived([view(container(usage=1.0))] * 20)
    kept = dict(state)
    POLICY.judge(state, view(container(usage=9.0), container("b", 1.0)), 300.0, OLD)
    assert state == kept


def test_the_reason_names_the_largest_and_counts_the_young() -> None:
    _, demand = lived([view(*(container(f"c{i:02}", float(i)) for i in range(12)))], PercentileSettings())
    (why,) = demand.why
    assert why.numbers["default/c11/main"] == 11 * 1.25
    assert "default/c01/main" not in why.numbers
    assert (why.numbers["containers"], why.numbers["young"]) == (12, 12)
