"""What prod pods lend: the past of a pod as a histogram, and what follows of it."""

import pytest
from fixture_types import NewSample
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mid_node import GIB, MID, TEN, NewNode, near, node_of_ten, reading

from services.reporter.core.mid.peaks import FORGET_AFTER_S, MINUTE_S, MOST_MODELS, UsageHistory, UsedAmounts
from services.reporter.core.mid.reclaimable import (
    PROD,
    SYSTEM,
    PredictionRules,
    ProdReclaimable,
    prod_pods,
    prod_reclaimable,
    used_now,
)
from shared.contracts.sample import NodeSample, PodReading

MINUTES = 10
RULES = PredictionRules(cold_start_s=MINUTES * 60.0, safety_margin_percent=10)


@pytest.fixture
def ten_cpus(sample: NewSample) -> NewNode:
    return node_of_ten(sample)


def learnt(sample: NodeSample, minutes: int = MINUTES) -> UsageHistory:
    """The past of a node that was always as in this sample."""
    history = UsageHistory()
    for minute in range(minutes + 1):
        history.observe(used_now(sample), minute * MINUTE_S)
    return history


def lent(sample: NodeSample, history: UsageHistory | None = None, rules: PredictionRules = RULES) -> ProdReclaimable:
    has = UsedAmounts(TEN.cpu_millis, TEN.memory_bytes)
    return prod_reclaimable(prod_pods(sample), history or learnt(sample), has, rules)


def peak_of(*millis: int) -> int:
    """The peak of a past of so many minutes, in milli-cores."""
    history = UsageHistory()
    for minute, used in enumerate([*millis, 0]):
        history.observe({"one": UsedAmounts(used, 0)}, minute * MINUTE_S)
    found = history.peak("one", least_minutes=len(millis))
    assert found is not None
    return found.cpu_millis


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=40))
def test_a_peak_covers_nearly_all_of_the_past_and_is_a_twentieth_too_large_at_most(millis: list[int]) -> None:
    peak = peak_of(*millis)
    # Weights of the newest minutes are the larger ones, by less than a half in so short a time.
    assert sum(used <= peak for used in millis) / len(millis) >= 0.9
    assert peak <= max(millis) * 1.05 + 27


def test_older_minutes_weigh_less() -> None:
    """After a half-life a minute weighs twice as much as one of the beginning."""
    day = [8000] * 60 + [100] * (12 * 60 * 4)
    assert peak_of(*day) < 200
    assert peak_of(*([8000] * 60 + [100] * 60)) > 8000


def test_the_weights_stay_finite() -> None:
    history = UsageHistory()
    model_minutes = 101 * 12 * 60
    history.observe({"one": UsedAmounts(100, GIB)}, 0.0)
    history.observe({"one": UsedAmounts(100, GIB)}, MINUTE_S)
    history.models["one"].minutes = model_minutes
    history.observe({"one": UsedAmounts(100, GIB)}, 2 * MINUTE_S)
    history.observe({}, 3 * MINUTE_S)
    assert max(history.models["one"].cpu.weights) < 2.0**101
    found = history.peak("one", least_minutes=1)
    assert found is not None
    assert found.cpu_millis < 130


def test_a_minute_counts_by_its_largest_use() -> None:
    history = UsageHistory()
    for second, (millis, gib) in enumerate([(100, 1), (5000, 1), (100, 4), (100, 1)]):
        history.observe({"one": UsedAmounts(millis, gib * GIB)}, float(second))
    history.observe({}, MINUTE_S)
    found = history.peak("one", least_minutes=1)
    assert found is not None
    assert (found.cpu_millis > 5000, found.memory_bytes > 4 * GIB) == (True, True)
    assert history.models["one"].minutes == 1


def test_a_peak_that_was_asked_for_before_follows_the_next_minute() -> None:
    history = UsageHistory()
    peaks = []
    for minute, millis in enumerate([100, 100, 8000, 8000, 8000]):
        history.observe({"one": UsedAmounts(millis, 0)}, minute * MINUTE_S)
        peaks.append(history.peak("one", least_minutes=1))
    first, *_, last = (peak.cpu_millis for peak in peaks if peak is not None)
    assert first < 130
    assert last > 8000


