"""New figures of a pod: who is meant, what its policies let through, and when it stays as it is."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.recommendation.baseline import ServicePod, baseline_of
from services.central.core.recommendation.vpa_target import (
    ContainerFigures,
    ControlledValues,
    PodMatching,
    ResizePolicy,
    check_strategy,
    concerns,
    pod_target,
)
from shared.core.cgroups.kube_qos import kube_qos
from shared.errors import Refused
from sublet.whatif import Malformed, answer, kinds

GIB = 1 << 30
NOW = ContainerFigures({"cpu": 1000, "memory": GIB}, {"cpu": 2000, "memory": 2 * GIB})
MORE = ContainerFigures({"cpu": 1500}, {"cpu": 3000})
EVERY = {"*": ResizePolicy()}


def test_pods_are_not_killed_in_order_to_be_changed() -> None:
    with pytest.raises(Refused, match="want Inplace") as refused:
        check_strategy("Recreate")
    assert refused.value.reason == "strategy_unsupported"
    for strategy in ("Inplace", "BestEffortInplace", "Off"):
        check_strategy(strategy)


@pytest.mark.parametrize(
    ("matching", "created_s", "meant"),
    [("All", 1, True), ("All", 9, True), ("ForFreshPod", 5, False), ("ForFreshPod", 6, True),
     ("ForHistoricalPod", 5, True), ("ForHistoricalPod", 6, False)],
)  # fmt: skip
def test_a_pod_is_meant_by_its_age(matching: PodMatching, created_s: float, meant: bool) -> None:
    assert concerns(matching, vpa_created_s=5, pod_created_s=created_s) is meant


def test_a_container_needs_both_a_recommendation_and_a_policy() -> None:
    pod = {"main": NOW, "side": NOW}
    assert pod_target(pod, {"main": MORE}, {"side": ResizePolicy()}).containers == {}
    found = pod_target(pod, {"main": MORE}, EVERY).containers
    assert found["main"].requests == {"cpu": 1500, "memory": GIB}
    assert found["side"] == NOW


@pytest.mark.parametrize(
    ("wanted", "hindrance"),
    [
        (ContainerFigures({"cpu": -1}), "negative"),
        (ContainerFigures({"cpu": 9000}, {"cpu": -1}), "negative"),
        (ContainerFigures({"cpu": 2001}), "request_above_limit"),
        (ContainerFigures({}, {"cpu": 999}), "request_above_limit"),
        (ContainerFigures({"cpu": 2000, "memory": 2 * GIB}), "qos_class_changes"),
    ],
)
def test_a_pod_that_could_not_have_them_keeps_all_of_its_figures(wanted: ContainerFigures, hindrance: str) -> None:
    side = {"side": NOW} if hindrance != "qos_class_changes" else {}
    found = pod_target({"main": NOW, **side}, {"main": wanted, "side": MORE}, EVERY)
    assert (found.containers, found.hindrance) == ({}, hindrance)


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "disk"]), st.integers(-10, 100), max_size=3)
FIGURES = st.builds(ContainerFigures, AMOUNTS, AMOUNTS)
POLICIES = st.builds(
    ResizePolicy, st.sampled_from(get_args(ControlledValues)), st.just(("cpu", "memory")), AMOUNTS, AMOUNTS
)
NAMES = st.sampled_from(["a", "b", "*"])


@given(
    st.dictionaries(st.sampled_from(["a", "b"]), FIGURES, min_size=1),
    st.dictionaries(NAMES, FIGURES),
    st.dictionaries(NAMES, POLICIES),
)
def test_what_changes_is_legal_controlled_and_within_bounds(
    pod: dict[str, ContainerFigures],
    recommended: dict[str, ContainerFigures],
    policies: dict[str, ResizePolicy],
) -> None:
    found = pod_target(pod, recommended, policies)
    if not found.containers:
        return
    assert found.containers != pod
    assert list(found.containers) == list(pod)
    before, after = ([(one.requests, one.limits) for one in pods.values()] for pods in (pod, found.containers))
    assert kube_qos(before) == kube_qos(after)
    for name, one in found.containers.items():
        policy = policies.get(name, policies.get("*"))
        assert one == pod[name] or (policy is not None and name in recommended)
        for past, figures in ((pod[name].requests, one.requests), (pod[name].limits, one.limits)):
            for resource, amount in figures.items():
                assert amount >= 0
                if policy is not None and past.get(resource) != amount:
                    assert resource in policy.controlled_resources
                    assert amount >= policy.min_allowed.get(resource, amount)
        assert all(amount <= one.limits.get(resource, amount) for resource, amount in one.requests.items())
    assert pod_target(found.containers, recommended, policies).containers == {}


def test_a_question_names_each_container_once() -> None:
    container = {"name": "a"}
    good = {"vpa_created_s": 0, "pod": {"created_s": 0, "containers": [container]}, "recommended": []}
    for twice in (
        {"pod": {"created_s": 0, "containers": [container, container]}},
        {"recommended": [{"container": "a"}] * 2},
        {"policies": [{"container": "*"}] * 2},
    ):
        with pytest.raises(Malformed, match="twice"):
            answer(kinds(), "vpa_target", good | twice)
    assert answer(kinds(), "vpa_target", good)["update"] is False


PODS = st.lists(
    st.builds(ServicePod, st.integers(0, 4), st.text("ab", max_size=4), st.booleans()),
    unique_by=lambda pod: pod.name,
    max_size=9,
)


@given(st.none() | st.integers(-5, 105), PODS)
def test_a_baseline_is_the_oldest_pods_and_grows_with_its_percent(percent: int | None, pods: list[ServicePod]) -> None:
    found = baseline_of(percent, pods)
    inside, outside = (
        [pod for pod in pods if pod.name in found.pods],
        [pod for pod in pods if pod.name not in found.pods],
    )
    assert all(one < other for one in inside for other in outside)
    if percent is None or percent <= 0:
        assert found.pods == ()
    elif percent >= 100:
        assert len(found.pods) == len(pods)
        assert found.sentinel is None
    else:
        larger = baseline_of(percent + 1, pods)
        assert set(found.pods) <= set(larger.pods)
        assert (found.sentinel is None) == (not any(pod.active for pod in pods))
        assert found.sentinel is None or found.sentinel.name in found.pods
