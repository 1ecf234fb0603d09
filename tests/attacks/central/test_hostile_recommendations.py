"""ResourceRecommends, pods and figures as nobody means them: each is read or refused by itself, nothing grows without
bounds, and no figure that a node invents reaches another node's pods."""

import contextlib
import json
from typing import Any

import pytest
from odd_documents import odd_documents
from pydantic import ValidationError

from services.central.adapters.recommendation.recommend_objects import kept_usage
from services.central.core.recommendation.advice import AdvisedWorkload, advise
from services.central.core.recommendation.objects.resource_recommend import recommend_of
from services.central.core.recommendation.objects.status import written_targets
from services.central.core.recommendation.objects.workloads import deployment_of, pod_of_workload
from services.central.core.recommendation.usage.checkpoint import restored
from services.central.core.recommendation.usage.samples import ContainerUsage, summary
from services.central.core.recommendation.validity import ResourcePolicy, validity
from shared.contracts.cluster.figures import FiguredContainers, FiguredPods
from shared.errors import Refused

RECOMMEND: dict[str, Any] = {
    "metadata": {"uid": "u", "namespace": "shop", "name": "web", "generation": 1, "annotations": {"a": "b"}},
    "spec": {
        "targetRef": {"kind": "Deployment", "name": "web"},
        "resourcePolicy": {
            "algorithmPolicy": {"algorithm": "percentile", "recommender": "default"},
            "containerPolicies": [
                {"containerName": "*", "controlledResourcesPolicies": [
                    {"resourceName": "cpu", "bufferPercent": 30, "minAllowed": "1", "maxAllowed": 4}]}],
        },
    },
    "status": {"conditions": [], "recommendResources": {"containerRecommendations": [
        {"containerName": "main", "requests": {"target": {"cpu": "1"}}}]}},
}  # fmt: skip
KILLED = {"terminated": {"reason": "OOMKilled", "finishedAt": "2026-01-01T00:00:00Z"}}
POD: dict[str, Any] = {
    "metadata": {"uid": "u", "namespace": "shop", "name": "web-5d9c-aaaaa", "labels": {"pod-template-hash": "5d9c"},
                 "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d9c"}]},
    "spec": {"nodeName": "n1", "containers": [
        {"name": "main", "resources": {"requests": {"cpu": "1"}}, "resizePolicy": [{"resourceName": "cpu"}]}]},
    "status": {"phase": "Running", "conditions": [{"type": "PodResizePending", "status": "True"}],
               "containerStatuses": [{"name": "main", "lastState": KILLED, "resources": {"requests": {"cpu": "1"}}}]},
}  # fmt: skip
DEPLOYMENT = {"metadata": {"namespace": "shop", "name": "web"}, "spec": {"template": {"spec": POD["spec"]}}}
CHECKPOINT = {
    "containers": {"main": {"cpu": {"at_s": 1.0, "heaviest": 1.0, "parts": {"3": 10000}}, "hours": {"u": [1, 2.0]}}},
    "kills": [{"pod": "p", "container": "c", "memory_bytes": 1, "finished_s": 1.0}],
}


def test_odd_recommends_are_read_or_refused_and_say_little() -> None:
    for name, document in odd_documents([RECOMMEND], 3000, seed=19):
        try:
            seen = recommend_of(document)
        except Refused:
            continue
        if seen is None:
            continue
        assert len(seen.problem) < 2000, name
        written_targets(seen.status)
        if seen.wanted is not None:
            found = validity(seen.wanted, ["main"])
            assert len(found.said) < 2000, name
            assert set(found.containers) <= {"main"}, name


def test_odd_pods_and_deployments_are_read_without_what_they_do_not_say() -> None:
    for name, document in odd_documents([POD, DEPLOYMENT], 3000, seed=20):
        pod, deployment = pod_of_workload(document), deployment_of(document)
        for seen in (pod, deployment):
            for one in () if seen is None else seen.containers.values():
                assert all(0 <= amount <= 1 << 60 for amount in (*one.requests.values(), *one.limits.values())), name
        if pod is not None:
            assert len(pod.resize_said) <= 256, name
            assert all(kill.memory_bytes >= 0 for kill in pod.kills), name


def test_odd_checkpoints_are_refused_or_make_finite_figures() -> None:
    for name, document in odd_documents([CHECKPOINT], 2000, seed=21):
        try:
            usages, _ = restored(json.dumps(document, default=str), "shop")
        except Refused:
            continue
        for usage in usages.values():
            known = summary(usage, 1e9)
            for found in (known.cpu_cores, known.memory_bytes):
                assert found is None or 0 <= found.lower <= found.target <= found.upper < 1e13, name


def test_odd_checkpoint_objects_are_refused_or_name_one_owner() -> None:
    good = {
        "metadata": {"name": "web", "namespace": "shop", "ownerReferences": [{"uid": "u"}]},
        "spec": {"usage": "{}"},
    }
    for name, document in odd_documents([good], 1000, seed=22):
        with contextlib.suppress(Refused):
            kept = kept_usage(document)
            assert isinstance(kept.uid, str), name
            assert isinstance(kept.usage, str), name


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, "much", None])
def test_a_figure_that_is_none_does_not_pass_the_message(value: Any) -> None:
    series = {"container_cpu_usage": (value,)}
    if value is None:
        assert FiguredContainers(pods=(0,), names=("main",), series=series).series == series
        return
    with pytest.raises(ValidationError):
        FiguredContainers(pods=(0,), names=("main",), series=series)


def test_columns_of_unlike_length_do_not_pass() -> None:
    with pytest.raises(ValidationError, match="want 1"):
        FiguredPods(uids=("1f",), namespaces=(), names=("p",))


def test_the_largest_use_that_a_message_can_tell_makes_a_bounded_figure() -> None:
    usage = ContainerUsage()
    for minute in range(3):
        usage.see("u", minute * 60.0, cpu_cores=float(1 << 62), memory_bytes=float(1 << 62))
    policies = {"main": [ResourcePolicy("cpu", 100), ResourcePolicy("memory", 100)]}
    found = advise(AdvisedWorkload("shop", "web"), policies, {"main": summary(usage, 180.0)}, [], 180.0)
    # The last bucket answers its start: a thousand cores and a terabyte, and what is added to them.
    assert found["main"].target["cpu"] <= 2 * 1_050_000
    assert found["main"].target["memory"] <= 2 * 1.06e12
