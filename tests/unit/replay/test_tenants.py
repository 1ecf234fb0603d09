"""From series to nodes: packing, what is said between two values, loads."""

import math
from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from shared.errors import BadConfig
from sublet.replay.traces.frames import Trace
from sublet.replay.traces.tenants import IDLE_CORES, MAX_FRAMES, Between, Packing, TenantSeries, nodes_of


def series(count: int = 1, cores: Sequence[float] = (1.0, 3.0, 2.0), interval_s: float = 300.0) -> list[TenantSeries]:
    times = [n * interval_s for n in range(len(cores))]
    return [TenantSeries(f"vm{n}", times, cores) for n in range(count)]


def uses(trace: Trace) -> list[float | None]:
    return [frame.sample.node_reading.cpu_usage_cores for frame in trace.frames()]


def members(traces: Iterable[Trace]) -> list[list[str]]:
    return [[reading.pod.name for reading in next(trace.frames()).sample.pods] for trace in traces]


def test_a_value_holds_until_the_next_one_and_the_last_for_one_interval() -> None:
    (trace,) = nodes_of(series(), 300.0, Packing(step_s=100.0), "day")
    assert uses(trace) == [1.0] + [1.0] * 3 + [3.0] * 3 + [2.0] * 3
    assert "values held" in trace.rule


def test_in_a_straight_line_each_step_has_the_value_of_its_middle() -> None:
    (trace,) = nodes_of(series(), 300.0, Packing(step_s=150.0, between="linear"), "day")
    assert uses(trace) == pytest.approx([1.0, 1.5, 2.5, 2.75, 2.25, 2.0, 2.0])


def test_in_a_phase_of_its_own_each_tenant_changes_at_a_moment_of_its_own() -> None:
    (trace,) = nodes_of(series(20), 300.0, Packing(step_s=1.0, between="phase"), "day")
    found = [[pod.containers[0].cpu_usage_cores for pod in frame.sample.pods] for frame in trace.frames()]
    assert {len(use) for use in found[:-1]} == {20}  # they come and go together all the same
    rises = [[use[tenant] for use in found].index(3.0) for tenant in range(20)]
    assert len(set(rises)) > 15
    assert all(300 < at_s <= 601 for at_s in rises)
    (again,) = nodes_of(series(20), 300.0, Packing(step_s=1.0, between="phase"), "day")
    assert uses(again) == uses(trace)
    (other,) = nodes_of(series(20), 300.0, Packing(step_s=1.0, between="phase", seed=1), "day")
    assert uses(other) != uses(trace)


def test_a_measured_zero_is_a_little_after_the_first_minute() -> None:
    """Estimates pass over a figure of 0, for it may be a container that has not begun."""
    (trace,) = nodes_of(series(cores=(0.0, 0.0)), 300.0, Packing(step_s=30.0), "day")
    found = uses(trace)
    assert found[:3] == [0.0] * 3
    assert set(found[3:]) == {IDLE_CORES}


def test_amounts_that_are_swept_are_told_apart_by_their_nodes() -> None:
    packings = Packing(swept=(2.0, 8.0)).each()
    assert [packing.pod_cores for packing in packings] == [2.0, 8.0]
    names = [trace.node for packing in packings for trace in nodes_of(series(), 300.0, packing, "day")]
    assert names == ["day-2-cores-1", "day-8-cores-1"]
    assert Packing().each() == [Packing()]


def test_frames_say_which_time_they_speak_for() -> None:
    (trace,) = nodes_of(series(), 300.0, Packing(step_s=100.0), "day")
    frames = list(trace.frames())
    assert [frame.at_s for frame in frames] == [100.0 * n for n in range(10)]
    assert {frame.covers_s for frame in frames[1:]} == {100.0}
    assert frames[0].covers_s == 0.0


