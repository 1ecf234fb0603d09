"""A Pod document of the API server as a pod."""

from typing import Any

import pytest
from api_pods import NODE, api_pods
from hypothesis import given
from hypothesis import strategies as st
from present import present

from shared.contracts.pod import RECLAIMED_CPU, TUTORIAL_RECLAIMED_CPU, TUTORIAL_RECLAIMED_MEMORY
from shared.core.cgroups.kubelet_layout import CONFIG_HASH, CONFIG_MIRROR, KubeletLayout, file_hash
from shared.core.pods.extended_resources import requests_of
from shared.core.pods.kube_pod import pod_of, without_doubled_files
from shared.core.pods.qos import Fallback

RECLAIMED = {"katalyst.kubewharf.io/qos_level": "reclaimed_cores"}
ID = "containerd://" + "a" * 64


def document(**changed: Any) -> dict[str, Any]:
    meta = {"uid": "0f-1", "namespace": "default", "name": "web", **changed.pop("meta", {})}
    spec = {"containers": [{"name": "main", "resources": changed.pop("resources", {})}], **changed.pop("spec", {})}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Running", "qosClass": "Burstable", **changed}}


def test_a_tenant_with_its_amounts_and_its_containers_id() -> None:
    pod = present(
        pod_of(
            document(
                resources={"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "2"}},
                containerStatuses=[{"name": "main", "containerID": ID}],
            )
        )
    )
    container = pod.containers[0]
    assert (pod.qos, pod.kube_qos, pod.phase, container.id) == ("shared_cores", "Burstable", "Running", ID)
    assert (container.cpu_request_millis, container.cpu_limit_millis) == (500, 2000)
    assert (container.memory_request_bytes, container.memory_limit_bytes) == (1 << 30, 0)


@pytest.mark.parametrize("name", [RECLAIMED_CPU, TUTORIAL_RECLAIMED_CPU, "kubernetes.io/batch-cpu"])
def test_a_reclaimed_pod_counts_by_reclaimed_resources_whatever_their_spelling(name: str) -> None:
    pod = present(
        pod_of(
            document(
                meta={"annotations": RECLAIMED},
                resources={
                    "requests": {name: "12k", TUTORIAL_RECLAIMED_MEMORY: "1Gi", "cpu": "3"},
                    "limits": {name: "12k"},
                },
            )
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
def test_a_class_that_nobody_knows_makes_a_tenant(
    annotations: dict[str, str], fallback: Fallback, kube: str, qos: str
) -> None:
    assert present(pod_of(document(meta={"annotations": annotations}, qosClass=kube), fallback)).qos == qos


@pytest.mark.parametrize(
    ("meta", "spec", "qos"),
    [
        ({}, {}, "reclaimed_cores"),
        ({}, {"priority": 2_000_001_000}, "shared_cores"),
        ({"ownerReferences": [{"kind": "DaemonSet", "name": "d", "controller": True}]}, {}, "shared_cores"),
        ({"annotations": RECLAIMED}, {"priority": 2_000_001_000}, "reclaimed_cores"),
    ],
    ids=["nothing said", "critical", "of a DaemonSet", "said"],
)
def test_what_a_cluster_runs_on_is_no_reclaimed_pod_for_having_asked_for_nothing(
    meta: dict[str, Any], spec: dict[str, Any], qos: str
) -> None:
    assert present(pod_of(document(meta=meta, spec=spec, qosClass="BestEffort"), "kubernetes")).qos == qos


def test_an_amount_that_is_no_quantity_counts_as_not_said() -> None:
    pod = present(pod_of(document(resources={"requests": {"cpu": "many", "memory": "1Gi"}, "limits": "none"})))
    assert (pod.cpu_request_millis, pod.memory_request_bytes) == (0, 1 << 30)


def test_sidecars_count_and_init_containers_do_not() -> None:
    pod = present(
        pod_of(
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
    )
    assert [(c.name, c.id) for c in pod.containers] == [("main", ""), ("proxy", ID)]
    assert pod.cpu_request_millis == 1000


def test_a_pod_that_is_being_deleted_has_the_grace_of_its_deletion() -> None:
    pod = present(
        pod_of(
            document(
                meta={"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5},
                spec={"terminationGracePeriodSeconds": 60},
            )
        )
    )
    assert (pod.terminating, pod.grace_s) == (True, 5)


def test_the_owner_is_the_controller() -> None:
    references = [{"kind": "Queue", "name": "q"}, {"kind": "Job", "name": "encode", "controller": True}]
    assert present(pod_of(document(meta={"ownerReferences": references}))).owner == "Job/encode"
    assert present(pod_of(document(meta={"ownerReferences": references[:1]}))).owner is None


@pytest.mark.parametrize("kind", ["x/y", "", "Job Two", "K" * 64])
def test_an_owner_that_nobody_can_name_is_left_out_and_the_pod_stays(kind: str) -> None:
    references = [{"kind": kind, "name": "encode", "controller": True}]
    pod = present(pod_of(document(meta={"ownerReferences": references, "annotations": RECLAIMED})))
    assert (pod.qos, pod.owner, pod.unread) == ("reclaimed_cores", None, ("owner: what stands there is none",))


FILE = "5" * 32
FROM_KUBELET = {CONFIG_MIRROR: FILE, CONFIG_HASH: FILE, "kubernetes.io/config.source": "file"}
BY_NODE = {"apiVersion": "v1", "kind": "Node", "name": NODE, "controller": True}


def static(uid: str = "0f-1", annotations: dict[str, Any] = FROM_KUBELET, **owner: Any) -> dict[str, Any]:
    meta = {"uid": uid, "annotations": annotations, "ownerReferences": [BY_NODE | owner]}
    return document(meta=meta, spec={"nodeName": NODE})


def test_the_mirror_of_a_static_pod_is_known_by_its_file() -> None:
    assert file_hash(present(pod_of(static()))) == FILE


@pytest.mark.parametrize(
    "made",
    [
        static(name="n2"),
        static(kind="Job"),
        static(apiVersion="x.example/v1"),
        static(controller=False),
        static(annotations={CONFIG_HASH: FILE, "kubernetes.io/config.source": "file"}),
        document(meta={"annotations": FROM_KUBELET}, spec={"nodeName": NODE}),
        document(meta={"annotations": FROM_KUBELET, "ownerReferences": [{**BY_NODE, "name": None}]}),
    ],
    ids=["another node", "another kind", "another's kind", "no controller", "no mirror", "no owner", "no node"],
)
def test_what_only_kubelet_may_say_counts_for_nobody_else(made: dict[str, Any]) -> None:
    pod = present(pod_of(made))
    assert (pod.annotations, file_hash(pod)) == ({}, None)


def test_two_that_claim_one_file_are_both_taken_by_their_uid() -> None:
    pods = [
        present(pod_of(made))
        for made in (static("a"), static("b"), static("c", {CONFIG_MIRROR: "x", CONFIG_HASH: "6" * 32}))
    ]
    assert [file_hash(pod) for pod in without_doubled_files(pods)] == [None, None, "6" * 32]


@given(api_pods)
def test_whatever_the_api_server_takes_is_a_pod(made: dict[str, Any]) -> None:
    pod = present(pod_of(made))
    meta, spec = made["metadata"], made["spec"]
    assert (pod.uid, pod.namespace, pod.name) == (meta["uid"], meta["namespace"], meta["name"])
    assert [one.name for one in pod.containers][: len(spec["containers"])] == [c["name"] for c in spec["containers"]]
    assert not [words for words in pod.unread if not words.startswith(("annotation ", "owner: "))]
    assert all(amount >= 0 for amount in requests_of(made).values())
    assert present(pod_of(made, first_class=pod.qos)) == pod


@given(api_pods)
def test_no_document_but_a_mirror_leads_to_a_group_that_is_not_its_uids(made: dict[str, Any]) -> None:
    pod = present(pod_of(made))
    owners = [one for one in made["metadata"].get("ownerReferences", ()) if one["controller"]]
    by_node = [(one["apiVersion"], one["kind"], one["name"]) for one in owners] == [("v1", "Node", NODE)]
    own = KubeletLayout("cgroupfs").pod_group(pod).endswith(f"/pod{pod.uid}")
    assert own or (by_node and CONFIG_MIRROR in made["metadata"]["annotations"])


def test_long_annotations_of_others_are_left_behind() -> None:
    annotations = {**RECLAIMED, "kubectl.kubernetes.io/last-applied-configuration": "x" * 10_000}
    assert present(pod_of(document(meta={"annotations": annotations}))).annotations == RECLAIMED


MID_RESOURCES = {"requests": {"kubernetes.io/mid-cpu": "1500", "kubernetes.io/mid-memory": "1Gi"}}


@pytest.mark.parametrize(
    ("meta", "spec", "resources", "millis"),
    [
        pytest.param({}, {"priority": 7500}, MID_RESOURCES, 1500, id="by priority"),
        pytest.param({"labels": {"koordinator.sh/priority-class": "koord-mid"}}, {}, MID_RESOURCES, 1500,
                     id="by label"),
        pytest.param({"labels": {"koordinator.sh/qosClass": "BE"}}, {"priority": 7500}, MID_RESOURCES, 1500,
                     id="best-effort by class"),
        pytest.param({}, {"priority": 7500}, {"requests": {"cpu": "2", "kubernetes.io/mid-cpu": "1500"}}, 2000,
                     id="the larger of both"),
        pytest.param({}, {"priority": 7500}, {"requests": {"cpu": "2"}}, 2000, id="plain ones alone"),
        pytest.param({}, {"priority": 9500}, MID_RESOURCES, 0, id="of another class"),
        pytest.param({}, {"priority": True}, MID_RESOURCES, 0, id="no priority"),
    ],
)  # fmt: skip
def test_a_mid_pod_asks_for_mid_resources(
    meta: dict[str, Any], spec: dict[str, Any], resources: dict[str, Any], millis: int
) -> None:
    assert present(pod_of(document(resources=resources, meta=meta, spec=spec))).cpu_request_millis == millis


@pytest.mark.parametrize("identity", ["", "rkt://1", "containerd://../../etc"])
def test_an_id_that_is_none_never_becomes_a_path(identity: str) -> None:
    statuses = [{"name": "main", "containerID": identity}]
    assert present(pod_of(document(containerStatuses=statuses))).containers[0].id == ""


@pytest.mark.parametrize("meta", [{"uid": "../x"}, {"name": "Web"}, {"namespace": "a/b"}])
def test_a_name_that_no_node_could_hold_makes_no_pod(meta: dict[str, Any]) -> None:
    assert pod_of(document(meta=meta)) is None


LEAF = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
NESTED = LEAF | st.lists(LEAF, max_size=3) | st.dictionaries(st.text(max_size=8), LEAF, max_size=3)
WILD = NESTED | st.lists(NESTED, max_size=3) | st.dictionaries(st.text(max_size=8), NESTED, max_size=3)


@given(
    resources=st.dictionaries(st.sampled_from(["requests", "limits"]), WILD), priority=st.integers(-5, 5) | st.none()
)
def test_whatever_stands_in_resources_the_pod_is_seen(resources: object, priority: object) -> None:
    pod = present(pod_of(document(resources=resources, spec={"priority": priority})))
    assert pod is not None
    assert pod.cpu_request_millis >= 0


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), WILD), st.data())
def test_no_document_at_all_throws(made: dict[str, Any], data: st.DataObject) -> None:
    """Also where a field of the right name holds what no API server would hold there."""
    keys = ["uid", "namespace", "name", "annotations", "labels", "ownerReferences", "containers", "initContainers",
            "priority", "overhead", "phase", "qosClass", "containerStatuses", "deletionTimestamp",
            "deletionGracePeriodSeconds", "terminationGracePeriodSeconds"]  # fmt: skip
    for part in data.draw(st.lists(st.sampled_from(["metadata", "spec", "status"]), unique=True)):
        made[part] = data.draw(st.dictionaries(st.sampled_from(keys), WILD, max_size=6))
    pod = pod_of(made | {"metadata": {"uid": "a", "namespace": "b", "name": "c"} | _mapping(made.get("metadata"))})
    assert pod is None or pod.uid


def _mapping(given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else {}
