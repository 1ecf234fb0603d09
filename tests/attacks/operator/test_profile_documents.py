"""Autoscalers and descriptors as nobody means them: each is read or named, and none changes what it may not."""

import json
from typing import Any

from odd_documents import odd_documents

from services.central.core.recommendation.objects.workloads import ContainerNeeds, WorkloadPod, pod_of_workload
from services.central.core.recommendation.vpa_target import ContainerFigures
from services.central.core.service_profiles.descriptor import (
    described_deployment_of,
    descriptor_of,
)
from services.central.core.service_profiles.standing import PodStanding, sentinels, standing
from services.central.core.vertical.stock_vpa import stock_vpa_of
from services.central.core.vertical.vpa_object import katalyst_vpa_of
from services.central.core.vertical.vpa_round import VpaTargetSeen, rivals, vpa_step
from shared.core.object_reader import ObjectReader

META = {"uid": "1", "namespace": "shop", "name": "web", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
VPA: dict[str, Any] = {
    "metadata": META,
    "spec": {
        "targetRef": TARGET,
        "updatePolicy": {"podUpdatingStrategy": "Inplace", "podMatchingStrategy": "All"},
        "resourcePolicy": {"containerPolicies": [{"containerName": "main", "controlledResources": ["cpu", "memory"],
                                                  "minAllowed": {"cpu": "10m"}, "maxAllowed": {"cpu": 4}}]},
    },
    "status": {"conditions": [{"type": "Applied", "status": "True"}]},
}  # fmt: skip
DESCRIPTOR: dict[str, Any] = {
    "metadata": META | {"annotations": {"spd.katalyst.kubewharf.io/enable": "true"}, "labels": {"a": "b"}},
    "spec": {
        "targetRef": TARGET, "baselinePercent": 30, "systemIndicator": [{"name": "cpi", "indicators": []}],
        "extendedIndicator": [{"name": "mem", "baselinePercent": 50}],
    },
    "status": {"aggMetrics": []},
}  # fmt: skip
POD = WorkloadPod("2", "shop", "web-1", "web", "n1", "2026-01-01T00:00:00Z", True,
                  {"main": ContainerNeeds({"cpu": 100}, {"cpu": 2000})})  # fmt: skip
SEEN = VpaTargetSeen(frozenset({"main"}), {"main": ContainerFigures({"cpu": 500})}, [POD])


def test_odd_autoscalers_give_a_pod_legal_figures_or_none() -> None:
    reader = ObjectReader(katalyst_vpa_of)
    resized = 0
    for name, document in odd_documents([VPA], 800, seed=41):
        seen = reader.read(name, document, None)
        if seen is None:
            continue
        assert not rivals([seen])
        step = vpa_step(seen, SEEN)
        assert step.conditions, name
        json.dumps([one.said for one in step.conditions])
        for figures in step.figures.values():
            resized += 1
            assert 0 <= figures.requests["cpu"] <= figures.limits["cpu"], name
    assert resized
    assert reader.unread


STOCK: dict[str, Any] = {
    "metadata": META | {"annotations": {"recommendation.sublet.io/apply": "InPlace"}},
    "spec": {
        "targetRef": TARGET, "updatePolicy": {"updateMode": "Off"},
        "resourcePolicy": {"containerPolicies": [{"containerName": "main", "mode": "Auto", "minAllowed": {"cpu": 1}}]},
    },
    "status": {"recommendation": {"containerRecommendations": [{"containerName": "main", "target": {"cpu": "1"}}]}},
}  # fmt: skip


def test_odd_stock_autoscalers_are_read_or_named() -> None:
    reader, told = ObjectReader(stock_vpa_of), 0
    for name, document in odd_documents([STOCK], 800, seed=53):
        seen = reader.read(name, document, None)
        if seen is not None:
            told += bool(seen.own)
            assert (seen.wanted is None) == bool(seen.problem), name
            assert all(0 <= amount <= 1 << 60 for one in (seen.own or {}).values() for amount in one.values()), name
    assert told


def test_odd_descriptors_say_what_is_so_or_nothing() -> None:
    reader, told = ObjectReader(descriptor_of), [PodStanding(100.0, {"cpi": 1.5}, {"main": {"cpu": 1.0}})]
    for name, document in odd_documents([DESCRIPTOR], 800, seed=43):
        seen = reader.read(name, document, None)
        if seen is None:
            continue
        assert (seen.spec is None) == bool(seen.problem), name
        json.dumps([sentinels(seen, []), standing(seen, told, 110.0, 15.0)], allow_nan=False)


def test_odd_deployments_and_pods_are_read_or_left_out() -> None:
    pod = {"metadata": META | {"labels": {"pod-template-hash": "5d"},
                               "ownerReferences": [{"kind": "ReplicaSet", "name": "web-5d"}]},
           "spec": {"nodeName": "n1", "containers": []}, "status": {"phase": "Running"}}  # fmt: skip
    deployments, pods = ObjectReader(described_deployment_of), ObjectReader(pod_of_workload)
    for name, document in odd_documents([DESCRIPTOR, pod], 800, seed=47):
        deployments.read(name, document, None)
        pods.read(name, document, None)
    assert all(len(why) <= 200 for why in (*deployments.unread.values(), *pods.unread.values()))
