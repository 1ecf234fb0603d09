"""Why a pass is due, step by step on values."""

from dataclasses import replace

import pytest

from services.metrics.core.wake_state import PassReport, WakePace, WakeState
from services.metrics.core.wakeup import KernelMemory, Observation, PressureGate, Trigger, TripwireReading, WakeBounds

GB = 1_000_000_000
PACE = WakePace(period_s=5.0, probe_s=0.2, min_gap_s=1.0)
BOUNDS = WakeBounds(tenant_step_cores=0.5, memory_watch_bytes=GB, peak_hold_s=5.0)
MEMORY = KernelMemory(64 * GB, 10)
SEEN = Observation(1.0, 32 * GB, 1)


def probe(at_s: float, cores: float = 1.0, free: int = 32 * GB, pods: int = 1) -> TripwireReading:
    """A probe of a machine whose tenants have used so many cores since the start."""
    return TripwireReading(at_s, round(at_s * cores * GB), free, pods)


def settled(at_s: float = 10.0) -> WakeState:
    """Long at work: the last pass began at `at_s`, as did the last probe."""
    start = WakeState.at_start(0.0, PACE.min_gap_s)
    state, _ = start.after_probe(probe(at_s), BOUNDS, PACE)
    ended = state.pass_begins(at_s).pass_ended(PassReport("period", at_s, SEEN, MEMORY), BOUNDS, PACE)
    return replace(ended, follow_up=None)


def test_the_first_pass_is_followed_by_another_one_a_probe_later() -> None:
    state, trigger = WakeState.at_start(0.0, 1.0).pass_begins(0.0).after_probe(probe(0.2), BOUNDS, PACE)
    assert trigger == "start"
    assert state.follow_up is None


@pytest.mark.parametrize(
    ("reading", "trigger"),
    [
        (probe(10.2), None),
        (probe(14.8), None),
        (probe(14.9), "period"),
        (replace(probe(10.2), tenant_usage_ns=round(10.6 * GB)), "tenant"),
        (probe(10.2, free=31 * GB), "memory"),
        (probe(10.2, pods=2), "pods"),
        (TripwireReading(10.2, None, None, None), None),
    ],
)
def test_a_probe_says_why_a_pass_is_due(reading: TripwireReading, trigger: Trigger | None) -> None:
    state, due = settled().after_probe(reading, BOUNDS, PACE)
    assert due == trigger
    assert (state.probe, state.probe_before) == (reading, probe(10.0))
    early = trigger if trigger != "period" else None
    assert state.follow_up == early
    again = state.pass_begins(10.2).after_probe(TripwireReading(10.4, None, None, None), BOUNDS, PACE)
    assert again[1] == early
    assert (state.whole, again[0].whole) == (False, early is not None), "the early pass is quick, its second one whole"
    assert not again[0].after_probe(TripwireReading(10.6, None, None, None), BOUNDS, PACE)[0].whole


def test_pressure_is_answered_as_often_as_its_gate_opens() -> None:
    told = settled().pressure_told()
    assert told.answers_pressure(10.2)
    assert told.has_just_probed(10.09, PACE)
    assert not told.has_just_probed(10.11, PACE)
    assert told.after_probe(probe(10.2), BOUNDS, PACE)[1] == "psi"
    begun = told.pass_begins(10.2)
    assert not begun.answers_pressure(10.2)
    ended = begun.pass_ended(PassReport("psi", 10.2, SEEN, MEMORY), BOUNDS, PACE)
    assert ended.gate == PressureGate(2.0, 10.2)
    assert not ended.pressure_told().answers_pressure(12.1)
    assert ended.pressure_told().answers_pressure(12.3)
    news = begun.pass_ended(PassReport("psi", 10.2, replace(SEEN, tenant_cores=2.0), MEMORY), BOUNDS, PACE)
    assert news.gate == PressureGate(1.0, 10.2)


def test_only_the_promised_pass_is_whole_and_not_the_one_that_pressure_asks_for_right_after() -> None:
    promised, trigger = replace(settled(), follow_up="tenant").after_probe(probe(10.2), BOUNDS, PACE)
    assert (promised.whole, trigger) == (True, "tenant")
    ended = promised.pass_begins(10.2).pass_ended(PassReport("tenant", 10.2, SEEN, MEMORY), BOUNDS, PACE)
    assert not ended.pressure_told().whole


def test_a_pass_of_another_trigger_leaves_the_gate_alone() -> None:
    state = settled()
    ended = state.pass_ended(PassReport("tenant", 10.2, SEEN, MEMORY), BOUNDS, PACE)
    assert ended.gate == state.gate


def test_memory_below_the_watch_is_measured_twice() -> None:
    short = replace(SEEN, memory_free_bytes=GB // 2)
    ended = settled().pass_ended(PassReport("period", 15.0, short, MEMORY), BOUNDS, PACE)
    assert ended.follow_up == "memory"
    assert replace(ended, follow_up=None).pass_ended(
        PassReport("period", 20.0, short, MEMORY), BOUNDS, PACE
    ).follow_up is None  # fmt: skip


REST_PACE = replace(PACE, rest_period_s=7.5, rest_probe_s=0.4)


def rested(free: int = 32 * GB, trigger: Trigger = "period") -> WakeState:
    """After six equal passes."""
    state, seen = settled(), replace(SEEN, memory_free_bytes=free)
    for at_s in (15.0, 20.0, 25.0, 30.0, 35.0, 40.0):
        report = PassReport(trigger, at_s, seen, MEMORY, node_cores=2.0)
        state = replace(state.pass_begins(at_s).pass_ended(report, BOUNDS, REST_PACE), follow_up=None)
    return state


@pytest.mark.parametrize(
    ("state", "pace", "wait_s"),
    [
        pytest.param(rested(), REST_PACE, 0.4, id="at rest"),
        pytest.param(settled(), REST_PACE, 0.2, id="at work"),
        pytest.param(rested(trigger="tenant"), REST_PACE, 0.2, id="woken early again and again"),
        pytest.param(rested(free=GB // 2), REST_PACE, 0.2, id="memory is nearly gone"),
        pytest.param(replace(rested(), follow_up="memory"), REST_PACE, 0.2, id="a second sample is promised"),
        pytest.param(replace(rested(), tried_at_s=45.0), REST_PACE, 0.2, id="the last pass has failed"),
        pytest.param(WakeState.at_start(0.0, 1.0), REST_PACE, 0.2, id="nothing was read yet"),
        pytest.param(rested(), replace(REST_PACE, rest_probe_s=0.05), 0.2, id="never more often than at work"),
        pytest.param(rested(), PACE, 0.2, id="the kernel's triggers are not armed"),
    ],
)
def test_a_node_at_rest_is_probed_more_seldom(state: WakeState, pace: WakePace, wait_s: float) -> None:
    assert state.next_probe_s(pace) == wait_s


def test_pods_that_are_being_listed_are_no_news_any_more() -> None:
    listed = settled().pods_listed(2)
    assert listed.after_probe(probe(10.2, pods=2), BOUNDS, PACE)[1] is None
    assert WakeState.at_start(0.0, 1.0).pods_listed(2).reported is None
