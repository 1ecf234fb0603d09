"""Pod documents: the quick start's as printed, everything else taken, noted or refused by name."""

import copy
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.core.pods.manifest import read_pod, read_pods
from shared.errors import Refused

UID = "0a1b2c3d-0000-4000-8000-000000000001"
EXAMPLES = Path(__file__).parents[3] / "examples"

SHARED = """
apiVersion: v1
kind: Pod
metadata:
  annotations:
    "katalyst.kubewharf.io/qos_level": shared_cores
  name: shared-normal-pod
  namespace: default
spec:
  containers:
    - name: stress
      image: joedval/stress:latest
      command:
        - stress
        - -c
        - "1"
      imagePullPolicy: IfNotPresent
      resources:
        requests:
          cpu: "2"
          memory: 1Gi
        limits:
          cpu: "2"
          memory: 1Gi
  schedulerName: katalyst-scheduler
"""
RECLAIMED = """
apiVersion: v1
kind: Pod
metadata:
  annotations:
    "katalyst.kubewharf.io/qos_level": reclaimed_cores
  name: reclaimed-normal-pod
  namespace: default
spec:
  containers:
    - name: stress
      image: joedval/stress:latest
      command:
        - stress
        - -c
        - "1"
      imagePullPolicy: IfNotPresent
      resources:
        requests:
          resource.katalyst.kubewharf.io/reclaimed_millicpu: 2k
          resource.katalyst.kubewharf.io/reclaimed_memory: 1Gi
        limits:
          resource.katalyst.kubewharf.io/reclaimed_millicpu: 2k
          resource.katalyst.kubewharf.io/reclaimed_memory: 1Gi
  schedulerName: katalyst-scheduler
"""


def _document(text: str = SHARED) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def _with(path: tuple[Any, ...], value: Any, text: str = SHARED) -> dict[str, Any]:
    """The document with one place changed; DELETE takes it out."""
    document = copy.deepcopy(_document(text))
    here: Any = document
    *folders, leaf = path
    for key in folders:
        here = here.setdefault(key, {}) if isinstance(here, dict) else here[key]
    here[leaf] = value
    return document


SPEC, META, CONTAINER = ("spec",), ("metadata",), ("spec", "containers", 0)


def test_the_quick_starts_shared_pod_is_read_as_printed() -> None:
    manifest = read_pod(_document(), UID)
    pod, (run,) = manifest.record.pod, manifest.record.runs
    assert (pod.key, pod.qos, pod.uid, pod.grace_s, pod.phase) == (
        "default/shared-normal-pod",
        "shared_cores",
        UID,
        30,
        "Pending",
    )
    assert (pod.cpu_request_millis, pod.memory_request_bytes) == (2000, 1 << 30)
    assert (pod.containers[0].cpu_limit_millis, pod.containers[0].memory_limit_bytes) == (2000, 1 << 30)
    assert (run.name, run.command) == ("stress", ("stress", "-c", "1"))
    (note,) = manifest.notes
    assert "image is left out" in note


@pytest.mark.parametrize("prefix", ["resource.katalyst.kubewharf.io/", "katalyst.kubewharf.io/"], ids=["new", "old"])
def test_the_quick_starts_reclaimed_pod_is_read_in_both_spellings(prefix: str) -> None:
    pod = read_pod(_document(RECLAIMED.replace("resource.katalyst.kubewharf.io/", prefix)), UID).record.pod
    assert (pod.qos, pod.cpu_request_millis, pod.memory_request_bytes) == ("reclaimed_cores", 2000, 1 << 30)


BATCH = """
apiVersion: v1
kind: Pod
metadata:
  name: batch
  labels:
    koordinator.sh/qosClass: BE
spec:
  containers:
    - name: main
      command: [stress]
      resources:
        requests:
          kubernetes.io/batch-cpu: "500"
          kubernetes.io/batch-memory: 1Gi
        limits:
          kubernetes.io/batch-cpu: 1k
          kubernetes.io/batch-memory: 1Gi
"""
LABELS = (*META, "labels")


@pytest.mark.parametrize("prefix", ["kubernetes.io/", "koordinator.sh/"], ids=["new", "old"])
def test_koordinators_batch_pod_is_a_reclaimed_pod_with_reclaimed_amounts(prefix: str) -> None:
    pod = read_pod(_document(BATCH.replace("kubernetes.io/", prefix)), UID).record.pod
    assert (pod.qos, pod.cpu_request_millis, pod.memory_request_bytes) == ("reclaimed_cores", 500, 1 << 30)
    assert (pod.containers[0].cpu_limit_millis, pod.labels) == (1000, {"koordinator.sh/qosClass": "BE"})


