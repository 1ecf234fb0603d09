"""Objects of recommendation: what is read of them, what their status says, and which pod is resized next."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from services.central.core.recommendation.advice import ContainerAdvice
from services.central.core.recommendation.bounds import RequestBounds
from services.central.core.recommendation.objects.resource_recommend import RecommendSeen, recommend_of
from services.central.core.recommendation.objects.status import ConditionDue as Due
from services.central.core.recommendation.objects.status import conditions, figures_due, quantities, written_targets
from services.central.core.recommendation.objects.workloads import ContainerNeeds, WorkloadPod, pod_of_workload
from services.central.core.recommendation.resizing import WantedRequest, is_in_force, next_resize
from shared.errors import Refused

GIB = 1 << 30
NOW = datetime(2026, 1, 1, tzinfo=UTC)
META = {"uid": "u", "namespace": "shop", "name": "web", "generation": 3}


def seen(**spec: Any) -> RecommendSeen:
    found = recommend_of({"metadata": META, "spec": spec})
    assert found is not None
    return found


def test_a_spec_is_read_field_by_field() -> None:
    policy = {"resourceName": "cpu", "bufferPercent": 5, "minAllowed": "250m", "maxAllowed": 2}
    containers = [{"containerName": "a", "controlledResourcesPolicies": [policy]}]
    found = seen(targetRef={"kind": "Deployment", "name": "w"}, resourcePolicy={"containerPolicies": containers})
    assert found.wanted is not None
    assert (found.wanted.kind, found.wanted.name, found.wanted.algorithm) == ("Deployment", "w", "")
    (part,) = found.wanted.policies[0].resources
    assert (part.buffer_percent, part.min_allowed, part.max_allowed) == (5, 250, 2000)


@pytest.mark.parametrize(
    "spec",
    [{"targetRef": "web"}, {"resourcePolicy": {"containerPolicies": [{"containerName": 7}]}},
     {"resourcePolicy": {"containerPolicies": [{"containerName": "a"}] * 65}},
     {"targetRef": {"kind": "Deployment", "name": "n" * 254}},
     {"resourcePolicy": {"containerPolicies": [
         {"containerName": "a", "controlledResourcesPolicies": [{"resourceName": "cpu", "minAllowed": "-1"}]}]}}],
)  # fmt: skip
def test_what_cannot_be_read_is_a_problem_and_no_wish(spec: Any) -> None:
    found = seen(**spec)
    assert found.wanted is None
    assert found.problem


def test_what_is_being_deleted_is_none_of_ours_and_a_name_there_must_be() -> None:
    assert recommend_of({"metadata": META | {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}}) is None
    with pytest.raises(Refused):
        recommend_of({"metadata": {"uid": "u"}})


def test_a_condition_keeps_its_time_while_it_holds_and_those_of_others_stay() -> None:
    there = [{"type": "Validated", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"},
             {"type": "Applied", "status": "True"}, {"type": "Theirs", "status": "True"}]  # fmt: skip
    found = conditions([Due("Validated", True, "Valid"), Due("Initialized", False, "NoSamples")], there, NOW)
    assert [one["type"] for one in found] == ["Validated", "Initialized", "Theirs"]
    assert [one.get("lastTransitionTime") for one in found] == ["2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z", None]


def advice(cpu: int, memory: int = GIB, *, from_oom: bool = False) -> dict[str, ContainerAdvice]:
    return {"main": ContainerAdvice({"cpu": cpu, "memory": memory}, {}, {}, 1.0, from_oom)}


@pytest.mark.parametrize(
    ("wanted", "age_s", "generation", "due"),
    [
        pytest.param(advice(1000), 9999, 3, False, id="the same"),
        pytest.param(advice(1040), 9999, 3, False, id="within the same bucket"),
        pytest.param(advice(1100), 9999, 3, True, id="another figure, old enough"),
        pytest.param(advice(1100), 10, 3, False, id="another figure, too soon"),
        pytest.param(advice(1000), 10, 4, True, id="a new spec"),
        pytest.param(advice(1000, 2 * GIB, from_oom=True), 10, 3, True, id="more memory after a kill, at once"),
        pytest.param(advice(1000, GIB // 2, from_oom=True), 10, 3, False, id="less memory, never at once"),
    ],
)
def test_when_figures_are_replaced(wanted: Any, age_s: float, generation: int, due: bool) -> None:
    status = {
        "observedGeneration": 3,
        "lastRecommendationTime": (NOW - timedelta(seconds=age_s)).isoformat(),
        "recommendResources": {"containerRecommendations": [
            {"containerName": "main", "requests": {"target": {"cpu": "1", "memory": "1Gi"}}}]},
    }  # fmt: skip
    there = RecommendSeen("u", "shop", "web", generation, None, status=status)
    assert figures_due(there, wanted, NOW, 3600.0) is due


def test_a_status_that_nobody_can_read_has_no_targets() -> None:
    for rows in (None, 7, [7], [{"containerName": 7}], [{"containerName": "a", "requests": {"target": "x"}}]):
        assert not any(written_targets({"recommendResources": {"containerRecommendations": rows}}).values())


def test_amounts_are_written_as_a_person_would() -> None:
    assert quantities({"memory": 3 << 20, "cpu": 1500}) == {"cpu": "1500m", "memory": "3Mi"}
    assert quantities({"memory": 1000, "cpu": 2000}) == {"cpu": "2", "memory": "1000"}


def pod(name: str = "a", cpu: int = 1000, **more: Any) -> WorkloadPod:
    needs = ContainerNeeds({"cpu": cpu, "memory": GIB}, {"memory": 4 * GIB}, more.pop("restarts", frozenset()))
    fields: dict[str, Any] = {"created": "2026-01-01", "running": True, "containers": {"main": needs}} | more
    return WorkloadPod(name, "shop", name, "web", "n1", **fields)


WANTED = {"main": WantedRequest({"cpu": 2000}, {"cpu": RequestBounds(1900, 1500, 3000)})}


@pytest.mark.parametrize(
    ("pods", "resized", "held"),
    [
        pytest.param([pod("b", created="2"), pod("a", created="1")], "a", {}, id="the oldest"),
        pytest.param([pod("b"), pod("a")], "a", {}, id="then by name"),
        pytest.param([pod(cpu=1500), pod("b", 3000)], None, {}, id="within the bounds"),
        pytest.param([pod(cpu=1499)], "a", {}, id="too little"),
        pytest.param([pod(cpu=3001)], "a", {}, id="too much"),
        pytest.param([pod(running=False), pod("b")], "b", {}, id="only those that run"),
        pytest.param([pod(restarts=frozenset({"cpu"})), pod("b")], "b", {"a": "would restart"}, id="no restarts"),
        pytest.param([pod(restarts=frozenset({"memory"}))], "a", {}, id="a restart for another resource"),
    ],
)
def test_who_is_resized_next(pods: Any, resized: str | None, held: dict[str, str]) -> None:
    plan = next_resize(pods, WANTED)
    assert (None if plan.resize is None else plan.resize.pod.name) == resized
    assert plan.held.keys() == held.keys()
    assert all(held[name] in why for name, why in plan.held.items())
    if plan.resize is not None:
        assert plan.resize.requests == {"main": {"cpu": 2000, "memory": GIB}}


def test_a_target_out_of_its_own_bounds_is_within_them() -> None:
    capped = {"main": WantedRequest({"cpu": 500}, {"cpu": RequestBounds(1900, 1500, 3000)})}
    assert next_resize([pod(cpu=500)], capped).resize is None
    raised = {"main": WantedRequest({"cpu": 9000}, {"cpu": RequestBounds(1900, 1500, 3000)})}
    assert next_resize([pod(cpu=9000)], raised).resize is None


@pytest.mark.parametrize("state", ["InProgress", "Deferred", "Infeasible"])
def test_nobody_is_resized_while_another_one_is(state: Any) -> None:
    plan = next_resize([pod("a"), pod("b", 2000, resize=state)], WANTED)
    assert plan.resize is None
    assert plan.waits_for == f"pod b: its resize is {state}"


def test_a_resize_is_in_force_when_kubelet_says_so() -> None:
    resize = next_resize([pod()], WANTED).resize
    assert resize is not None
    assert not is_in_force(resize, pod())
    assert not is_in_force(resize, pod(cpu=2000, in_force={"main": {"cpu": 1000, "memory": GIB}}))
    assert not is_in_force(resize, pod(cpu=2000, resize="InProgress"))
    assert is_in_force(resize, pod(cpu=2000, in_force={"main": {"cpu": 2000, "memory": GIB}}))
    assert is_in_force(resize, pod(cpu=2000))


@pytest.mark.parametrize(
    ("labels", "owner", "workload"),
    [
        ({"pod-template-hash": "5d9c"}, {"kind": "ReplicaSet", "name": "web-api-5d9c"}, "web-api"),
        ({"pod-template-hash": "5d9c"}, {"kind": "ReplicaSet", "name": "web-other"}, None),
        ({}, {"kind": "ReplicaSet", "name": "web-5d9c"}, None),
        ({"pod-template-hash": "5d9c"}, {"kind": "Job", "name": "web-5d9c"}, None),
        ({"pod-template-hash": 7}, {"kind": "ReplicaSet", "name": "web-7"}, None),
    ],
)
def test_whose_a_pod_is(labels: Any, owner: Any, workload: str | None) -> None:
    meta = {"uid": "u", "namespace": "shop", "name": "p", "labels": labels, "ownerReferences": [owner]}
    found = pod_of_workload({"metadata": meta, "spec": {"containers": []}, "status": {"phase": "Running"}})
    assert (None if found is None else found.workload) == workload
