"""A Pod document of the API server as a pod."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.pod import RECLAIMED_CPU, SEED_RECLAIMED_CPU, SEED_RECLAIMED_MEMORY
from shared.core.kube_pod import pod_of

RECLAIMED = {"katalyst.kubewharf.io/qos_level": "reclaimed_cores"}
ID = "containerd://" + "a" * 64


def document(**changed) -> dict:
    meta = {"uid": "0f-1", "namespace": "default", "name": "web", **changed.pop("meta", {})}
    spec = {"containers": [{"name": "main", "resources": changed.pop("resources", {})}], **changed.pop("spec", {})}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Running", "qosClass": "Burstable", **changed}}


def test_a_tenant_with_its_amounts_and_its_containers_id():
    pod = pod_of(
        document(
            resources={"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2"}},
            containerStatuses=[{"name": "main", "containerID": ID}],
        )
    )
    container = pod.containers[0]
    assert (pod.qos, pod.kube_qos, pod.phase, container.id) == ("shared_cores", "Burstable", "Running", ID)
    assert (container.cpu_request_millis, container.cpu_limit_millis) == (500, 2000)
    assert (container.memory_request_bytes, container.memory_limit_bytes) == (1 << 30, 0)


@pytest.mark.parametrize("name", [RECLAIMED_CPU, SEED_RECLAIMED_CPU, "kubernetes.io/batch-cpu"])
def test_a_reclaimed_pod_counts_by_reclaimed_resources_whatever_their_spelling(name):
    pod = pod_of(
        document(
            meta={"annotations": RECLAIMED},
            resources={"requests": {name: "12k", SEED_RECLAIMED_MEMORY: "1Gi", "cpu": "3"}, "limits": {name: "12k"}},
        )
    )
    assert (pod.qos, pod.cpu_request_millis, pod.memory_request_bytes) == ("reclaimed_cores", 12_000, 1 << 30)


@pytest.mark.parametrize(
    ("annotations", "fallback", "kube", "qos"),
    [
        ({"katalyst.kubewharf.io/qos_level": "gold"}, "shared_cores", "BestEffort", "shared_cores"),
        ({"katalyst.kubewharf.io/qos_level": "gold"}, "kubernetes", "BestEffort", "shared_cores"),
        ({}, "shared_cores", "BestEffort", "shared_cores"),
        ({}, "kubernetes", "BestEffort", "reclaimed_cores"),
        ({}, "kubernetes", "Guaranteed", "shared_cores"),
    ],
)
def test_a_class_that_nobody_knows_makes_a_tenant(annotations, fallback, kube, qos):
    assert pod_of(document(meta={"annotations": annotations}, qosClass=kube), fallback).qos == qos


def test_an_amount_that_is_no_quantity_counts_as_not_said():
    pod = pod_of(document(resources={"requests": {"cpu": "many", "memory": "1Gi"}, "limits": "none"}))
    assert (pod.cpu_request_millis, pod.memory_request_bytes) == (0, 1 << 30)


def test_sidecars_count_and_init_containers_do_not():
    pod = pod_of(
        document(
            spec={
                "initContainers": [
                    {"name": "prepare", "resources": {"requests": {"cpu": "4"}}},
                    {"name": "proxy", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
                ]
            },
            initContainerStatuses=[{"name": "proxy", "containerID": ID}],
        )
    )
    assert [(c.name, c.id) for c in pod.containers] == [("main", ""), ("proxy", ID)]
    assert pod.cpu_request_millis == 1000


def test_a_pod_that_is_being_deleted_has_the_grace_of_its_deletion():
    pod = pod_of(
        document(
            meta={"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5},
            spec={"terminationGracePeriodSeconds": 60},
        )
    )
    assert (pod.terminating, pod.grace_s) == (True, 5)


def test_the_owner_is_the_controller():
    references = [{"kind": "Queue", "name": "q"}, {"kind": "Job", "name": "encode", "controller": True}]
    assert pod_of(document(meta={"ownerReferences": references})).owner == "Job/encode"
    assert pod_of(document(meta={"ownerReferences": references[:1]})).owner is None


def test_long_annotations_of_others_are_left_behind():
    annotations = {**RECLAIMED, "kubectl.kubernetes.io/last-applied-configuration": "x" * 10_000}
    assert pod_of(document(meta={"annotations": annotations})).annotations == RECLAIMED


@pytest.mark.parametrize("identity", ["", "rkt://1", "containerd://../../etc"])
def test_an_id_that_is_none_never_becomes_a_path(identity):
    statuses = [{"name": "main", "containerID": identity}]
    assert pod_of(document(containerStatuses=statuses)).containers[0].id == ""


@pytest.mark.parametrize("meta", [{"uid": "../x"}, {"name": "Web"}, {"namespace": "a/b"}])
def test_a_name_that_no_node_could_hold_makes_no_pod(meta):
    assert pod_of(document(meta=meta)) is None


WILD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(
    resources=st.dictionaries(st.sampled_from(["requests", "limits"]), WILD), priority=st.integers(-5, 5) | st.none()
)
def test_whatever_stands_in_resources_the_pod_is_seen(resources, priority):
    pod = pod_of(document(resources=resources, spec={"priority": priority}))
    assert pod is not None
    assert pod.cpu_request_millis >= 0
