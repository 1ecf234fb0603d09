"""Load of a node: estimates, what reports cannot show yet, thresholds, and the score."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.scheduling.load.estimate import estimate
from services.central.core.scheduling.load.expected_use import (
    Aggregate,
    AssignedPod,
    ExpectedUse,
    LoadReport,
    UsedByPod,
)
from services.central.core.scheduling.load.filter import PASSES, Ceiling, LoadLimits, LoadVerdict, judge_age, judge_load
from services.central.core.scheduling.load.score import load_score

AMOUNTS = st.fixed_dictionaries({"cpu": st.integers(0, 200_000), "memory": st.integers(0, 1 << 40)})
SEEN = {"cpu": 10_000, "memory": 1000}
REPORT = LoadReport(measured_s=0, usage=SEEN, pods={"a": UsedByPod({"cpu": 600, "memory": 0})})
POD_A = AssignedPod("a", {"cpu": 1000, "memory": 100}, assigned_s=-60)


@pytest.mark.parametrize(
    ("requests", "limits", "used"),
    [
        pytest.param({}, {}, {"cpu": 250, "memory": 200 << 20}, id="nothing asked for"),
        pytest.param({"cpu": 0, "memory": 0}, {}, {"cpu": 250, "memory": 200 << 20}, id="zero asked for"),
        pytest.param({"cpu": 1000, "memory": 1000}, {}, {"cpu": 850, "memory": 700}, id="a request alone"),
        pytest.param({"cpu": 1000}, {"cpu": 4000}, {"cpu": 3400, "memory": 200 << 20}, id="the limit is the larger"),
        pytest.param({"cpu": 4000}, {"cpu": 1000}, {"cpu": 1000, "memory": 200 << 20}, id="at most the limit"),
        pytest.param({"cpu": 10, "memory": 5}, {}, {"cpu": 9, "memory": 4}, id="halves go up"),
    ],
)
def test_a_pod_is_expected_to_use_a_part_of_what_it_asks_for(
    requests: dict[str, int], limits: dict[str, int], used: dict[str, int]
) -> None:
    assert estimate(requests, limits) == used


def test_a_resource_without_a_usual_amount_counts_nothing_where_it_is_not_asked_for() -> None:
    assert estimate({"cpu": 100}, {}, {"cpu": 200, "gpu": 50}) == {"cpu": 200, "gpu": 0}


@pytest.mark.parametrize(
    ("pod", "cpu_millis"),
    [
        pytest.param(POD_A, 10_000, id="it was there for the whole interval"),
        pytest.param(replace(POD_A, assigned_s=-59), 10_400, id="it came within it: what its use lacks"),
        pytest.param(replace(POD_A, assigned_s=None), 10_000, id="it came before anybody watched"),
        pytest.param(replace(POD_A, name="b"), 11_000, id="the report does not show it: all of it"),
        pytest.param(replace(POD_A, assigned_s=5, estimate={"cpu": 500}), 10_000, id="it uses more than expected"),
    ],
)
def test_what_a_report_cannot_show_yet_is_added_to_it(pod: AssignedPod, cpu_millis: int) -> None:
    assert ExpectedUse.of(REPORT, [pod]).everything["cpu"] == cpu_millis


def test_a_use_that_is_empty_in_the_report_is_no_use_of_nothing() -> None:
    report = replace(REPORT, pods={"a": UsedByPod({})})
    assert ExpectedUse.of(report, [POD_A]).everything["cpu"] == 11_000


@pytest.mark.parametrize(
    ("reported_prod", "assigned_s", "prod"),
    [
        pytest.param(True, -60, {"cpu": 600, "memory": 0}, id="both say prod: its use"),
        pytest.param(True, -1, {"cpu": 1000, "memory": 100}, id="and what that lacks of a young one"),
        pytest.param(False, -60, {"cpu": 1000, "memory": 100}, id="the report says otherwise: all of its estimate"),
    ],
)
def test_prod_use_is_of_pods_that_both_sides_call_prod(
    reported_prod: bool, assigned_s: int, prod: dict[str, int]
) -> None:
    report = replace(REPORT, pods={"a": UsedByPod({"cpu": 600, "memory": 0}, prod=reported_prod)})
    pods = [replace(POD_A, prod=True, assigned_s=assigned_s), AssignedPod("batch", {"cpu": 5000})]
    assert ExpectedUse.of(report, pods).prod == prod


@pytest.mark.parametrize(
    ("aggregate", "cpu_millis"),
    [
        pytest.param(Aggregate("p95", 300), 300, id="the duration that is named"),
        pytest.param(Aggregate("p95"), 900, id="the longest one"),
        pytest.param(Aggregate("p99"), 10_000, id="none of that kind: what is used now"),
        pytest.param(Aggregate("p95", 60), 1000, id="that duration is missing: estimates and nothing else"),
    ],
)
def test_a_percentile_counts_instead_of_the_use_of_the_moment(aggregate: Aggregate, cpu_millis: int) -> None:
    over = {("p95", 300.0): {"cpu": 300}, ("p95", 900.0): {"cpu": 900}, ("p95", 1800.0): {}}
    assert ExpectedUse.of(replace(REPORT, aggregated=over), [POD_A], aggregate).everything["cpu"] == cpu_millis


PERCENTILE = LoadLimits(aggregated_thresholds={"cpu": 50}, aggregate=Aggregate("p95"))


@pytest.mark.parametrize(
    ("limits", "prod", "measure"),
    [
        pytest.param(LoadLimits(), False, "usage", id="as it comes"),
        pytest.param(LoadLimits(prod_thresholds={"cpu": 40}), False, "usage", id="no prod pod"),
        pytest.param(LoadLimits(prod_thresholds={"cpu": 40}), True, "prod_usage", id="a prod pod"),
        pytest.param(LoadLimits(prod_thresholds={"cpu": 0}), True, "usage", id="thresholds of prod pods are off"),
        pytest.param(replace(PERCENTILE, prod_thresholds={"cpu": 1}), True, "prod_usage", id="prod goes first"),
        pytest.param(PERCENTILE, True, "aggregated_usage", id="a percentile goes before the moment"),
        pytest.param(LoadLimits(thresholds={"cpu": 0, "memory": 0}), True, None, id="all off"),
    ],
)
def test_the_first_thresholds_that_are_set_hold(limits: LoadLimits, prod: bool, measure: str | None) -> None:
    found = Ceiling.of(limits, prod=prod, daemonset=False)
    assert (found and found.measure) == measure
    assert Ceiling.of(limits, prod=prod, daemonset=True) is None


CEILING = Ceiling({"cpu": 65, "memory": 95}, "usage")


def judged(
    used: dict[str, int], *, ceiling: Ceiling = CEILING, allocatable: dict[str, int] | None = None
) -> LoadVerdict:
    return judge_load(ceiling, {}, ExpectedUse(used, {}), allocatable or {"cpu": 1000, "memory": 1000})


@pytest.mark.parametrize(
    ("used", "reason"),
    [
        pytest.param({"cpu": 654, "memory": 954}, None, id="at both thresholds, rounded"),
        pytest.param({"cpu": 655, "memory": 0}, "usage:cpu", id="half a percent above is rounded up"),
        pytest.param({"cpu": 0, "memory": 955}, "usage:memory", id="memory"),
        pytest.param({"cpu": 999, "memory": 999}, "usage:cpu", id="the first by name"),
    ],
)
def test_a_node_is_refused_above_a_threshold_and_not_at_it(used: dict[str, int], reason: str | None) -> None:
    assert judged(used).reason == reason


def test_what_is_off_or_not_there_has_no_percentage_and_refuses_nobody() -> None:
    assert judged({"cpu": 999, "memory": 5}, ceiling=Ceiling({"cpu": 0, "memory": 95}, "usage")).usage_percent == {
        "memory": 1
    }
    assert judged({"cpu": 999}, allocatable={"memory": 1}).fits


def test_a_percentile_names_itself_in_the_reason() -> None:
    assert judged({"cpu": 999}, ceiling=Ceiling({"cpu": 65}, "aggregated_usage")).reason == "aggregated_usage:cpu"


@pytest.mark.parametrize(
    ("age_s", "limits", "verdict"),
    [
        pytest.param(179.9, LoadLimits(), None, id="fresh"),
        pytest.param(180, LoadLimits(), LoadVerdict("metric_expired"), id="expired at the limit"),
        pytest.param(180, LoadLimits(schedule_when_expired=True), PASSES, id="expired, and it may come all the same"),
        pytest.param(999, LoadLimits(filter_expired=False), None, id="age does not count"),
    ],
)
def test_an_old_report_is_not_weighed(age_s: float, limits: LoadLimits, verdict: LoadVerdict | None) -> None:
    assert judge_age(age_s, limits) == verdict


@pytest.mark.parametrize(
    ("used", "weights", "dominant", "score"),
    [
        pytest.param({"cpu": 200, "memory": 600}, {"cpu": 1, "memory": 1}, 0, 60, id="the mean"),
        pytest.param({"cpu": 200, "memory": 600}, {"cpu": 3, "memory": 1}, 0, 70, id="weights"),
        pytest.param({"cpu": 200, "memory": 600}, {"cpu": 1, "memory": 1}, 2, 50, id="the scarcest once more"),
        pytest.param({"cpu": 1001, "memory": 0}, {"cpu": 1, "memory": 1}, 0, 50, id="more than there is"),
        pytest.param({"gpu": 0}, {"gpu": 1}, 0, 0, id="a resource that the node does not have"),
        pytest.param({}, {"cpu": 0}, 0, 0, id="no weights"),
        pytest.param({}, {}, 3, 100, id="nothing but a dominant weight"),
    ],
)
def test_the_score_is_what_stays_free(used: dict[str, int], weights: dict[str, int], dominant: int, score: int) -> None:
    assert load_score(used, {"cpu": 1000, "memory": 1000}, weights, dominant) == score


@given(AMOUNTS, AMOUNTS, AMOUNTS, st.integers(0, 10))
def test_law_more_use_never_helps_a_node(
    used: dict[str, int], more: dict[str, int], allocatable: dict[str, int], dominant: int
) -> None:
    both = {name: used[name] + more[name] for name in used}
    weights = {"cpu": 1, "memory": 2}
    before, after = (load_score(use, allocatable, weights, dominant) for use in (used, both))
    assert 0 <= after <= before <= 100
    assert judged(used, allocatable=allocatable).fits or not judged(both, allocatable=allocatable).fits


@given(st.permutations([AssignedPod(str(n), {"cpu": n * 100}, prod=n % 2 == 0) for n in range(5)]))
def test_law_the_order_of_pods_says_nothing(pods: list[AssignedPod]) -> None:
    report = replace(REPORT, pods={"2": UsedByPod({"cpu": 7}, prod=True), "3": UsedByPod({"cpu": 9})})
    assert ExpectedUse.of(report, pods) == ExpectedUse.of(report, sorted(pods, key=lambda pod: pod.name))
