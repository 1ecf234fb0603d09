"""Pods after the colocation profiles that match them: a table of the rules, and laws."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.profiles.colocated_resources import ANNOTATION
from services.central.core.profiles.profile import PriorityClassValue, Profile, ProfileChanges, exact_labels
from services.central.core.profiles.profiled_pod import ProfiledPod, ProfilesInForce, profiled
from services.central.whatif.profiles import (
    AnnotationQuestion,
    ProfileQuestion,
    extended_resource_annotation,
    profile_mutate,
)
from shared.core.pods.koord_qos import PRIORITY_CLASS_LABEL, QOS_LABEL, SUB_PRIORITY_LABEL
from sublet.whatif import Malformed, answer, kinds

SKIP = "config.koordinator.sh/skip-update-resources"
CPU, MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
HALF = {"cpu": 500, "memory": 1024}
BATCH = {CPU: 500, MEMORY: 1024}
ONE = [{"name": "main", "requests": HALF, "limits": HALF}]
Json = dict[str, Any]


def pod_of(**fields: Any) -> Json:
    """A batch pod by its value, if nothing else is said."""
    return {"namespace": "default", "priority": 5999, "containers": ONE, **fields}


def after(*profiles: Json, pod: Json | None = None, **more: Any) -> Json:
    named = [{"name": f"p{place}"} | profile for place, profile in enumerate(profiles)]
    question = {"profiles": named, "pod": pod_of() if pod is None else pod} | more
    return profile_mutate(ProfileQuestion.model_validate(question)).pod.model_dump()


def labels(*profiles: Json, **fields: Any) -> Json:
    found: Json = after(*profiles, pod=pod_of(**fields))["labels"]
    return found


@pytest.mark.parametrize(
    ("profiles", "own", "want"),
    [
        pytest.param([{"labels": {"a": "1"}}], {"a": "0", "b": "0"}, {"a": "1", "b": "0"}, id="merged"),
        pytest.param([{"labels": {"a": "1"}}, {"labels": {"a": "2"}}], {}, {"a": "2"}, id="the later overwrites"),
        pytest.param(
            [{"name": "z", "labels": {"a": "z"}}, {"name": "b", "labels": {"a": "b"}}], {}, {"a": "z"}, id="by name"
        ),
        pytest.param([{"selector": {"a": "1"}, "labels": {"b": "1"}}], {"a": "1"}, {"a": "1", "b": "1"}, id="selected"),
        pytest.param([{"selector": {"a": "1"}, "labels": {"b": "1"}}], {"a": "2"}, {"a": "2"}, id="another value"),
        pytest.param([{"selector": {"a": ""}, "labels": {"b": "1"}}], {}, {}, id="absent is not empty"),
        pytest.param([{"selector": {}, "labels": {"b": "1"}}], {}, {"b": "1"}, id="an empty selector takes all"),
        pytest.param(
            [{"labels": {"a": "1"}}, {"selector": {"a": "1"}, "labels": {"b": "1"}}],
            {}, {"a": "1"}, id="the pod's own labels are asked, not those of a profile",
        ),
        pytest.param([{"label_keys_mapping": {"a": "b"}}], {"a": "1"}, {"a": "1", "b": "1"}, id="mapped"),
        pytest.param([{"label_keys_mapping": {"a": "b"}}], {}, {"b": ""}, id="what is missing is mapped as empty"),
        pytest.param([{"label_keys_mapping": {"b": "c", "a": "b"}}], {"a": "1"}, {"a": "1", "b": "1", "c": "1"},
                     id="by source ascending"),
        pytest.param([{"labels": {"a": "1"}, "label_keys_mapping": {"a": "b"}}], {}, {"a": "1", "b": "1"},
                     id="a mapping sees the labels of its profile"),
        pytest.param([{"label_suffixes": {"a": "-x", "b": "-x"}}], {"a": "1"}, {"a": "1-x"}, id="a suffix"),
        pytest.param([{"label_keys_mapping": {"a": "b"}, "label_suffixes": {"b": "-x"}}], {"a": "1"},
                     {"a": "1", "b": "1-x"}, id="suffixes behind the mapping"),
        pytest.param([{"label_suffixes": {"a": "-x"}}], {"a": ""}, {"a": "-x"}, id="empty is there"),
        pytest.param([{"koord_qos": "BE"}], {QOS_LABEL: "LS"}, {QOS_LABEL: "BE"}, id="QoS class"),
        pytest.param([{"labels": {QOS_LABEL: "LS"}, "koord_qos": "BE"}], {}, {QOS_LABEL: "BE"}, id="QoS behind labels"),
        pytest.param([{"sub_priority": 0}], {}, {SUB_PRIORITY_LABEL: "0"}, id="0 is said"),
        pytest.param([{"sub_priority": -5}], {}, {SUB_PRIORITY_LABEL: "-5"}, id="below 0"),
        pytest.param([{"koord_qos": "BE", "patch": {"metadata": {"labels": {QOS_LABEL: "LS"}}}}], {},
                     {QOS_LABEL: "LS"}, id="the patch is last"),
        pytest.param([{"patch": {"metadata": {"labels": {"a": None}}}}], {"a": "1", "b": "1"}, {"b": "1"},
                     id="null removes"),
        pytest.param([], {"a": "1"}, {"a": "1"}, id="no profile"),
    ],
)  # fmt: skip
def test_labels_follow_the_profiles_in_order(profiles: list[Json], own: Json, want: Json) -> None:
    assert labels(*profiles, labels=own) == want


def test_the_namespace_is_asked_for_its_labels() -> None:
    profile = {"namespace_selector": {"colocated": "true"}, "labels": {"a": "1"}}
    assert after(profile, namespace_labels={"colocated": "true"})["labels"] == {"a": "1"}
    assert after(profile, namespace_labels={"colocated": "false"})["labels"] == {}


def test_annotations_are_merged_and_mapped_as_labels_are() -> None:
    profile = {"annotations": {"a": "1"}, "annotation_keys_mapping": {"a": "b", "x": "y"}}
    assert after(profile)["annotations"] == {"a": "1", "b": "1", "y": ""}


def test_scheduler_and_priority_class_are_written_with_value_and_preemption() -> None:
    classes = {"batch": {"value": 5100, "preemption_policy": "Never"}, "plain": {"value": 9001}}
    pod = pod_of(preemption_policy="PreemptLowerPriority", scheduler_name="other")
    found = after({"scheduler_name": "mine", "priority_class_name": "batch"}, pod=pod, priority_classes=classes)
    assert (found["scheduler_name"], found["priority"], found["preemption_policy"]) == ("mine", 5100, "Never")
    found = after({"priority_class_name": "plain", "scheduler_name": ""}, pod=pod, priority_classes=classes)
    assert (found["scheduler_name"], found["priority_class_name"]) == ("other", "plain")
    assert (found["priority"], found["preemption_policy"]) == (9001, None)
    assert found["containers"][0]["requests"] == HALF  # prod keeps cpu and memory


def test_a_profile_whose_priority_class_is_missing_leaves_no_trace() -> None:
    rules = ProfilesInForce(
        [
            Profile("broken", ProfileChanges(labels={"a": "1"}, priority_class_name="gone")),
            Profile("good", ProfileChanges(labels={"b": "1"})),
        ]
    )
    found = profiled({"metadata": {}, "spec": {}}, {}, rules, lambda _: 0)
    assert (found.pod["metadata"], found.applied) == ({"labels": {"b": "1"}}, ("good",))
    assert "'gone'" in found.failed["broken"]


@pytest.mark.parametrize(
    "patch",
    [
        {"metadata": {"labels": {"a": 1}}}, {"metadata": {"annotations": []}}, {"metadata": "x"}, {"spec": []},
        {"spec": {"containers": "none"}}, {"spec": {"containers": [{"image": "x"}]}}, {"spec": {"priority": "high"}},
        {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "much"}}}]}},
        {"spec": {"schedulerName": 5}}, {"$patch": "merge"},
    ],
)  # fmt: skip
def test_a_patch_that_makes_no_pod_is_the_profiles_failure(patch: Json) -> None:
    pod = {"metadata": {"labels": {"own": "1"}}, "spec": {"containers": [{"name": "main"}]}}
    found = profiled(pod, {}, ProfilesInForce([Profile("broken", ProfileChanges(patch=patch))]), lambda _: 0)
    assert found == ProfiledPod(pod, (), found.failed)
    assert found.failed["broken"]


@pytest.mark.parametrize(
    ("percent", "draw", "applied"),
    [(None, None, True), (0, 0, False), (1, 0, True), (1, 1, False), (50, 49, True), (50, 50, False), (99, 99, False),
     (100, 99, True), (100, None, True), (0, None, False), (-1, 0, False), (101, 99, True)],
)  # fmt: skip
def test_a_profile_takes_exactly_its_percent(percent: int | None, draw: int | None, applied: bool) -> None:
    assert ("a" in after({"labels": {"a": "1"}, "probability_percent": percent}, draw=draw)["labels"]) == applied


def test_a_probability_needs_a_draw() -> None:
    question = {"profiles": [{"name": "p", "probability_percent": 50}], "pod": {}}
    with pytest.raises(Malformed, match="draw: a number from 0 to 99") as malformed:
        answer(kinds(), "profile_mutate", question)
    assert malformed.value.reason == "invalid_input"


# resources


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(pod_of(), BATCH, id="batch by value"),
        pytest.param(pod_of(priority=7000), {"kubernetes.io/mid-cpu": 500, "kubernetes.io/mid-memory": 1024}, id="mid"),
        pytest.param(pod_of(priority=9000), HALF, id="prod"),
        pytest.param(pod_of(priority=3000), HALF, id="free has no resources of its own"),
        pytest.param(pod_of(priority=None), HALF, id="nothing said, guaranteed"),
        pytest.param(pod_of(priority=None, labels={QOS_LABEL: "BE"}), BATCH, id="BE is batch"),
        pytest.param(pod_of(priority=9000, labels={QOS_LABEL: "BE"}), HALF, id="the value beats the QoS class"),
        pytest.param(pod_of(priority=9000, labels={PRIORITY_CLASS_LABEL: "koord-batch"}), BATCH, id="the label beats"),
    ],
)
def test_resources_follow_the_class_that_the_pod_has_in_the_end(pod: Json, want: Json) -> None:
    assert after({}, pod=pod)["containers"][0] == {"name": "main", "requests": want, "limits": want}


@pytest.mark.parametrize(
    ("requests", "limits", "want"),
    [
        pytest.param({}, {"cpu": 100}, ({CPU: 100}, {CPU: 100}), id="the request is the limit"),
        pytest.param({"cpu": 100}, {}, ({CPU: 100}, {}), id="no limit comes of a request"),
        pytest.param({"memory": 5}, {"cpu": 100}, ({CPU: 100, MEMORY: 5}, {CPU: 100}), id="each by itself"),
        pytest.param({CPU: 7}, {CPU: 9}, ({CPU: 7}, {CPU: 9}), id="colocated already"),
        pytest.param({}, {CPU: 9}, ({CPU: 9}, {CPU: 9}), id="colocated already, no request"),
        pytest.param({CPU: 7, "cpu": 100}, {}, ({CPU: 100}, {}), id="cpu takes the place"),
        pytest.param({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1}, ({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1}),
                     id="others stay"),
        pytest.param({"cpu": 0}, {"cpu": 0}, ({CPU: 0}, {CPU: 0}), id="zero is said"),
        pytest.param({}, {}, ({}, {}), id="nothing said"),
        pytest.param({"memory": 1 << 70}, {}, ({MEMORY: 1 << 70}, {}), id="huge"),
    ],
)  # fmt: skip
def test_each_container_is_rewritten_by_itself(requests: Json, limits: Json, want: tuple[Json, Json]) -> None:
    row = {"name": "main", "requests": requests, "limits": limits}
    found = after({}, pod=pod_of(containers=[row], init_containers=[row]))
    assert (found["containers"][0]["requests"], found["containers"][0]["limits"]) == want
    assert found["init_containers"] == found["containers"]


def test_overhead_is_rewritten_and_a_pod_that_no_profile_matches_is_not() -> None:
    pod = pod_of(overhead={"cpu": 250, "memory": 7, "other/x": 1})
    assert after({}, pod=pod)["overhead"] == {CPU: 250, MEMORY: 7, "other/x": 1}
    assert after({"selector": {"a": "1"}}, pod=pod)["overhead"] == pod["overhead"]
    assert after(pod=pod)["containers"] == ONE


def test_resources_are_rewritten_though_every_profile_was_skipped() -> None:
    assert after({"probability_percent": 0})["containers"][0]["requests"] == BATCH


@pytest.mark.parametrize(
    ("profiles", "pod", "by_pod", "rewritten"),
    [
        pytest.param([{"annotations_of_profile": {SKIP: "false"}}], {}, False, False, id="any value of the profile's"),
        pytest.param([{"annotations_of_profile": {SKIP: "true"}, "probability_percent": 0}, {}], {}, False, False,
                     id="a profile that its probability skips"),
        pytest.param([{"annotations_of_profile": {SKIP: ""}, "selector": {"a": "1"}}, {}], {}, False, True,
                     id="a profile that does not match has no say"),
        pytest.param([{}], {SKIP: "true"}, False, True, id="the pod's, not asked for"),
        pytest.param([{}], {SKIP: "true"}, True, False, id="the pod's"),
        pytest.param([{"annotations": {SKIP: ""}}], {}, True, False, id="the pod's, from a profile"),
        pytest.param([{"patch": {"metadata": {"annotations": {SKIP: None}}}}], {SKIP: ""}, True, True,
                     id="a profile has removed it"),
    ],
)  # fmt: skip
def test_a_profile_or_a_pod_may_keep_cpu_and_memory(
    profiles: list[Json], pod: Json, by_pod: bool, rewritten: bool
) -> None:
    found = after(*profiles, pod=pod_of(annotations=pod), skip_by_pod_annotation=by_pod)
    assert found["containers"][0]["requests"] == (BATCH if rewritten else HALF)


def test_a_container_of_the_patch_is_rewritten_too_and_the_profile_is_not_changed() -> None:
    patch = {"spec": {"containers": [{"name": "side", "resources": {"limits": {"cpu": "0.5", "memory": "1Ki"}}}]}}
    before = deepcopy(patch)
    for _ in range(2):
        found = after({"patch": patch})
        assert [row["name"] for row in found["containers"]] == ["side", "main"]
        assert found["containers"][0] == {"name": "side", "requests": BATCH, "limits": BATCH}
    assert patch == before


def test_a_fraction_of_a_milli_core_is_rounded_up() -> None:
    pod = {"spec": {"priority": 5000, "containers": [{"name": "main", "resources": {"requests": {"cpu": "100u"}}}]}}
    found = profiled(pod, {}, ProfilesInForce([Profile("all", ProfileChanges())]), lambda _: 0).pod
    assert found["spec"]["containers"][0]["resources"] == {"requests": {CPU: "1"}}


NAMES = st.sampled_from(["a", "b", "c"])
WORDS = st.dictionaries(NAMES, st.sampled_from(["", "1", "2"]), max_size=3)
PROFILES = st.builds(
    lambda name, selector, changes, percent: Profile(name, changes, None, selector, percent),
    name=st.sampled_from(["p", "q", "r"]),
    selector=st.none() | WORDS.map(exact_labels),
    changes=st.builds(
        ProfileChanges, labels=WORDS, annotations=WORDS, label_keys_mapping=st.dictionaries(NAMES, NAMES),
        label_suffixes=WORDS, koord_qos=st.sampled_from([None, "BE", "LS"]),
        priority_class_name=st.sampled_from(["", "batch", "gone"]),
    ),
    percent=st.none() | st.integers(-1, 101),
)  # fmt: skip
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", CPU]), st.integers(0, 9).map(str))
CONTAINERS = st.lists(
    st.builds(lambda r, li: {"name": "m", "resources": {"requests": r, "limits": li}}, AMOUNTS, AMOUNTS), max_size=2
)
PODS = st.builds(
    lambda words, priority, containers: {"metadata": {"labels": words},
                                         "spec": {"priority": priority, "containers": containers}},
    WORDS, st.sampled_from([0, 5500, 7500, 9500]), CONTAINERS,
)  # fmt: skip
RULES = ProfilesInForce([], {"batch": PriorityClassValue(5500)})


@given(PODS, st.lists(PROFILES, max_size=4, unique_by=lambda p: p.name), st.integers(0, 99), st.randoms())
def test_neither_the_order_of_profiles_nor_a_second_call_changes_the_answer(
    pod: Json, profiles: list[Profile], draw: int, chance: Any
) -> None:
    before = deepcopy(pod)
    found = profiled(pod, {}, ProfilesInForce(profiles, RULES.priority_classes), lambda _: draw)
    shuffled = chance.sample(profiles, len(profiles))
    assert profiled(pod, {}, ProfilesInForce(shuffled, RULES.priority_classes), lambda _: draw) == found
    assert pod == before


@given(PODS, st.lists(PROFILES, max_size=3, unique_by=lambda p: p.name), st.integers(0, 99))
def test_amounts_change_their_name_and_never_their_sum(pod: Json, profiles: list[Profile], draw: int) -> None:
    found = profiled(pod, {}, ProfilesInForce(profiles, RULES.priority_classes), lambda _: draw).pod
    if not any(p.matches({}, pod["metadata"]["labels"]) for p in profiles):
        assert found == pod
    for before, now in zip(pod["spec"]["containers"], found["spec"]["containers"], strict=True):
        limits, renamed = before["resources"]["limits"], now["resources"].get("limits", {})
        assert renamed == limits or not {"cpu", "memory"} & renamed.keys()
        assert len(renamed) >= len(limits) - 1  # cpu may take the place of what was colocated already


# the annotation


def test_the_annotation_carries_batch_and_mid_of_containers_alone() -> None:
    rows = [
        {"name": "b", "requests": {CPU: 0, "cpu": 5}, "limits": {"kubernetes.io/mid-memory": 3}},
        {"name": "n", "requests": {"cpu": 1, "koordinator.sh/batch-cpu": 2}},
    ]
    found = extended_resource_annotation(AnnotationQuestion.model_validate({"containers": rows}))
    assert found.annotation_key == ANNOTATION
    assert found.value.model_dump() == {
        "containers": {"b": {"requests": {CPU: 0}, "limits": {"kubernetes.io/mid-memory": 3}}}
    }
    nothing = extended_resource_annotation(AnnotationQuestion.model_validate({"containers": []}))
    assert nothing.value.containers == {}
