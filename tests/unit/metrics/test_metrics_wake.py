"""When a pass is worth making at once: the decision table of the tripwire, and the limit on pressure triggers."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from services.metrics.core.wakeup import (
    KernelMemory,
    LastReported,
    Observation,
    PressureGate,
    TripwireReading,
    WakeBounds,
    observation,
    reported,
    watermark,
    why_now,
)

GIB, MIB = 1 << 30, 1 << 20
BOUNDS = WakeBounds(tenant_step_cores=0.5, memory_watch_bytes=GIB, peak_hold_s=2.0)
CALM = Observation(tenant_cores=1.0, memory_free_bytes=4 * GIB, pods_generation=7)
TOLD = LastReported(CALM, memory_total_bytes=10 * GIB, watermark_bytes=10 * MIB, peak_cores=1.0)


@pytest.mark.parametrize(
    ("told", "seen", "trigger"),
    [
        pytest.param({}, {}, None, id="nothing has changed"),
        pytest.param({}, {"tenant_cores": 1.5}, None, id="tenants rose by just the step"),
        pytest.param({}, {"tenant_cores": 1.6}, "tenant", id="tenants rose by more than the step"),
        pytest.param({"peak_cores": 10.0}, {"tenant_cores": 11.9}, None, id="a rise below a fifth is noise"),
        pytest.param({"peak_cores": 10.0}, {"tenant_cores": 12.0}, "tenant", id="a rise of a fifth is none"),
        pytest.param({"peak_cores": 0.0}, {"tenant_cores": 0.6}, "tenant", id="idle tenants wake"),
        pytest.param({}, {"tenant_cores": 0.0}, None, id="tenants fell: no hurry"),
        pytest.param({"peak_cores": None}, {"tenant_cores": 9.0}, None, id="usage not told yet"),
        pytest.param({}, {"tenant_cores": None}, None, id="usage cannot be read"),
        pytest.param({}, {"memory_free_bytes": GIB - 1}, "memory", id="free memory fell below the watch"),
        pytest.param({"watch_armed": False, "seen": replace(CALM, memory_free_bytes=GIB)},
                     {"memory_free_bytes": GIB - 1}, None, id="below the watch, but that was told"),
        pytest.param({}, {"memory_free_bytes": 4 * GIB - 100 * MIB}, None, id="a hundredth of memory went"),
        pytest.param({}, {"memory_free_bytes": 4 * GIB - 103 * MIB}, "memory", id="more than a hundredth went"),
        pytest.param({"watch_armed": False, "seen": replace(CALM, memory_free_bytes=9 * MIB)},
                     {"memory_free_bytes": 9 * MIB}, "memory", id="below the watermark every look is news"),
        pytest.param({}, {"memory_free_bytes": None}, None, id="memory cannot be read"),
        pytest.param({"watermark_bytes": None, "memory_total_bytes": None, "watch_armed": False},
                     {"memory_free_bytes": 0}, None, id="nothing known to compare memory with"),
        pytest.param({}, {"pods_generation": 8}, "pods", id="the pods changed"),
        pytest.param({}, {"pods_generation": None}, None, id="the pods cannot be asked for"),
        pytest.param({}, {"pods_generation": 8, "tenant_cores": 9.0}, "tenant", id="tenants before pods"),
        pytest.param({}, {"memory_free_bytes": 0, "tenant_cores": 9.0}, "memory", id="the watermark before all"),
    ],
)  # fmt: skip
def test_why_a_pass_is_made_now(told: dict[str, Any], seen: dict[str, Any], trigger: str | None) -> None:
    assert why_now(replace(TOLD, **told), replace(CALM, **seen), BOUNDS) == trigger


@pytest.mark.parametrize(
    ("before", "now", "cores"),
    [
        pytest.param((0.0, 0), (0.1, 150_000_000), 1.5, id="rate over the probe's window"),
        pytest.param((0.0, None), (0.1, 5), None, id="no usage before"),
        pytest.param((0.0, 5), (0.1, None), None, id="no usage now"),
        pytest.param((0.0, 9), (0.1, 5), None, id="the counter went back"),
        pytest.param((0.1, 5), (0.1, 9), None, id="no time has passed"),
    ],
)
def test_what_two_probes_show(
    before: tuple[float, int | None], now: tuple[float, int | None], cores: float | None
) -> None:
    seen = observation(TripwireReading(*before, 1, 1), TripwireReading(*now, 77, 3))
    approximately: Any = cores and pytest.approx(cores)
    assert seen == Observation(approximately, 77, 3)


def test_the_watermark_is_a_share_of_ten_thousandths() -> None:
    assert watermark(10_000, 10) == 10
    assert watermark(None, 10) is watermark(10, None) is None


def told_after(*samples: tuple[float, float | None, int]) -> LastReported | None:
    """What is told after samples of (time, tenants' cores, free bytes)."""
    told: LastReported | None = None
    for now_s, cores, free in samples:
        told = reported(told, Observation(cores, free, 1), KernelMemory(10 * GIB, 10), now_s, BOUNDS)
    return told


@pytest.mark.parametrize(
    ("samples", "peak"),
    [
        pytest.param([(0, 1.0, GIB)], 1.0, id="the first sample"),
        pytest.param([(0, 3.0, GIB), (1.9, 0.2, GIB)], 3.0, id="a peak stays for the hold"),
        pytest.param([(0, 3.0, GIB), (1.0, 0.2, GIB), (2.0, 0.2, GIB)], 0.2, id="and is then forgotten"),
        pytest.param([(0, 3.0, GIB), (1.0, 5.0, GIB)], 5.0, id="a higher one replaces it"),
        pytest.param([(0, 3.0, GIB), (1.0, None, GIB)], 3.0, id="an absent figure takes no peak away"),
    ],
)
def test_a_load_in_bursts_is_news_once(samples: list[tuple[float, float | None, int]], peak: float) -> None:
    assert present(told_after(*samples)).peak_cores == peak


@pytest.mark.parametrize(
    ("free", "armed"),
    [
        pytest.param([2 * GIB], True, id="plenty"),
        pytest.param([GIB - 1], False, id="little from the start"),
        pytest.param([2 * GIB, GIB - 1], False, id="fell below the watch"),
        pytest.param([GIB - 1, GIB + MIB], False, id="wavers around the watch"),
        pytest.param([GIB - 1, GIB + 103 * MIB], True, id="clearly recovered"),
    ],
)
def test_the_watch_over_memory_arms_again_only_after_recovery(free: list[int], armed: bool) -> None:
    assert present(told_after(*((n, 0.0, f) for n, f in enumerate(free)))).watch_armed is armed


def test_steady_pressure_backs_off_to_the_period_and_news_opens_the_gate() -> None:
    gate, gaps = PressureGate(0.1), []
    for now_s in range(7):
        gate = gate.after(now_s, news=False, min_gap_s=0.1, max_gap_s=2.0)
        gaps.append(gate.gap_s)
    assert gaps == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 2.0]
    assert gate.after(9, news=True, min_gap_s=0.1, max_gap_s=2.0) == PressureGate(0.1, 9)


