"""How quotas of throttled containers rise and fall: each rule by a case, and what holds for every course as laws."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.qrm.core.isolation.quota_burst import (
    STALE_S,
    BurstableContainer,
    QuotaBoost,
    SharePoolState,
    next_boost,
    share_pool_state,
)
from shared.contracts.pod import Container, Pod, QosClass
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, PodReading

HOLD_S = 60.0
POOL_STATES: tuple[SharePoolState, ...] = ("idle", "cooling", "overloaded", "unknown", "stale")


def boost(quota: int = 2000, held_until_s: float = 1000.0, left: float = 0.0) -> QuotaBoost:
    return QuotaBoost(quota, held_until_s, left, 99.0)


def of_limit(throttled: float | None = 0.5, **fields: Any) -> BurstableContainer:
    return BurstableContainer(1000, fields.pop("most_percent", 300), throttled_ratio=throttled, **fields)


@pytest.mark.parametrize(
    ("pool", "throttled", "quota"),
    [
        ("idle", 0.5, 2400),
        ("idle", 0.0, 2000),
        ("idle", None, 2000),
        ("cooling", 0.5, 2000),
        ("unknown", 0.5, 2000),
        ("overloaded", 0.5, 1600),
        ("overloaded", 0.0, 1600),
        ("stale", 0.5, 1600),
        ("stale", None, 1600),
    ],
)
def test_one_step(pool: SharePoolState, throttled: float | None, quota: int) -> None:
    assert next_boost(boost(), of_limit(throttled), pool, HOLD_S, 100.0).quota_millis == quota


def test_it_stays_within_limit_and_percent() -> None:
    assert next_boost(boost(2900), of_limit(), "idle", HOLD_S, 100.0).quota_millis == 3000
    assert next_boost(boost(1100), of_limit(), "overloaded", HOLD_S, 100.0).quota_millis == 1000
    assert next_boost(boost(3000), of_limit(most_percent=150), "cooling", HOLD_S, 100.0).quota_millis == 1500
    assert next_boost(None, BurstableContainer(1, 300, throttled_ratio=1.0), "idle", HOLD_S, 100.0).quota_millis == 2


def test_a_new_container_begins_at_its_limit() -> None:
    assert next_boost(None, of_limit(), "idle", HOLD_S, 100.0).quota_millis == 1200
    assert next_boost(None, of_limit(0.0), "idle", HOLD_S, 100.0).quota_millis == 1000


def test_it_is_held_for_a_while_and_then_falls() -> None:
    up = next_boost(None, of_limit(), "idle", HOLD_S, 100.0)
    assert next_boost(up, of_limit(0.0), "idle", HOLD_S, 159.9).quota_millis == 1200
    assert next_boost(up, of_limit(0.0), "idle", HOLD_S, 160.0).quota_millis == 1000
    again = next_boost(up, of_limit(), "cooling", HOLD_S, 159.9)
    assert next_boost(again, of_limit(0.0), "idle", HOLD_S, 219.0).quota_millis == 1200
    assert next_boost(again, of_limit(0.0), "idle", 10.0, 180.0).quota_millis == 1200
    assert next_boost(up, of_limit(), "idle", 0.0, 200.0).quota_millis == 1440, "not held, and not calm either"
    assert next_boost(up, of_limit(), "stale", HOLD_S, 101.0).held_until_s == 160.0


@pytest.mark.parametrize(
    ("used_cores", "left"),
    [(1.5, 50.0), (3.0, -100.0), (1.0, 100.0), (0.8, 100.0), (0.6, 100.0), (0.5, 150.0), (None, 100.0)],
)
def test_the_budget_is_spent_above_the_limit_and_saved_below_three_fifths(
    used_cores: float | None, left: float
) -> None:
    one = of_limit(budget_s=1, usage_cores=used_cores)
    assert next_boost(boost(left=100.0), one, "idle", HOLD_S, 100.0).left == left


def test_a_quota_falls_while_its_budget_is_spent() -> None:
    one = of_limit(budget_s=60, usage_cores=2.0)
    assert next_boost(boost(left=150.0), one, "idle", HOLD_S, 100.0).quota_millis == 2400
    assert next_boost(boost(left=100.0), one, "idle", HOLD_S, 100.0).quota_millis == 1600
    # With nothing to spend nothing is ever above the limit.
    assert next_boost(None, of_limit(budget_s=0), "idle", HOLD_S, 100.0).quota_millis == 1000


def test_the_budget_has_two_ends_and_a_gap_counts_as_long_as_a_sample_is_believed() -> None:
    rich = boost(left=11_990.0)
    assert next_boost(rich, of_limit(budget_s=60, usage_cores=0.0), "idle", HOLD_S, 100.0).left == 12_000.0
    poor = boost(left=-11_990.0)
    assert next_boost(poor, of_limit(budget_s=60, usage_cores=3.0), "idle", HOLD_S, 100.0).left == -12_000.0
    late = next_boost(boost(), of_limit(budget_s=60, usage_cores=0.0), "idle", HOLD_S, 9999.0)
    assert late.left == 100 * STALE_S
    back = next_boost(boost(left=5.0), of_limit(budget_s=60, usage_cores=0.0), "idle", HOLD_S, 0.0)
    assert back.left == 5.0


STEPS = st.tuples(
    st.sampled_from(POOL_STATES),
    st.one_of(st.none(), st.floats(0, 1)),
    st.one_of(st.none(), st.floats(0, 100)),
    st.floats(1, 30),
)


@given(
    limit=st.integers(1, 500_000),
    most_percent=st.integers(100, 1000),
    budget_s=st.integers(-1, 86_400),
    steps=st.lists(STEPS, max_size=40),
)
def test_every_course_keeps_the_laws(limit: int, most_percent: int, budget_s: int, steps: list[Any]) -> None:
    now_s, last = 0.0, None
    for pool, throttled, used, gap_s in steps:
        now_s += gap_s
        one = BurstableContainer(limit, most_percent, budget_s, throttled, used)
        before = limit if last is None else last.quota_millis
        last = next_boost(last, one, pool, HOLD_S, now_s)
        assert limit <= last.quota_millis <= one.most_millis
        if last.quota_millis > before:
            assert pool == "idle"
            assert throttled
            assert last.quota_millis <= before * 1.2 + 1
            assert budget_s == -1 or last.left > 0
        if pool in ("overloaded", "stale"):
            assert last.quota_millis <= max(limit, before * 0.8)
        assert budget_s == -1 or abs(last.left) <= one.budget
    # Nothing throttles it any more: back at its limit after the time that it is held, in steps of a fifth.
    calm = BurstableContainer(limit, most_percent, budget_s, 0.0)
    now_s += HOLD_S
    for _ in range(11):
        now_s += 1.0
        last = next_boost(last, calm, "idle", HOLD_S, now_s)
    assert last is not None
    assert last.quota_millis == limit


def of_class(uid: str, qos: QosClass, used: float | None, request: int = 0) -> PodReading:
    pod = Pod(uid=uid, name=uid, qos=qos, containers=(Container(name="c", cpu_request_millis=request),))
    return PodReading(pod=pod, containers=(ContainerReading(name="c", cpu_usage_cores=used),))


def sample(used: float | None, *pods: PodReading, window_s: float | None = 2.0) -> NodeSample:
    reading = NodeReading(online_cpus="0-9", cpu_usage_cores=used)
    return NodeSample.model_validate(
        {"node": "n", "boot_id": "0" * 16, "seq": 1, "sent_at": "2026-01-01T00:00:00Z", "window_s": window_s,
         "node_reading": reading, "pods": pods}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        (sample(4.4), "idle"),
        (sample(4.5), "cooling"),
        (sample(4.9), "cooling"),
        (sample(5.0), "overloaded"),
        (sample(None), "unknown"),
        # Batch work yields, and what is unknown of it counts as the tenants'.
        (sample(8.0, of_class("b", "reclaimed_cores", 4.0)), "idle"),
        (sample(8.0, of_class("b", "reclaimed_cores", None)), "overloaded"),
        # A dedicated pod takes its CPUs out of the pool, and its use with them.
        (sample(6.0, of_class("d", "dedicated_cores", 4.0, 4000)), "idle"),
        (sample(6.0, of_class("d", "dedicated_cores", 2.7, 4000)), "overloaded"),
        (sample(6.0, of_class("d", "dedicated_cores", 6.0, 10_000)), "overloaded"),
        (sample(5.0, of_class("a", "shared_cores", 5.0)), "overloaded"),
    ],
)  # fmt: skip
def test_the_share_pool(seen: NodeSample, state: SharePoolState) -> None:
    assert share_pool_state(seen, 0.5, 50) == state


@pytest.mark.parametrize(
    ("seen", "age_s", "old"),
    [
        (None, None, True),
        (sample(1.0), None, True),
        (sample(1.0), 10.0, False),
        (sample(1.0), 10.1, True),
        (sample(1.0, window_s=60.0), 180.0, False),
        (sample(1.0, window_s=60.0), 181.0, True),
        (sample(1.0, window_s=None), 10.1, True),
    ],
)
def test_an_old_sample_says_nothing(seen: NodeSample | None, age_s: float | None, old: bool) -> None:
    assert (share_pool_state(seen, age_s, 50) == "stale") is old
