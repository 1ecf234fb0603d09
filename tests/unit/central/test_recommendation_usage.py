"""Usage of a container: samples by minute and hour, what a checkpoint keeps of them, and when enough is known."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.recommendation.advice import STALE_S, usage_standing
from services.central.core.recommendation.oom import OomKill
from services.central.core.recommendation.readings import CPU_SERIES, MEMORY_SERIES
from services.central.core.recommendation.usage import samples
from services.central.core.recommendation.usage.checkpoint import MAX_KILLS, restored, stored
from services.central.core.recommendation.usage.samples import HOUR_S, MAX_PODS, ContainerUsage, summary
from services.reporter.core.cluster.series import CONTAINER
from shared.errors import Refused

MIB = 1 << 20
NOW_S = 1_700_000_040.0  # a whole minute


def see(
    usage: ContainerUsage, at_s: float, cores: float | None = None, mib: float | None = None, pod: str = "a"
) -> None:
    usage.see(pod, NOW_S + at_s, cpu_cores=cores, memory_bytes=None if mib is None else mib * MIB)


def target(usage: ContainerUsage) -> tuple[float, float]:
    cpu, memory = usage.cpu_cores(), usage.memory_bytes()
    return (0.0 if cpu is None else cpu.target), (0.0 if memory is None else memory.target)


def test_a_minute_is_one_sample_of_its_mean_once_it_is_over() -> None:
    usage = ContainerUsage()
    for at_s, cores in ((0, 0.0), (15, 4.0), (30, 4.0), (45, 0.0)):
        see(usage, at_s, cores)
    assert usage.cpu_cores() is None
    see(usage, 60, 0.0)
    assert usage.cpu_samples == 1
    assert 2.0 < target(usage)[0] <= 2.0 * 1.06


def test_busy_minutes_weigh_more_than_idle_ones() -> None:
    usage = ContainerUsage()
    for minute in range(100):
        see(usage, minute * 60, 8.0 if minute % 10 == 0 else 0.01)
    # One minute in ten is far below the 90th percentile by time, and nearly all of the CPU.
    assert target(usage)[0] > 7.9


def test_memory_is_the_peak_of_each_hour_and_that_of_this_hour_counts_already() -> None:
    usage = ContainerUsage()
    for at_s, mib in ((0, 100), (60, 700), (120, 100)):
        see(usage, at_s, mib=mib)
    assert 700 * MIB < target(usage)[1] <= 700 * MIB * 1.06
    assert usage.memory.weights == {}
    see(usage, HOUR_S, mib=100)
    assert sum(usage.memory.weights.values()) == 1.0


def test_readings_that_come_late_or_are_not_known_change_nothing() -> None:
    usage = ContainerUsage()
    see(usage, 120, 1.0, 100)
    before = (dict(usage.minutes), dict(usage.hours))
    see(usage, 0, 9.0)
    see(usage, -HOUR_S, mib=900)
    see(usage, 130)
    assert (usage.minutes, usage.hours) == before
    assert usage.cpu_samples == 0


def test_absent_is_no_use_of_nothing() -> None:
    usage = ContainerUsage()
    see(usage, 0)
    assert usage.first_s is None
    see(usage, 0, mib=100)
    see(usage, 60, mib=100)
    assert usage.cpu_samples == 0
    assert usage.cpu_cores() is None


def test_pods_that_are_gone_leave_what_they_used_and_nothing_else() -> None:
    usage = ContainerUsage()
    see(usage, 0, 1.0, 100, pod="a")
    see(usage, 0, 2.0, 200, pod="b")
    usage.retain({"b"})
    assert usage.cpu_samples == 1
    assert set(usage.minutes) == set(usage.hours) == {"b"}
    assert sum(usage.memory.weights.values()) == 1.0


def test_so_many_pods_are_followed_and_no_more() -> None:
    usage = ContainerUsage()
    for number in range(MAX_PODS + 10):
        see(usage, 0, 1.0, 100 if number % 2 else None, pod=str(number))
    assert (len(usage.minutes), len(usage.hours)) == (MAX_PODS, MAX_PODS // 2)


readings = st.lists(
    st.tuples(st.integers(0, 3 * 86_400), st.floats(0, 100), st.floats(0, 1e6), st.sampled_from("abc")),
    min_size=1, max_size=40,
)  # fmt: skip


@given(readings)
def test_a_checkpoint_says_the_same_as_what_it_was_made_of(given_readings: Any) -> None:
    usage = ContainerUsage()
    for at_s, cores, mib, pod in sorted(given_readings):
        see(usage, at_s, cores, mib, pod)
    usage.minutes = {}  # the minute that is not over is all that is lost
    kills = [OomKill("shop", "web-1-aaaaa", "main", 5 * MIB, NOW_S)]
    text = stored({"main": usage}, kills)
    again, kills_again = restored(text, "shop")
    assert kills_again == kills
    assert again["main"].history_s == usage.history_s
    assert again["main"].hours == usage.hours
    # Weights are kept in ten-thousandths of the heaviest: a percentile is in its bucket, or beside it.
    for mine, kept in zip(target(usage), target(again["main"]), strict=True):
        assert kept == pytest.approx(mine, rel=0.06)


def test_a_checkpoint_stays_small() -> None:
    usage = ContainerUsage()
    for minute in range(2 * 1440):
        for pod in range(3):
            see(usage, minute * 60, (minute % 97) / 7, minute % 4000, pod=f"{pod:036d}")
    kills = [OomKill("shop", "web-1-aaaaa", "main", 5 * MIB, NOW_S)] * 500
    text = stored({str(number): usage for number in range(40)}, kills)
    assert len(text) < 200_000
    assert len(restored(text, "shop")[1]) == MAX_KILLS


@pytest.mark.parametrize(
    "text",
    ["", "[]", "7", "[" * 100_000, '{"containers": []}', '{"containers": {"a": {"cpu": {"at_s": -1}}}}',
     '{"containers": {"a": {"cpu": {"heaviest": 1e999}}}}', '{"containers": {"a": {"cpu": {"parts": {"x": 1}}}}}',
     '{"containers": {"a": {"hours": {"u": [1, 1e300]}}}}', '{"kills": [{"pod": "p"}]}'],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_a_checkpoint_that_nobody_could_have_written_is_refused(text: str) -> None:
    with pytest.raises(Refused) as refusal:
        restored(text, "shop")
    assert refusal.value.reason == "checkpoint"


@pytest.mark.parametrize(
    ("seen_for_s", "silent_s", "reason"),
    [(None, 0, "NoSamples"), (30, 0, "NoSamples"), (7200, 0, ""), (3000, 0, "HistoryTooShort"),
     (7200, STALE_S, ""), (7200, STALE_S + 1, "LastSampleTooOld")],
)  # fmt: skip
def test_when_enough_is_known(seen_for_s: float | None, silent_s: float, reason: str) -> None:
    usage = ContainerUsage()
    for at_s in range(0, 0 if seen_for_s is None else int(seen_for_s) + 1, 30):
        see(usage, at_s, 1.0, 100)
    now_s = NOW_S + (seen_for_s or 0) + silent_s
    found = usage_standing({"main": summary(usage if seen_for_s is not None else None, now_s)}, 3600.0)
    assert found.reason == reason
    assert ("'main'" in found.said) == bool(reason)


def test_nodes_tell_the_series_that_are_learned_from() -> None:
    assert {CPU_SERIES, MEMORY_SERIES} <= set(CONTAINER)


def test_the_scheme_has_as_many_buckets_as_upstreams() -> None:
    assert (samples.CPU_CORES.buckets, samples.MEMORY_BYTES.buckets) == (176, 176)