def test_the_gate_opens_when_the_gap_is_over() -> None:
    gate = PressureGate(0.4, 10.0)
    assert not gate.allows(10.3)
    assert gate.allows(10.4)
    assert PressureGate(0.4).allows(0.0)


@given(st.lists(st.booleans(), max_size=50), st.floats(0.02, 1), st.floats(1, 60))
def test_pressure_never_wakes_more_often_than_the_least_gap_nor_more_rarely_than_the_period(
    news: list[bool], least: float, most: float
) -> None:
    gate = PressureGate(least)
    for n, was_news in enumerate(news):
        gate = gate.after(n, news=was_news, min_gap_s=least, max_gap_s=most)
        assert least <= gate.gap_s <= most


@given(st.floats(0, 64), st.floats(0, 64), st.integers(0, 8 * GIB), st.integers(0, 8 * GIB))
def test_what_has_just_been_told_is_no_news(peak_cores: float, cores: float, free_before: int, free: int) -> None:
    before = reported(None, Observation(peak_cores, free_before, 1), KernelMemory(8 * GIB, 10), 0.0, BOUNDS)
    told = reported(before, Observation(cores, free, 1), KernelMemory(8 * GIB, 10), 1.0, BOUNDS)
    reason = why_now(told, Observation(cores, free, 1), BOUNDS)
    assert reason is None or free < 8 * GIB * 10 / 10_000
