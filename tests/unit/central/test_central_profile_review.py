"""Answers to the API server about pods: what is allowed, with which patch, and what must never be in the way."""

import json
from base64 import b64decode
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.admission.json_patch import json_patch
from services.central.core.kcc.selectors import Requirement, Selector
from services.central.core.profiles.cluster_objects import NAME_LABEL
from services.central.core.profiles.colocated_resources import ANNOTATION
from services.central.core.profiles.pod_claims import claims_of
from services.central.core.profiles.profile import PriorityClassValue, Profile, ProfileChanges, exact_labels
from services.central.core.profiles.profiled_pod import ProfilesInForce
from services.central.core.profiles.review import (
    CHECK_ANNOTATION,
    MAX_REVIEW_BYTES,
    PodReview,
    ReviewAnswer,
    draws,
    mutate,
    mutate_by_name,
    read_review,
    validate,
)
from shared.core.pods.koord_qos import QOS_LABEL
from shared.errors import Refused

CPU, MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
RULES = ProfilesInForce(
    [Profile("batch", ProfileChanges(koord_qos="BE", priority_class_name="koord-batch"),
             selector=exact_labels({"kind": "batch"}))],
    {"koord-batch": PriorityClassValue(5999, "Never")},
)  # fmt: skip
JOB: dict[str, Any] = {
    "metadata": {"generateName": "job-", "labels": {"kind": "batch"}, "ownerReferences": [{"uid": "u-1"}]},
    "spec": {"containers": [{"name": "main", "image": "i",
                             "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}]},
}  # fmt: skip
Json = dict[str, Any]


def test_only_a_dry_run_is_marked_and_only_where_it_asks() -> None:
    asked = {"metadata": {"annotations": {CHECK_ANNOTATION: ""}}, "spec": {"containers": []}}
    for pod, dry_run, marked in ((asked, True, True), (asked, False, False), ({"spec": {}}, True, False)):
        review = PodReview("r", "CREATE", "team-a", pod, dry_run=dry_run)
        assert ("patch" in mutate(review, ProfilesInForce(()), {}).document["response"]) == marked


def review_of(pod: Json, operation: str = "CREATE", old: Json | None = None) -> PodReview:
    return PodReview("review-1", operation, "team-a", pod, old)


def patched(pod: Json, answer: ReviewAnswer) -> Json:
    """The pod as the API server makes it of the answer."""
    response = answer.document["response"]
    assert (response["uid"], response["allowed"]) == ("review-1", True)
    if "patch" not in response:
        return pod
    assert response["patchType"] == "JSONPatch"
    return applied(pod, json.loads(b64decode(response["patch"])))


def applied(document: Json, patch: list[Json]) -> Json:
    root: Any = {"": deepcopy(document)}
    for operation in patch:
        *way, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")]
        parent = root
        for part in way:
            parent = parent[int(part)] if isinstance(parent, list) else parent[part]
        key = int(last) if isinstance(parent, list) else last
        if operation["op"] == "add":
            assert key not in parent
        if operation["op"] == "remove":
            del parent[key]
        else:
            parent[key] = operation["value"]
    found: Json = root[""]
    return found


def test_a_batch_pod_gets_labels_priority_resources_and_their_annotation() -> None:
    answer = mutate(review_of(JOB), RULES, {})
    found = patched(JOB, answer)
    assert answer.outcome == "changed"
    assert found["metadata"]["labels"] == {"kind": "batch", QOS_LABEL: "BE"}
    assert (found["spec"]["priority"], found["spec"]["preemptionPolicy"]) == (5999, "Never")
    want = {CPU: "1500", MEMORY: "1Gi"}
    assert found["spec"]["containers"] == [{"name": "main", "image": "i", "resources": {"requests": want,
                                                                                      "limits": want}}]  # fmt: skip
    said = json.loads(found["metadata"]["annotations"][ANNOTATION])
    assert said == {"containers": {"main": {"requests": want, "limits": want}}}


@pytest.mark.parametrize("operation", ["UPDATE", "DELETE", "CONNECT"])
def test_only_pods_that_are_created_are_changed(operation: str) -> None:
    answer = mutate(review_of(JOB, operation), RULES, {})
    assert answer.document["response"] == {"uid": "review-1", "allowed": True}


@pytest.mark.parametrize(
    "pod",
    [
        {"metadata": {"labels": {"kind": "web"}}, "spec": {"priority": 5999, "containers": JOB["spec"]["containers"]}},
        {"metadata": {}, "spec": {"containers": []}},
        {},
        {"metadata": {"labels": None, "annotations": None}, "spec": {"containers": None}},
    ],
)
def test_a_pod_that_no_profile_matches_is_left_alone(pod: Json) -> None:
    answer = mutate(review_of(pod), RULES, {})
    assert answer.document["response"] == {"uid": "review-1", "allowed": True}
    assert answer.outcome == "unchanged"


@pytest.mark.parametrize(
    "pod",
    [
        {"metadata": {"labels": {"kind": 5}}}, {"metadata": []}, {"spec": "x"}, {"metadata": {"ownerReferences": "x"}},
        {"metadata": {"labels": {"kind": "batch"}}, "spec": {"containers": [5]}},
        {"metadata": {"labels": {"kind": "batch"}},
         "spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "much"}}}]}},
    ],
)  # fmt: skip
def test_a_pod_that_cannot_be_read_is_allowed_as_it_is(pod: Json) -> None:
    for answer in (mutate(review_of(pod), RULES, {}), validate(review_of(pod, "UPDATE", pod))):
        assert answer.document["response"] == {"uid": "review-1", "allowed": True}
    assert mutate(review_of(pod), RULES, {}).outcome == "unreadable"


def test_a_profile_that_cannot_be_applied_is_named_and_holds_nobody_up() -> None:
    answer = mutate(review_of(JOB), ProfilesInForce(RULES.profiles), {})
    assert answer.document["response"] == {"uid": "review-1", "allowed": True}
    assert "koord-batch" in answer.failed["batch"]


def test_the_overhead_of_a_runtime_class_stays_as_it_was_sent() -> None:
    pod = {**JOB, "spec": {**JOB["spec"], "runtimeClassName": "kata", "overhead": {"cpu": "250m", "memory": "64Mi"}}}
    spec = patched(pod, mutate(review_of(pod), RULES, {}))["spec"]
    assert spec["overhead"] == {"cpu": "250m", "memory": "64Mi"}
    assert spec["containers"][0]["resources"]["limits"].keys() == {CPU, MEMORY}


def test_resources_that_a_pod_names_itself_are_annotated() -> None:
    pod = {"metadata": {"name": "own"}, "spec": {"containers": [{"name": "m", "resources": {"requests": {CPU: "5"}}}]}}
    found = patched(pod, mutate(review_of(pod), ProfilesInForce([]), {}))
    assert json.loads(found["metadata"]["annotations"][ANNOTATION]) == {
        "containers": {"m": {"requests": {CPU: "5"}, "limits": {}}}
    }


# the draw


def test_a_pod_that_is_sent_again_is_drawn_alike() -> None:
    again = PodReview("review-2", "CREATE", "team-a", deepcopy(JOB))
    assert draws(review_of(JOB))("batch") == draws(again)("batch")


def test_the_draw_follows_namespace_owner_name_and_profile() -> None:
    def draw(namespace: str = "team-a", profile: str = "batch", **meta: Any) -> tuple[int, ...]:
        pod = {"metadata": JOB["metadata"] | meta}
        one = draws(PodReview("r", "CREATE", namespace, pod))
        return tuple(one(f"{profile}-{n}") for n in range(20))

    found = [draw(), draw(namespace="team-b"), draw(profile="other"), draw(generateName="x-"),
             draw(ownerReferences=[{"uid": "u-2"}]), draw(name="web-0")]  # fmt: skip
    assert len(set(found)) == len(found)


def test_p_percent_of_many_owners_are_taken() -> None:
    pods = [{"metadata": JOB["metadata"] | {"ownerReferences": [{"uid": f"u-{n}"}]}} for n in range(4000)]
    found = [draws(review_of(pod))("batch") for pod in pods]
    assert set(found) == set(range(100))
    for percent in (1, 10, 50, 99):
        taken = sum(draw < percent for draw in found) / len(found)
        assert abs(taken - percent / 100) < 0.03


# admission


def pod_of(qos: str | None, priority: int | None = None, **requests: str) -> Json:
    labels = {} if qos is None else {QOS_LABEL: qos}
    containers = [{"name": "main", "resources": {"requests": requests}}]
    return {"metadata": {"labels": labels}, "spec": {"priority": priority, "containers": containers}}


def test_a_refusal_says_why_and_what_to_write() -> None:
    answer = validate(review_of(pod_of("LSR", 9000, cpu="1500m")))
    response = answer.document["response"]
    assert (answer.outcome, response["allowed"], response["status"]["code"]) == ("refused", False, 403)
    assert "cpu_request_not_whole" in response["status"]["message"]
    assert "write 2" in response["status"]["message"]


def test_an_update_is_not_held_up_by_what_was_wrong_before() -> None:
    wrong = pod_of("BE", 9000)
    assert validate(review_of(wrong)).outcome == "refused"
    assert validate(review_of(wrong, "UPDATE", wrong)).outcome == "unchanged"
    assert validate(review_of(wrong, "UPDATE", pod_of("LS", 9000))).outcome == "refused"
    assert validate(review_of(pod_of("LS"), "DELETE")).outcome == "unchanged"


def test_sidecars_count_beside_containers_and_later_init_containers() -> None:
    def row(cpu: str, **more: Any) -> Json:
        return {"name": "x", "resources": {"requests": {"cpu": cpu}}, **more}

    spec = {"containers": [row("1")], "initContainers": [row("500m", restartPolicy="Always"), row("1")],
            "overhead": {"cpu": "250m"}}  # fmt: skip
    assert claims_of({"spec": spec}).requests == {"cpu": 1750}
    spec["initContainers"] = [row("3"), row("500m", restartPolicy="Always")]
    assert claims_of({"spec": spec}).requests == {"cpu": 3250}


# the door


def test_a_review_is_read() -> None:
    request = {"uid": "review-1", "operation": "UPDATE", "namespace": "team-a", "object": JOB, "oldObject": JOB}
    text = json.dumps({"kind": "AdmissionReview", "request": request}).encode()
    assert read_review(text) == review_of(JOB, "UPDATE", JOB)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[]", b"{", b"null", b'{"kind":"AdmissionReview"}',
        b'{"kind":"Pod","request":{"uid":"u","operation":"CREATE"}}',
        b'{"kind":"AdmissionReview","request":{"uid":"","operation":"CREATE"}}',
        b'{"kind":"AdmissionReview","request":{"uid":1,"operation":"CREATE"}}',
        b'{"kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","object":[1]}}',
        b'{"kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","object":{},"oldObject":"x"}}',
        b'{"a":' * 10_000, b" " * (MAX_REVIEW_BYTES + 1), b'\xff\xfe{"a":1}',
    ],
)  # fmt: skip
def test_what_is_no_review_is_refused_at_the_door(text: bytes) -> None:
    with pytest.raises(Refused):
        read_review(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "x/y~z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b/c", "~d"]), inner, max_size=3),
    max_leaves=15,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "b/c", "~1"]), JSON, max_size=3)