def test_both_dialects_may_name_one_amount_but_not_two() -> None:
    both = {"kubernetes.io/batch-cpu": "1k", "resource.katalyst.kubewharf.io/reclaimed_millicpu": 1000}
    pod = read_pod(_with((*CONTAINER, "resources"), {"requests": both}, BATCH), UID).record.pod
    assert pod.cpu_request_millis == 1000
    with pytest.raises(Refused, match="stands twice"):
        read_pod(_with((*CONTAINER, "resources"), {"requests": both | {"kubernetes.io/batch-cpu": 1}}, BATCH), UID)


@pytest.mark.parametrize(
    ("path", "value", "text", "words"),
    [
        pytest.param(LABELS, {"koordinator.sh/qosClass": "BE"}, SHARED,
                     ["katalyst.kubewharf.io/qos_level: 'shared_cores'", "koordinator.sh/qosClass: 'BE'", "remove one"],
                     id="the dialects disagree"),
        pytest.param(LABELS, {"koordinator.sh/qosClass": "XS"}, BATCH, ["'XS'", "LSE, LSR, LS, BE, SYSTEM"],
                     id="a label that names no class"),
        pytest.param(LABELS, {}, BATCH, ["batch-cpu is not for shared_cores", "reclaimed_cores (Koordinator's BE)"],
                     id="batch resources without the class"),
        pytest.param((*CONTAINER, "resources"), {"requests": {"cpu": 1}}, BATCH, ["cpu is not for reclaimed_cores",
                     "kubernetes.io/batch-cpu"], id="plain amounts of a batch pod"),
    ],
)  # fmt: skip
def test_a_pod_of_two_minds_is_refused_with_both_words_and_the_way_out(
    path: tuple[Any, ...], value: dict[str, Any], text: str, words: list[str]
) -> None:
    with pytest.raises(Refused) as refusal:
        read_pod(_with(path, value, text), UID)
    assert all(word in str(refusal.value) for word in ("pod default/", *words))


@pytest.mark.parametrize(
    ("resources", "qos"),
    [
        pytest.param({}, "reclaimed_cores", id="best effort"),
        pytest.param({"requests": {"cpu": "0"}}, "reclaimed_cores", id="zero is nothing"),
        pytest.param({"requests": {"kubernetes.io/batch-cpu": 100}}, "reclaimed_cores", id="batch resources"),
        pytest.param({"requests": {"cpu": "100m"}}, "shared_cores", id="burstable"),
        pytest.param({"limits": {"cpu": "1", "memory": "1Gi"}}, "shared_cores", id="guaranteed"),
    ],
)
def test_kubernetes_qos_is_the_fallback_only_where_it_is_asked_for(resources: dict[str, Any], qos: str) -> None:
    document = _with((*CONTAINER, "resources"), resources, BATCH)
    del document["metadata"]["labels"]
    assert read_pod(document, UID, fallback="kubernetes").record.pod.qos == qos
    if "kubernetes.io/batch-cpu" not in str(resources):
        assert read_pod(document, UID).record.pod.qos == "shared_cores"
    document["metadata"]["annotations"] = {"katalyst.kubewharf.io/qos_level": "dedicated_cores"}
    if qos == "shared_cores":
        assert read_pods([document], lambda: UID, "kubernetes")[0].record.pod.qos == "dedicated_cores"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_every_example_runs_on_a_bare_host_without_a_note(path: Path) -> None:
    documents = [d for d in yaml.safe_load_all(path.read_text()) if isinstance(d, dict) and d.get("kind") == "Pod"]
    if documents:
        uids = (f"{n:x}" for n in count())
        assert all(not manifest.notes for manifest in read_pods(documents, lambda: next(uids)))


def test_command_arguments_environment_and_folder_are_taken() -> None:
    document = _document()
    document["spec"]["containers"][0] |= {"args": ["-t", "9"], "env": [{"name": "A", "value": "1"}, {"name": "B"}]}
    document["spec"]["containers"][0]["workingDir"] = "/srv"
    document["spec"] |= {"priority": 7, "terminationGracePeriodSeconds": 5}
    record = read_pod(document, UID).record
    (run,) = record.runs
    assert run.command == ("stress", "-c", "1", "-t", "9")
    assert (run.env, run.workdir) == ({"A": "1", "B": ""}, "/srv")
    assert (record.pod.priority, record.pod.grace_s) == (7, 5)


def test_a_limit_without_a_request_is_the_request_too() -> None:
    pod = read_pod(_with((*CONTAINER, "resources"), {"limits": {"cpu": "500m", "memory": "1Mi"}}), UID).record.pod
    assert (pod.cpu_request_millis, pod.memory_request_bytes) == (500, 1 << 20)


