"""Who is noisy enough for CPUs of its own, for how long, and how many at most."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.sizing.isolation import ContainerTasks, Isolation, IsolationRules, isolate

EASY = IsolationRules(lock_in_threshold=1, max_resource_ratio=1, max_pod_ratio=1)


def pods(**runnable: float | None) -> list[ContainerTasks]:
    """One container of 4 cores for each pod."""
    return [ContainerTasks(pod, "main", "share", 4.0, tasks) for pod, tasks in runnable.items()]


@pytest.mark.parametrize(
    ("rules", "runners", "before", "isolated"),
    [
        pytest.param(EASY, pods(a=7, b=1), (), {"a"}, id="more than 4 x 1.5 tasks"),
        pytest.param(EASY, pods(a=6, b=1), (), set(), id="exactly 6 tasks are not more"),
        pytest.param(replace(EASY, cpu_size=9), pods(a=6.1, b=1), (), {"a"}, id="more than 4 x 1.5, not 4 + 9 tasks"),
        pytest.param(replace(EASY, cpu_ratio=9), pods(a=6.1, b=1), (), {"a"}, id="more than 4 + 2 tasks"),
        pytest.param(EASY, pods(a=9, b=9), (), {"b"}, id="never the last pod, the last name goes first"),
        pytest.param(replace(EASY, max_pod_ratio=0.5), pods(a=9, b=9, c=9, d=1), (), {"b", "c"}, id="half the pods"),
        pytest.param(replace(EASY, max_resource_ratio=0.3), pods(a=9, b=9, c=9, d=1), (), {"c"}, id="0.3 of the cores"),
        pytest.param(replace(EASY, lock_in_threshold=3), pods(a=9, b=1), (), set(), id="one hit of three"),
        pytest.param(replace(EASY, lock_in_threshold=3), pods(a=9, b=1), ("a",), {"a"}, id="stays while noisy"),
        pytest.param(EASY, pods(a=1, b=1), ("a",), {"a"}, id="stays for the lock-out"),
        pytest.param(replace(EASY, lock_out_s=0), pods(a=1, b=1), ("a",), set(), id="no lock-out"),
        pytest.param(EASY, pods(a=None, b=1), ("a",), {"a"}, id="not measured: as it was"),
        pytest.param(EASY, pods(a=None, b=1), (), set(), id="not measured: not isolated"),
        pytest.param(replace(EASY, disabled_pools=frozenset({"share"})), pods(a=9, b=1), ("a",), set(), id="disabled"),
        pytest.param(replace(EASY, max_pod_ratio=0), pods(a=9, b=1), ("a",), set(), id="limits hold for who stays too"),
    ],
)
def test_one_round(
    rules: IsolationRules, runners: list[ContainerTasks], before: tuple[str, ...], isolated: set[str]
) -> None:
    assert isolate(rules, runners, Isolation(frozenset(before)), 0.0).pods == isolated


def test_a_pod_needs_three_noisy_rounds_in_a_row_and_two_calm_minutes() -> None:
    rules, state, story = replace(EASY, lock_in_threshold=3), Isolation(), []
    for second, tasks in [(0, 9), (1, 9), (2, 1), (3, 9), (4, 9), (5, 9), (6, 1), (125, 1), (126, 1)]:
        state = isolate(rules, pods(a=tasks, b=1), state, second)
        story.append("a" in state.pods)
    assert story == [False, False, False, False, False, True, True, True, False]


@pytest.mark.parametrize(
    ("tasks", "isolated"),
    [
        pytest.param([9, 9, None, 9], [False, False, False, True], id="between noisy rounds"),
        pytest.param([9, 9, 9, None, 9, 1], [False, False, True, True, True, True], id="of one that is isolated"),
        pytest.param([9, 9, 9, 1, None, 1], [False, False, True, True, True, False], id="in its calm, which goes on"),
    ],
)
def test_a_round_without_a_figure_changes_nothing(tasks: list[float | None], isolated: list[bool]) -> None:
    rules, state, story = replace(EASY, lock_in_threshold=3), Isolation(), []
    for minute, runnable in enumerate(tasks):
        state = isolate(rules, pods(a=runnable, b=1), state, 60.0 * minute)
        story.append("a" in state.pods)
    assert story == isolated


def test_who_had_no_room_when_noisy_gets_none_without_a_figure() -> None:
    noisy = isolate(EASY, pods(a=9, b=9), Isolation(), 0.0)
    assert noisy.pods == {"b"}
    assert isolate(EASY, pods(a=None, b=None), noisy, 2.0).pods == {"b"}
    alone = isolate(EASY, [*pods(a=None), *pods(c=1)], noisy, 2.0)
    assert alone.pods == set()


def test_pools_are_judged_apart() -> None:
    other = [replace(one, pool="batch", pod=f"{one.pod}2") for one in pods(a=9, b=1)]
    assert isolate(EASY, [*pods(a=9, b=1), *other], Isolation(), 0.0).pods == {"a", "a2"}


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("xy"), st.floats(0, 20)), max_size=12), st.randoms()
)
def test_the_order_of_containers_means_nothing_and_the_limits_hold(
    rows: list[tuple[str, str, float]], random: Random
) -> None:
    rules = IsolationRules(lock_in_threshold=1)
    unique = {(pod, name): ContainerTasks(pod, name, "share", 4.0, tasks) for pod, name, tasks in rows}
    runners = list(unique.values())
    found = isolate(rules, runners, Isolation(), 0.0)
    assert isolate(rules, random.sample(runners, len(runners)), Isolation(), 0.0) == found
    count = len({one.pod for one in runners})
    assert len(found.pods) <= max(0, min(count - 1, count // 2))
    taken = sum(one.cores for one in runners if one.pod in found.pods)
    assert taken <= 0.2 * sum(one.cores for one in runners) + 1e-6