@given(OBJECTS, OBJECTS)
def test_a_patch_makes_the_one_document_of_the_other(before: Json, after: Json) -> None:
    patch = json_patch(before, after)
    assert json.dumps(applied(before, patch), sort_keys=True) == json.dumps(after, sort_keys=True)
    assert json_patch(after, after) == []


def written(*selectors: Selector | None) -> tuple[str, set[str]]:
    """The outcome, and whose labels a pod gets in namespace team-a, of whose labels nobody knows more."""
    profiles = [
        Profile(f"p{n}", ProfileChanges(labels={f"p{n}": "x"}), namespace_selector=selector)
        for n, selector in enumerate(selectors)
    ]
    answer = mutate_by_name(review_of(JOB), ProfilesInForce(profiles))
    return answer.outcome, set(patched(JOB, answer)["metadata"]["labels"]) - {"kind"}


@pytest.mark.parametrize(
    "asks",
    [
        Requirement("team", "absent"), Requirement("team", "notin", frozenset({"a"})), Requirement("team", "exists"),
        Requirement("team", "in", frozenset({"a"})),
    ],
)  # fmt: skip
def test_a_profile_that_asks_for_labels_that_nobody_knows_is_left_out_and_counted(asks: Requirement) -> None:
    by_name = exact_labels({NAME_LABEL: "team-a"})
    both = Selector((*by_name.requirements, asks))
    assert written(Selector((asks,))) == ("namespace_unknown", set())
    assert written(None, by_name, Selector((asks,)), both) == ("namespace_unknown", {"p0", "p1"})
    assert written(None, by_name, exact_labels({NAME_LABEL: "team-b"}), Selector()) == ("changed", {"p0", "p1", "p3"})


def test_a_pod_that_cannot_be_read_is_counted_as_such_also_where_its_namespace_is_unknown() -> None:
    profile = Profile("p", ProfileChanges(), namespace_selector=exact_labels({"team": "a"}))
    review = review_of({"metadata": {"labels": {"kind": 5}}})
    assert mutate_by_name(review, ProfilesInForce([profile])).outcome == "unreadable"