def test_the_past_is_bounded_and_forgets_who_is_gone() -> None:
    history = UsageHistory()
    for minute in range(3):
        history.observe({str(n): UsedAmounts(1, 1) for n in range(MOST_MODELS + 50)}, minute * MINUTE_S)
    assert len(history.models) == MOST_MODELS
    last_s = 3 * MINUTE_S
    history.observe({"0": UsedAmounts(1, 1)}, last_s)
    history.observe({"0": UsedAmounts(1, 1)}, last_s + FORGET_AFTER_S)
    assert len(history.models) == MOST_MODELS
    history.observe({}, last_s + FORGET_AFTER_S + MINUTE_S)
    assert set(history.models) == {"0"}
    one = history.models["0"]
    assert (len(one.cpu.weights), len(one.memory.weights)) == (220, 290)


def test_after_days_without_observation_nobody_is_known_by_the_minute_of_then() -> None:
    history, back_s = UsageHistory(), 3 * 86_400.0
    for minute in range(10):
        history.observe({"one": UsedAmounts(9000, GIB)}, minute * MINUTE_S)
    history.observe({"one": UsedAmounts(100, GIB)}, back_s)
    assert history.models == {}
    history.observe({"one": UsedAmounts(100, GIB)}, back_s + MINUTE_S)
    assert history.models["one"].minutes == 1


@pytest.mark.parametrize(
    ("pods", "millis"),
    [
        pytest.param([reading("web", 1000)], 4000 - 1100 - 1100, id="less what it uses, what the system uses, margins"),
        pytest.param([reading("web", 3900)], 0, id="nothing where the peak is near the request"),
        pytest.param([reading("web", 1000), reading("api", 1000)], 8000 - 2200 - 1100, id="two"),
        pytest.param([reading("web", 1000, asked_millis=0)], 0, id="who asked for nothing lends nothing"),
        pytest.param([reading("web", 100, terminating=True)], 0, id="who ends"),
        pytest.param([reading("web", 100, phase="Succeeded")], 0, id="who has ended"),
        pytest.param([reading("db", 100, qos="dedicated_cores")], 0, id="on CPUs of its own"),
        pytest.param([reading("dns", 100, qos="system_cores")], 0, id="of the system"),
        pytest.param([reading("mid", 100, priority=MID)], 0, id="mid pods lend nothing"),
        pytest.param([reading("job", 100, qos="reclaimed_cores")], 0, id="nor do reclaimed ones"),
    ],
)
def test_what_prod_pods_lend(ten_cpus: NewNode, pods: list[PodReading], millis: int) -> None:
    assert near(lent(ten_cpus(*pods)).cpu_millis, millis)