def test_without_an_annotation_a_pod_is_shared() -> None:
    assert read_pod(_with((*META, "annotations"), None), UID).record.pod.qos == "shared_cores"


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        ((*SPEC, "volumes"), [{"name": "x"}], "volumes is left out"),
        ((*CONTAINER, "resources", "requests", "memory"), "64m", "64m: no whole bytes, counted as 1; for mebibytes"),
        ((*CONTAINER, "livenessProbe"), {}, "livenessProbe is left out"),
        ((*SPEC, "restartPolicy"), "Always", "stays ended"),
        ((*CONTAINER, "resources", "limits", "nvidia.com/gpu"), 1, "nvidia.com/gpu is left out"),
    ],
    ids=["volumes", "fraction of a byte", "probe", "restarts", "gpu"],
)
def test_what_a_bare_host_does_not_do_is_said(path: tuple[Any, ...], value: Any, word: str) -> None:
    assert any(word in note for note in read_pod(_with(path, value), UID).notes)


def test_what_only_kubelet_may_say_is_left_out_and_said() -> None:
    manifest = read_pod(_with(("metadata", "annotations"), {"kubernetes.io/config.mirror": "x"}), UID)
    assert manifest.record.pod.annotations == {}
    assert any("kubernetes.io/config.mirror is left out: only kubelet" in note for note in manifest.notes)


QOS = (*META, "annotations", "katalyst.kubewharf.io/qos_level")
BAD = {
    "unknown QoS": (QOS, "premium_cores", "premium_cores"),
    "QoS in capitals": (QOS, "Reclaimed_Cores", "Reclaimed_Cores"),
    "QoS not text": (QOS, 1, "want a string"),
    "kind": (("kind",), "Deployment", "only kind Pod"),
    "no kind": (("kind",), None, "only kind Pod"),
    "version": (("apiVersion",), "v2", "only kind Pod of v1"),
    "path in name": ((*META, "name"), "a/b", "'a/b'"),
    "climbing name": ((*META, "name"), "../../etc", "'../../etc'"),
    "dots in name": ((*META, "name"), "a..b", "'a..b'"),
    "newline in name": ((*META, "name"), "a\n", "metadata.name"),
    "no name": ((*META, "name"), None, "metadata.name"),
    "long name": ((*META, "name"), "a" * 254, "metadata.name"),
    "number as name": ((*META, "name"), 5, "metadata.name"),
    "path in namespace": ((*META, "namespace"), "a/b", "metadata.namespace"),
    "dotted namespace": ((*META, "namespace"), "a.b", "metadata.namespace"),
    "path in container name": ((*CONTAINER, "name"), "..", "containers[0].name"),
    "dotted container name": ((*CONTAINER, "name"), "a.b", "containers[0].name"),
    "no containers": ((*SPEC, "containers"), [], "want 1 to"),
    "containers not a list": ((*SPEC, "containers"), {"a": 1}, "want a list"),
    "no command": ((*CONTAINER, "command"), None, "no command"),
    "empty command": ((*CONTAINER, "command"), [], "no command"),
    "empty program": ((*CONTAINER, "command"), [""], "no command"),
    "number in command": ((*CONTAINER, "command"), ["stress", 1], "put a number in quotes"),
    "command as text": ((*CONTAINER, "command"), "stress -c 1", "want a list"),
    "NUL in command": ((*CONTAINER, "command"), ["a\0b"], "command[0]"),
    "relative folder": ((*CONTAINER, "workingDir"), "srv", "absolute path"),
    "env from elsewhere": ((*CONTAINER, "env"), [{"name": "A", "valueFrom": {}}], "valueFrom"),
    "env with =": ((*CONTAINER, "env"), [{"name": "A=B", "value": ""}], "without '='"),
    "env number": ((*CONTAINER, "env"), [{"name": "A", "value": 1}], "env A"),
    "bad quantity": ((*CONTAINER, "resources", "requests", "cpu"), "two", "'two'"),
    "quantity not a number": ((*CONTAINER, "resources", "requests", "cpu"), True, "True"),
    "negative CPU": ((*CONTAINER, "resources", "requests", "cpu"), "-1", "out of bounds"),
    "negative memory": ((*CONTAINER, "resources", "limits", "memory"), "-1Gi", "out of bounds"),
    "memory beyond any machine": ((*CONTAINER, "resources", "limits", "memory"), "1e80", "out of bounds"),
    "request above limit": ((*CONTAINER, "resources", "requests", "cpu"), "3", "above its limit"),
    "reclaimed amount in a tenant": (
        (*CONTAINER, "resources", "requests", "katalyst.kubewharf.io/reclaimed_millicpu"),
        "1k",
        "not for shared_cores",
    ),
    "rights": ((*CONTAINER, "securityContext"), {"runAsUser": 1000}, "securityContext"),
    "init containers": ((*SPEC, "initContainers"), [{"name": "x"}], "initContainers"),
    "negative grace": ((*SPEC, "terminationGracePeriodSeconds"), -1, "terminationGracePeriodSeconds"),
    "grace as text": ((*SPEC, "terminationGracePeriodSeconds"), "30", "whole number"),
    "grace not a number": ((*SPEC, "terminationGracePeriodSeconds"), float("nan"), "whole number"),
    "priority too large": ((*SPEC, "priority"), 1 << 40, "whole number"),
    "annotation not text": ((*META, "annotations", "a"), True, "annotations.a"),
    "owners not a list": ((*META, "ownerReferences"), {"kind": "Job"}, "ownerReferences: want a list"),
    "owner without a name": (
        (*META, "ownerReferences"),
        [{"kind": "Job", "controller": True}],
        "ownerReferences: name",
    ),
    "owner with a path": (
        (*META, "ownerReferences"),
        [{"kind": "Job", "name": "a/b", "controller": True}],
        "owner = 'Job/a/b'",
    ),
    "two controllers": (
        (*META, "ownerReferences"),
        [{"kind": "Job", "name": name, "controller": True} for name in "ab"],
        "2 say controller: true",
    ),
    "spec not a mapping": (SPEC, [1], "spec: want a mapping"),
}