def test_loads_are_damped_as_the_kernels() -> None:
    (trace,) = nodes_of(series(cores=(1.0, 3.0)), 300.0, Packing(step_s=30.0), "day")
    containers = [frame.sample.pods[0].containers[0] for frame in trace.frames()]
    assert (containers[10].load1, containers[10].load5) == (1.0, 1.0)
    assert containers[12].load1 == pytest.approx(3.0 - 2.0 * math.exp(-1))
    assert containers[20].load5 == pytest.approx(3.0 - 2.0 * math.exp(-1))


def test_tenants_come_and_go_with_their_values() -> None:
    early, late = TenantSeries("a", [0.0, 60.0], [1.0, 1.0]), TenantSeries("b", [120.0, 180.0], [2.0, 2.0])
    (trace,) = nodes_of([early, late], 60.0, Packing(step_s=60.0), "day")
    assert [[pod.pod.name for pod in frame.sample.pods] for frame in trace.frames()] == [
        ["a"], ["a"], ["a"], ["b"], ["b"],
    ]  # fmt: skip


def test_the_seed_says_who_shares_a_node_and_what_fills_no_node_is_left_out() -> None:
    first = members(nodes_of(series(10), 300.0, Packing(pods_per_node=3), "day"))
    assert [len(names) for names in first] == [3, 3, 3]
    assert first == members(nodes_of(list(reversed(series(10))), 300.0, Packing(pods_per_node=3), "day"))
    assert first != members(nodes_of(series(10), 300.0, Packing(pods_per_node=3, seed=1), "day"))
    assert members(nodes_of(series(10), 300.0, Packing(pods_per_node=3, nodes=1), "day")) == first[:1]


def test_names_of_nodes_and_pods_are_names() -> None:
    odd = [TenantSeries("VM_1/ü", [0.0], [1.0]), TenantSeries("", [0.0], [1.0])]
    (trace,) = nodes_of(odd, 60.0, Packing(), "My Trace_1")
    assert trace.node == "my-trace-1-1"
    assert members([trace]) == [["x", "vm-1"]]


@pytest.mark.parametrize(
    ("found", "packing", "word"),
    [
        ([], Packing(), "not even one node"),
        (series(2), Packing(pods_per_node=3), "2 tenants, --pods-per-node 3"),
        (series(1), Packing(step_s=301.0), "--step 301"),
        ([TenantSeries("a", [0.0, 1e12], [1.0, 1.0])], Packing(), f"at most {MAX_FRAMES}"),
    ],
)
def test_what_makes_no_nodes_is_refused(found: list[TenantSeries], packing: Packing, word: str) -> None:
    with pytest.raises(BadConfig, match=word):
        list(nodes_of(found, 300.0, packing, "day"))


@given(
    cores=st.lists(st.floats(0, 8), min_size=1, max_size=12),
    step_s=st.sampled_from([7.0, 30.0, 60.0]),
    between=st.sampled_from(["hold", "linear", "phase"]),
)
def test_no_frame_says_more_or_less_than_the_values_around_it(
    cores: Sequence[float], step_s: float, between: Between
) -> None:
    (trace,) = nodes_of(series(cores=cores, interval_s=60.0), 60.0, Packing(step_s=step_s, between=between), "day")
    for frame in trace.frames():
        container = frame.sample.pods[0].containers[0] if frame.sample.pods else None
        for figure in (container.cpu_usage_cores, container.load1, container.load5) if container else ():
            assert min(cores) - 1e-9 <= present(figure) <= max(*cores, IDLE_CORES) + 1e-9


def test_tenants_of_one_id_are_tenants_of_their_own() -> None:
    found = [TenantSeries(name, [0.0, 60.0], [cores] * 2) for name, cores in (("1", 1.0), ("1-2", 2.0), ("1", 3.0))]
    (trace,) = nodes_of(found, 60.0, Packing(step_s=60.0), "day")
    pods = next(trace.frames()).sample.pods
    assert [(pod.pod.name, pod.containers[0].cpu_usage_cores) for pod in pods] == [
        ("1", 1.0),
        ("1-2", 2.0),
        ("1-3", 3.0),
    ]
    assert len({pod.pod.uid for pod in pods}) == 3
