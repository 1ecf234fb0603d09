"""What a contender sees when tenants have less than they want."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from fixture_types import NewSample
from hypothesis import given
from hypothesis import strategies as st

from services.advisor.core.model.containers import Containers
from services.advisor.core.model.figures import Figures
from services.advisor.core.model.machine import Bounds
from services.advisor.core.model.view import Signs, View
from services.advisor.core.model.wait import Wait
from services.advisor.core.observation.sample_view import view_of
from sublet.replay.judging.seen import PATIENCE_S, TenantQueue, as_seen, without_recorded_waits

NewView = Callable[..., View]


@pytest.fixture
def view(sample: NewSample) -> NewView:
    """Containers that use this many cores, each with load averages as large."""

    def make(*use: float) -> View:
        seen = view_of(sample(list(use)), Bounds.of(48, smt=True))
        containers = [replace(c, cpu=Figures(u, u, u), runnable=1.0) for c, u in zip(seen.containers, use, strict=True)]
        return replace(seen, containers=tuple(containers), tenants_usage_cores=sum(use))

    return make


def test_a_cut_shows_as_less_use_waiting_tasks_and_pressure(view: NewView) -> None:
    queue = TenantQueue()
    queue.pass_time(2.0, 40.0, 10.0)
    seen = as_seen(view(30.0, 10.0), 40.0, queue, 6.0, 1.0)
    assert [(c.cpu.usage_cores, c.cpu.load1, c.runnable) for c in seen.containers] == [
        (7.5, 30.0, 23.5),
        (2.5, 10.0, 8.5),
    ]
    assert (seen.tenants_usage_cores, seen.reclaimed_usage_cores, seen.node_usage_cores) == (10.0, 6.0, 17.0)
    assert (seen.signs.waiting_tasks, queue.core_s) == (30.0, 60.0)
    assert seen.signs.pressure_percent == pytest.approx(100 * (1 - math.exp(-0.2)))


def test_what_found_no_cpu_is_served_later_and_raises_the_load_until_then(view: NewView) -> None:
    queue = TenantQueue()
    queue.pass_time(2.0, 20.0, 10.0)  # 20 core-seconds wait: two tasks more for ten seconds
    queue.pass_time(2.0, 20.0, 10.0)
    assert queue.waiting_tasks == 12.0
    seen = as_seen(view(20.0), 20.0, queue, 0.0, 0.0)
    assert seen.containers[0].cpu.load1 == pytest.approx(20.0 + 2.0 * (1 - math.exp(-2 / 60)))
    before = queue.core_s
    queue.pass_time(2.0, 20.0, 48.0)
    assert (queue.served_cores, queue.waiting_tasks) == (20.0 + before / 10, 0.0)
    assert as_seen(view(20.0), 20.0, queue, 0.0, 0.0).containers[0].cpu.usage_cores == pytest.approx(24.0)


def test_who_has_enough_sees_the_frame_as_it_is(view: NewView) -> None:
    queue, whole = TenantQueue(), view(30.0, 10.0)
    queue.pass_time(2.0, 40.0, 40.0)
    seen = as_seen(whole, 40.0, queue, 0.0, 0.0)
    assert seen.containers == whole.containers
    assert (seen.signs.waiting_tasks, seen.signs.pressure_percent) == (0.0, 0.0)


def test_what_waited_on_the_recorded_node_followed_from_its_own_sizes_and_is_not_seen(view: NewView) -> None:
    queue, recorded = TenantQueue(), view(10.0)
    waiting = Containers([replace(c, cpu=replace(c.cpu, wait=Wait(3.0, 1.0))) for c in recorded.containers])
    recorded = replace(recorded, containers=waiting, signs=Signs(3.0, 99.0, 1.5, 1.0))
    plain = without_recorded_waits(recorded)
    assert [c.cpu for c in plain.containers] == [Figures(10.0, 10.0, 10.0)]
    assert plain.signs == Signs(None, 99.0, 1.5)
    queue.pass_time(2.0, 10.0, 8.0)
    seen = as_seen(plain, 10.0, queue, 0.0, 0.0)
    assert seen.signs == Signs(2.0, 99.0, 1.5)
    assert seen.containers[0].cpu.wait == Wait(2.0)


def test_a_view_in_which_nothing_waited_is_the_same_object(view: NewView) -> None:
    plain = view(10.0)
    assert without_recorded_waits(plain) is plain


def test_after_a_gap_nothing_waits() -> None:
    queue = TenantQueue()
    queue.pass_time(2.0, 40.0, 10.0)
    queue.forget()
    queue.pass_time(0.0, 5.0, 10.0)
    assert (queue.core_s, queue.served_cores, queue.waiting_tasks) == (0.0, 5.0, 0.0)


@given(steps=st.lists(st.tuples(st.floats(0.5, 60), st.floats(0, 60), st.floats(0, 48)), max_size=30))
def test_laws_of_the_queue(steps: list[tuple[float, float, float]]) -> None:
    """Nobody uses more than there is; no work is made up, and none waits for longer than its clients do."""
    queue, wanted_core_s, served_core_s = TenantQueue(), 0.0, 0.0
    for passed_s, wanted, had in steps:
        queue.pass_time(passed_s, wanted, had)
        wanted_core_s += wanted * passed_s
        served_core_s += queue.served_cores * passed_s
        assert 0 <= queue.served_cores <= had + 1e-9
        assert 0 <= queue.core_s <= PATIENCE_S * wanted + 1e-9
        assert served_core_s <= wanted_core_s + 1e-6
        assert queue.waiting_tasks >= max(0.0, wanted - had) - 1e-9
        assert 0 <= queue.pressure_percent <= 100
        assert queue.load5 >= 0