@pytest.mark.parametrize(("path", "value", "word"), BAD.values(), ids=BAD)
def test_a_document_that_cannot_be_used_is_refused_by_name(path: tuple[Any, ...], value: Any, word: str) -> None:
    with pytest.raises(Refused) as refusal:
        read_pod(_with(path, value), UID)
    assert word in str(refusal.value)


@pytest.mark.parametrize(
    ("references", "owner"),
    [
        ([], None),
        ([{"kind": "Job", "name": "sort", "controller": True, "uid": "x"}], "Job/sort"),
        ([{"kind": "Job", "name": "sort"}], None),
        ([{"kind": "Job", "name": "a"}, {"kind": "ReplicaSet", "name": "b", "controller": True}], "ReplicaSet/b"),
        ([{"kind": "Job", "name": "sort", "controller": False}], None),
    ],
)
def test_the_owner_is_the_reference_that_controls(references: list[Any], owner: str | None) -> None:
    record = read_pod(_with((*META, "ownerReferences"), references), UID).record
    assert record.pod.owner == owner
    assert record.pod.owner_key == (owner and f"default/{owner}")
    assert type(record).model_validate_json(record.model_dump_json()).pod.owner == owner, "it is kept in the store"


def test_plain_amounts_are_not_for_reclaimed_pods() -> None:
    document = _with((*CONTAINER, "resources"), {"requests": {"cpu": "1"}}, RECLAIMED)
    with pytest.raises(Refused, match="reclaimed_millicpu"):
        read_pod(document, UID)


def test_one_resource_in_two_spellings_must_agree() -> None:
    twice = {
        "katalyst.kubewharf.io/reclaimed_millicpu": "1k",
        "resource.katalyst.kubewharf.io/reclaimed_millicpu": 1000,
    }
    assert read_pod(_with((*CONTAINER, "resources"), {"requests": twice}, RECLAIMED), UID).record.pod.cpu_request_millis
    with pytest.raises(Refused, match="stands twice"):
        read_pod(_with((*CONTAINER, "resources"), {"requests": twice | {next(iter(twice)): "2k"}}, RECLAIMED), UID)


@pytest.mark.parametrize("uid", ["", "../x", "ABC", "a/b", "a\n"])
def test_a_uid_that_could_leave_the_store_is_refused(uid: str) -> None:
    with pytest.raises(Refused, match="UID"):
        read_pod(_document(), uid)


def test_two_pods_or_containers_of_one_name_are_refused() -> None:
    with pytest.raises(Refused, match="default/shared-normal-pod stands twice"):
        read_pods([_document(), None, _document()], lambda: UID)
    twin = _document()
    twin["spec"]["containers"] *= 2
    with pytest.raises(Refused, match="container stress stands twice"):
        read_pod(twin, UID)


def test_one_bad_document_refuses_the_whole_file() -> None:
    with pytest.raises(Refused):
        read_pods([_document(), _with(("kind",), "Service")], lambda: UID)


def test_a_file_without_a_document_is_refused() -> None:
    with pytest.raises(Refused, match="no document"):
        read_pods([None], lambda: UID)
