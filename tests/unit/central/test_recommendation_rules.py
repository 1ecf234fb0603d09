"""Rules of recommendation: tables and laws of the histogram, requests, kills, validity and bounds."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.recommendation.bounds import UsagePercentiles, confidence_days, request_bounds
from services.central.core.recommendation.histogram import BucketScheme, UsageHistogram
from services.central.core.recommendation.oom import OomKill, WorkloadContainer, is_news, kept, memory_floor
from services.central.core.recommendation.request import (
    MIB,
    AllowedRange,
    requested_cpu,
    requested_memory,
    rounded_memory,
)
from services.central.core.recommendation.validity import (
    ContainerPolicy,
    ResourcePolicy,
    WantedRecommendation,
    validity,
)
from shared.errors import Refused
from sublet.whatif import answer, kinds

DAY_S = 86_400.0
CPU = BucketScheme(0.01, 1000.0, half_life_s=DAY_S)
FREE = AllowedRange({}, {})
samples = st.lists(st.tuples(st.floats(0, 900), st.floats(0, 30 * DAY_S), st.floats(0.1, 100)), min_size=1, max_size=30)


def histogram(taken: list[tuple[float, float, float]], at_s: float = 0.0) -> UsageHistogram:
    found = UsageHistogram.empty(CPU, at_s)
    for value, at_s, weight in taken:
        found = found.add(value, at_s, weight)
    return found


@given(samples)
def test_a_percentile_is_never_less_than_what_it_covers_and_at_most_a_bucket_more(taken: Any) -> None:
    highest = histogram(taken).percentile(1.0)
    if highest is None:
        return  # so old that nothing weighs anything
    heavy = max(value for value, _, _ in taken)
    assert highest.value <= max(heavy * 1.06, 0.02) + 0.02
    assert CPU.start(highest.bucket) < highest.value


@given(samples)
def test_percentiles_rise(taken: Any) -> None:
    found = [histogram(taken).percentile(part) for part in (0.5, 0.9, 0.95, 1.0)]
    values = [one.value for one in found if one is not None]
    assert values == sorted(values)
    assert len(values) in (0, 4)


@given(samples, st.floats(0, 400 * DAY_S))
def test_growing_old_changes_no_percentile_but_ends_it(taken: Any, later_s: float) -> None:
    now = histogram(taken)
    before, after = now.percentile(0.9), now.aged(now.at_s + later_s).percentile(0.9)
    if now.weights and min(now.weights.values()) * CPU.decay(later_s) >= 2 * CPU.epsilon:
        assert after == before


@given(samples)
def test_the_order_of_samples_does_not_matter(taken: Any) -> None:
    one, other = histogram(taken), histogram(taken[::-1])
    assert one.at_s == other.at_s
    assert one.weights.keys() == other.weights.keys()
    for bucket, weight in one.weights.items():
        assert math.isclose(weight, other.weights[bucket], rel_tol=1e-9, abs_tol=1e-300)


def test_a_newer_sample_takes_weight_from_all_others_and_an_older_one_comes_in_light() -> None:
    newer = histogram([(1.0, 0.0, 1.0), (9.0, DAY_S, 1.0)])
    older = histogram([(9.0, DAY_S, 1.0), (1.0, 0.0, 1.0)])
    assert newer.weights == older.weights == {CPU.bucket(1.0): 0.5, CPU.bucket(9.0): 1.0}


@pytest.mark.parametrize(
    ("first", "most", "growth", "epsilon", "half_life"),
    [(0, 1, 0.1, 1, None), (1, 0, 0.1, 1, None), (1, 2, 0, 1, None), (1, 2, -1, 1, None), (2, 2, 0.1, 1, None),
     (3, 2, 0.1, 1, None), (1, 2, 0.1, 0, None), (1, 2, 0.1, 1, 0), (1, 2, 1e-300, 1, None),
     (1e-300, 1e300, 0.1, 1, None)],
)  # fmt: skip
def test_a_scheme_that_has_no_buckets_is_refused(
    first: Any, most: Any, growth: Any, epsilon: Any, half_life: Any
) -> None:
    with pytest.raises(Refused) as refusal:
        BucketScheme(first, most, growth, epsilon, half_life)
    assert refusal.value.reason == "invalid_histogram"


@pytest.mark.parametrize("part", [0.0, -0.1, 1.1, math.nan])
def test_a_part_that_is_none_is_refused(part: float) -> None:
    with pytest.raises(Refused, match="percentile"):
        histogram([(1.0, 0.0, 1.0)]).percentile(part)


@pytest.mark.parametrize(
    ("given_bytes", "want"),
    [(0, 0), (1, 1), (1023, 1023), (1024, 1024), (1100, 2048), (MIB - 1, MIB), (MIB, MIB), (MIB + 1, 2 * MIB)],
)
def test_memory_is_rounded_up_so_that_a_person_can_read_it(given_bytes: int, want: int) -> None:
    assert rounded_memory(given_bytes) == want


@given(st.floats(0, 1e12), st.integers(0, 100), st.integers(0, 2**41), st.integers(0, 2**40), st.integers(0, 2**41))
def test_a_request_is_within_what_is_allowed(used: float, buffer: int, oom: int, least: int, most: int) -> None:
    allowed = AllowedRange({"memory": least}, {"memory": most})
    found = requested_memory(used, buffer, oom, allowed)
    assert found.size_bytes >= least
    assert found.size_bytes <= max(most, least)


@given(st.floats(0, 1000), st.integers(0, 100))
def test_a_request_is_never_below_the_use(cores: float, buffer: int) -> None:
    assert requested_cpu(cores, buffer, FREE) >= int(cores * 1000)
    assert requested_memory(cores * MIB, buffer, None, FREE).size_bytes >= int(cores * MIB)


@pytest.mark.parametrize("buffer", [-1, 100.5, math.inf, math.nan])
def test_a_buffer_out_of_bounds_is_refused(buffer: float) -> None:
    with pytest.raises(Refused) as refusal:
        requested_cpu(1.0, buffer, FREE)
    assert refusal.value.reason == "invalid_buffer"


def kill(size: int = MIB, at_s: float = 100.0, pod: str = "web-5d9c-abcde") -> OomKill:
    return OomKill("d", pod, "main", size, at_s)


@pytest.mark.parametrize(
    ("told", "known", "news"),
    [
        pytest.param(kill(), None, True, id="the first"),
        pytest.param(kill(0), None, False, id="of a container that was given nothing that is known"),
        pytest.param(kill(), kill(), False, id="told twice"),
        pytest.param(kill(at_s=200.0), kill(), True, id="again"),
        pytest.param(kill(MIB - 1, 200.0), kill(), False, id="with less memory than it was killed with before"),
        pytest.param(kill(2 * MIB), kill(), False, id="another figure for the same moment"),
    ],
)
def test_which_kills_are_kept(told: OomKill, known: OomKill | None, news: bool) -> None:
    assert is_news(told, known) is news


@pytest.mark.parametrize(
    ("pod", "counts"),
    [("web-5d9c-abcde", True), ("web-api-5d9c-abcde", False), ("web-abcde", False), ("web-5d9c-abcdef", False),
     ("web-5d9C-abcde", False), ("xweb-5d9c-abcde", False), ("web-5d9c-abcde\n", False)],
)  # fmt: skip
def test_kills_of_other_workloads_teach_nothing(pod: str, counts: bool) -> None:
    found = memory_floor([kill(pod=pod)], WorkloadContainer("d", "web", "main"), 100.0)
    assert (found is not None) is counts


def test_a_workloads_name_is_no_pattern() -> None:
    assert memory_floor([kill(pod="wxb-5d9c-abcde")], WorkloadContainer("d", "w.b", "main"), 100.0) is None


def test_the_largest_kill_of_the_last_week_counts() -> None:
    week = 7 * DAY_S
    told = [kill(500 * MIB, 0.0), kill(300 * MIB, 10.0, "web-5d9c-bbbbb"), kill(200 * MIB, 20.0, "web-5d9c-ccccc")]
    of = WorkloadContainer("d", "web", "main")
    assert memory_floor(told, of, week) == 600 * MIB
    assert memory_floor(told, of, week + 1) == 400 * MIB
    assert memory_floor(told, of, week + 21) is None


def test_the_newest_records_are_kept() -> None:
    told = {one.key: one for one in (kill(at_s=float(n), pod=f"web-5d9c-{n:05d}") for n in range(20))}
    assert [one.finished_s for one in kept(told, 100.0, most=3)] == [19.0, 18.0, 17.0]
    assert [one.finished_s for one in kept(told, 100.0, keep_s=82.0)] == [19.0, 18.0]


def wanted(*policies: ContainerPolicy, kind: str = "Deployment", name: str = "web", algorithm: str = "") -> Any:
    return WantedRecommendation(kind, name, algorithm, policies)


GOOD = ContainerPolicy("a", [ResourcePolicy("cpu")])


@pytest.mark.parametrize(
    ("spec", "there", "code"),
    [
        (wanted(kind="", name="", algorithm="x"), None, "WorkloadNameIsEmpty"),
        (wanted(kind="StatefulSet", algorithm="x"), None, "WorkloadsUnsupported"),
        (wanted(algorithm="x"), None, "AlgorithmUnsupported"),
        (wanted(), None, "ContainerPoliciesNotFound"),
        (wanted(GOOD), None, "WorkloadNotFound"),
        (wanted(GOOD, ContainerPolicy("a", [])), ["a"], "ContainerDuplicate"),
        (wanted(ContainerPolicy("", []), GOOD, GOOD), ["a"], "ContainerNameEmpty"),
        (wanted(ContainerPolicy("x", [])), ["a"], "ContainersNotFound"),
        (wanted(ContainerPolicy("a", [])), ["a"], "ControlledResourcesPoliciesEmpty"),
        (wanted(ContainerPolicy("a", [ResourcePolicy("gpu", -1, "x")])), ["a"], "ResourceNameUnsupported"),
        (wanted(ContainerPolicy("a", [ResourcePolicy("cpu", -1, "x")])), ["a"], "ControlledValuesUnsupported"),
        (wanted(ContainerPolicy("a", [ResourcePolicy("cpu", 101)])), ["a"], "ResourceBuffersUnsupported"),
        (wanted(ContainerPolicy("*", [ResourcePolicy("gpu")]), ContainerPolicy("a", [ResourcePolicy("cpu", -1)])),
         ["a", "b"], "ResourceBuffersUnsupported"),
        (wanted(ContainerPolicy("*", [ResourcePolicy("gpu")]), GOOD), ["a"], "ok"),
        (wanted(GOOD, algorithm="percentile"), ["a", "b"], "ok"),
    ],
)  # fmt: skip
def test_the_first_thing_that_is_wrong_is_said(spec: Any, there: Any, code: str) -> None:
    found = validity(spec, there)
    assert found.code == code
    assert bool(found.said) == (code != "ok")
    assert bool(found.containers) == (code == "ok")


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 400), st.integers(0, 1000))
def test_bounds_hold_the_target_and_come_nearer_with_time(
    a: float, b: float, c: float, days: float, least: int
) -> None:
    usage = UsagePercentiles(*sorted((a, b, c)))
    now, later = request_bounds(usage, days, least), request_bounds(usage, days + 1, least)
    assert least <= now.lower <= later.lower <= later.target
    assert later.upper is not None
    assert later.target <= later.upper
    assert now.upper is None or now.upper >= later.upper


def test_confidence_is_that_of_the_scarcer() -> None:
    assert confidence_days(2 * DAY_S, 1440) == 1.0
    assert confidence_days(DAY_S / 2, 99_999) == 0.5


@pytest.mark.parametrize(
    ("kind", "inputs", "code"),
    [
        ("usage_percentile", {"histogram": {"first_bucket": 1, "max": 2}, "percentile": 2, "samples": []},
         "invalid_histogram"),
        ("recommend_request", {"buffer_percent": 101}, "invalid_buffer"),
    ],
)  # fmt: skip
def test_a_rule_that_refuses_says_its_code(kind: str, inputs: Any, code: str) -> None:
    assert answer(kinds(), kind, inputs)["error"] == code