@pytest.mark.parametrize(
    ("asked", "peaks", "together", "thousandths"),
    [
        pytest.param(
            [4500, 4500], [4000, 4000], 4000, 9000 - 2 * 4400, id="what each does not use, though not at once"
        ),
        pytest.param([6000, 6000], [4000, 4000], 4000, 10_000 - 2 * 4400, id="nor more than the node has beside that"),
        pytest.param([4000, 4000], [1000, 1000], 5000, 8000 - 5500 - 1100, id="nor more than all together leave"),
        pytest.param([1000, 3000], [2000, 1000], 500, 3000 - 1100, id="one above its request takes from no other"),
    ],
)
def test_no_more_is_lent_than_by_any_of_the_sums(
    ten_cpus: NewNode, asked: list[int], peaks: list[int], together: int, thousandths: int
) -> None:
    """Of CPU in milli-cores and of memory in thousandths of a GiB, which are given and used alike."""
    pods = [reading(f"web{n}", 0, asked_millis=millis) for n, millis in enumerate(asked)]
    used = {one.pod.uid: peak for one, peak in zip(pods, peaks, strict=True)} | {PROD: together, SYSTEM: 1000}
    history = UsageHistory()
    for minute in range(MINUTES + 1):
        amounts = {name: UsedAmounts(millis, millis * GIB // 1000) for name, millis in used.items()}
        history.observe(amounts, minute * MINUTE_S)
    found = lent(ten_cpus(*pods), history)
    assert near(found.cpu_millis, thousandths)
    assert near(found.memory_bytes * 1000 // GIB, thousandths)


def test_dedicated_pods_lend_memory(ten_cpus: NewNode) -> None:
    assert lent(ten_cpus(reading("db", 100, qos="dedicated_cores"))).memory_bytes > 2 * GIB


def test_a_pod_lends_nothing_before_it_was_observed_for_long(ten_cpus: NewNode) -> None:
    sample = ten_cpus(reading("web", 1000))
    early = lent(sample, learnt(sample, MINUTES - 1))
    assert (early.cpu_millis, early.known_pods, early.new_pods) == (0, 0, 1)
    late = lent(sample)
    assert late.cpu_millis > 0
    assert (late.known_pods, late.new_pods) == (1, 0)
    both = ten_cpus(reading("web", 1000), reading("new", 10))
    assert lent(both, learnt(sample)).new_pods == 1
    assert lent(both, learnt(sample)).cpu_millis <= late.cpu_millis


def test_one_pod_above_its_request_takes_from_what_all_lend(ten_cpus: NewNode) -> None:
    """Each by itself lends 3 CPUs less its peak; together they use what one of them asked for."""
    sample = ten_cpus(reading("web", 500), reading("hot", 4500, asked_millis=1000))
    assert near(lent(sample).cpu_millis, max(0, 5000 - 5500 - 1100))


def test_a_pod_without_a_figure_is_not_learnt_and_lends_nothing(ten_cpus: NewNode) -> None:
    sample = ten_cpus(reading("web"))
    assert set(used_now(sample)) == {PROD, SYSTEM}
    assert lent(sample).cpu_millis == 0
    assert SYSTEM not in used_now(ten_cpus(reading("web", 10), cpu_usage_cores=None))


@pytest.mark.parametrize(
    ("pods", "millis"),
    [
        pytest.param([reading("web", 1000)], 1100 + 1100, id="with the system, which stands in no pod"),
        pytest.param([reading("web", 3900), reading("api", 100)], 4400 + 1100, id="of all together"),
        pytest.param([reading("db", 100, qos="dedicated_cores")], 4000 + 1100, id="CPUs of its own by request"),
        pytest.param([reading("dns", 4900, qos="system_cores")], 5390 + 1100, id="or by use, where that is more"),
        pytest.param([reading("job", 3000, qos="reclaimed_cores")], 1100, id="no batch pod"),
        pytest.param([reading("web", 1000, terminating=True)], 1100 + 1100, id="who ends is part of all together"),
    ],
)
def test_the_peak_of_prod_pods_and_the_system(ten_cpus: NewNode, pods: list[PodReading], millis: int) -> None:
    peak = lent(ten_cpus(*pods)).peak
    assert peak is not None
    # Rounded up to the bound of a bucket.
    assert near(millis, peak.cpu_millis)


def test_a_pod_that_is_not_known_peaks_at_its_request(ten_cpus: NewNode) -> None:
    known = ten_cpus(reading("web", 1000))
    found = lent(ten_cpus(reading("web", 1000), reading("new", 10)), learnt(known)).peak
    assert found is not None
    assert near(1100 + 4000, found.cpu_millis)
    assert found.memory_bytes >= 4 * GIB
    ending = ten_cpus(reading("web", 1000), reading("new", 10, terminating=True))
    assert lent(ending, learnt(known)).peak == lent(known).peak


def test_without_a_past_of_the_system_there_is_no_peak(ten_cpus: NewNode) -> None:
    sample = ten_cpus(reading("web", 1000))
    assert lent(sample, learnt(sample, MINUTES - 1)).peak is None


@given(used=st.lists(st.integers(0, 2200), max_size=4))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_law_what_is_lent_and_the_peak_are_no_more_than_there_is(ten_cpus: NewNode, used: list[int]) -> None:
    sample = ten_cpus(*(reading(f"p{number}", millis) for number, millis in enumerate(used)))
    found = lent(sample)
    assert found.peak is not None
    assert found.cpu_millis == 0 or found.cpu_millis + found.peak.cpu_millis <= TEN.cpu_millis
    assert found.memory_bytes == 0 or found.memory_bytes + found.peak.memory_bytes <= TEN.memory_bytes
