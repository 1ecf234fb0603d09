"""The pace of action, and when a silent agent costs its node the taint and its pods: against trying every moment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.lost_nodes.agent_loss import AgentState
from services.central.core.lost_nodes.pacing import Pace
from services.central.whatif.pacing import moments, next_action
from shared.core.evictions.intents import TokenBucket
from sublet.reference.central.agent_loss import (
    AgentLossQuestion,
    LossTicks,
    ProbedAgent,
    agent_loss_timeline,
    all_ready,
)


def tried(asked: AgentLossQuestion) -> tuple[float | None, float | None]:
    """Moment by moment as the rule says it, in whole seconds."""
    watch: ProbedAgent | None = None
    tainted = False
    first: dict[str, float] = {}
    for now_s in range(400):
        ready = now_s < asked.fail_at_s or (asked.recover_at_s is not None and now_s >= asked.recover_at_s)
        state: AgentState = "Ready" if ready else "NotReady"
        if now_s >= asked.probe_phase_s and (now_s - asked.probe_phase_s) % asked.probe_period_s == 0:
            watch = watch.probed(state, now_s) if watch else ProbedAgent(state, now_s)
        looks = now_s >= asked.monitor_phase_s and (now_s - asked.monitor_phase_s) % asked.monitor_period_s == 0
        if not looks or watch is None:
            continue
        if watch.state == "Ready":
            tainted = False
        elif now_s > watch.stamp_s + asked.taint_period_s and not tainted:
            tainted = True
            first.setdefault("taint", now_s)
        elif tainted and now_s > watch.stamp_s + asked.evict_period_s and asked.node_has_reclaimed_pods:
            first.setdefault("evict", now_s)
    return first.get("taint"), first.get("evict")


@given(
    st.builds(
        AgentLossQuestion,
        fail_at_s=st.integers(0, 60),
        recover_at_s=st.none() | st.integers(0, 200),
        probe_phase_s=st.integers(0, 20),
        probe_period_s=st.integers(1, 20),
        monitor_phase_s=st.integers(0, 40),
        monitor_period_s=st.integers(1, 40),
        taint_period_s=st.integers(0, 60),
        evict_period_s=st.integers(0, 120),
        node_has_reclaimed_pods=st.booleans(),
    )
)
def test_the_timeline_is_what_trying_every_second_finds(asked: AgentLossQuestion) -> None:
    answer = agent_loss_timeline(asked)
    assert (answer.tainted_at_s, answer.eviction_queued_at_s) == tried(asked)


def test_a_ready_agent_is_stamped_each_time_another_one_when_its_state_changes() -> None:
    watch = ProbedAgent("Ready", 0.0).probed("Ready", 60.0)
    assert watch.stamp_s == 60.0
    lost = watch.probed("NotReady", 120.0).probed("NotReady", 180.0)
    assert (lost.stamp_s, lost.not_ready_s(200.0)) == (120.0, 80.0)
    assert lost.probed("NotFound", 240.0).stamp_s == 240.0
    assert lost.probed("Ready", 240.0).not_ready_s(900.0) == 0.0


def test_one_agent_that_is_not_ready_is_enough_and_none_says_nothing() -> None:
    ready, missing, ill = ProbedAgent("Ready", 90.0), ProbedAgent("NotFound", 50.0), ProbedAgent("NotReady", 70.0)
    assert all_ready({}, 100.0) == (None, 0.0)
    assert all_ready({"a": ready}, 100.0) == (True, 0.0)
    assert all_ready({"a": ready, "b": ill, "c": missing}, 100.0) == (False, 50.0)


@given(st.floats(0, 1e9), st.floats(0.001, 1e6), st.floats(0, 1e9), st.booleans())
def test_the_first_look_is_the_first(phase_s: float, period_s: float, since_s: float, after: bool) -> None:
    ticks = LossTicks(phase_s, period_s)
    first = ticks.first(since_s, after=after)
    assert first > since_s if after else first >= since_s
    assert first == phase_s or first - period_s <= since_s * (1 + 1e-9) + 1e-6


@given(st.floats(0.001, 50), st.integers(1, 5), st.integers(0, 60))
def test_the_pace_is_never_exceeded(per_s: float, burst: int, count: int) -> None:
    at_s = list(moments(Pace(per_s, burst), count))
    assert len(at_s) == count
    assert at_s == sorted(at_s)
    for first, start_s in enumerate(at_s):
        for number, end_s in enumerate(at_s[first:], start=1):
            assert number <= burst + per_s * (end_s - start_s) + 1e-6
    assert not at_s or at_s[-1] <= max(0, count - burst) / per_s + 1e-6


@pytest.mark.parametrize("pace", [Pace(0.0, 5), Pace(1.0, 0), Pace(0.0, 0)])
def test_a_pace_of_nothing_acts_on_nothing(pace: Pace) -> None:
    assert list(moments(pace, 3)) == []
    assert next_action(pace, TokenBucket(5, 0.0)) is None


def test_a_rate_of_nothing_takes_no_token_that_is_there() -> None:
    assert Pace(0.0).spend(TokenBucket(1, 0.0), 100.0) is None


def test_a_restart_of_the_clock_gives_nothing_for_free() -> None:
    assert Pace(0.1).spend(TokenBucket(0, 5000.0), 3.0) is None
