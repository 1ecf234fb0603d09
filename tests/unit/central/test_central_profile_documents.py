"""ClusterColocationProfile objects: what is read, what is refused in which words, and the kind's schema."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from services.central.core.profiles.profile import SKIP_RESOURCES
from services.central.core.profiles.profile_documents import (
    MOST_KEYS,
    PROFILES,
    ProfileSpec,
    SelectorExpression,
    profile_of,
)
from shared.errors import Refused

CRD = Path(__file__).parents[3] / "deploy/k8s/crds/clustercolocationprofiles.yaml"
FULL = {
    "namespaceSelector": {"matchLabels": {"colocated": "true"}},
    "selector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}]},
    "probability": "30%", "qosClass": "BE", "priorityClassName": "koord-batch", "koordinatorPriority": 1000,
    "labels": {"l": "1"}, "annotations": {"a": "1"}, "labelKeysMapping": {"l": "m"},
    "annotationKeysMapping": {"a": "b"}, "labelSuffixes": {"l": "-x"}, "schedulerName": "other",
    "patch": {"spec": {"terminationGracePeriodSeconds": 5}},
}  # fmt: skip
Json = dict[str, Any]


def document(spec: Any, **meta: Any) -> Json:
    return {"metadata": {"name": "p", "generation": 3, **meta}, "spec": spec}


def test_every_field_of_a_profile_is_read() -> None:
    found = profile_of(document(FULL, annotations={SKIP_RESOURCES: ""})).profile
    assert found is not None
    changes = found.changes
    assert (found.name, found.probability_percent, found.skips_resources) == ("p", 30, True)
    assert (changes.koord_qos, changes.priority_class_name, changes.sub_priority) == ("BE", "koord-batch", 1000)
    assert (changes.labels, changes.annotations) == ({"l": "1"}, {"a": "1"})
    assert (changes.label_keys_mapping, changes.annotation_keys_mapping) == ({"l": "m"}, {"a": "b"})
    assert (changes.label_suffixes, changes.scheduler_name) == ({"l": "-x"}, "other")
    assert changes.patch == FULL["patch"]
    assert found.matches({"colocated": "true"}, {"tier": "b"})
    assert not found.matches({"colocated": "true"}, {"tier": "c"})
    assert not found.matches({}, {"tier": "b"})


@pytest.mark.parametrize("spec", [None, {}, {"selector": {}}, {"selector": None, "namespaceSelector": {}}])
def test_a_profile_without_selectors_takes_everything(spec: Json | None) -> None:
    found = profile_of(document(spec)).profile
    assert found is not None
    assert found.matches({}, {})
    assert (found.probability_percent, found.changes.koord_qos) == (None, None)


@pytest.mark.parametrize(
    ("given", "labels", "matches"),
    [
        ({"key": "a", "operator": "In", "values": ["1"]}, {"a": "1"}, True),
        ({"key": "a", "operator": "In", "values": ["1"]}, {}, False),
        ({"key": "a", "operator": "NotIn", "values": ["1"]}, {}, True),
        ({"key": "a", "operator": "NotIn", "values": ["1"]}, {"a": "1"}, False),
        ({"key": "a", "operator": "Exists"}, {"a": ""}, True),
        ({"key": "a", "operator": "Exists", "values": []}, {}, False),
        ({"key": "a", "operator": "DoesNotExist"}, {}, True),
        ({"key": "example.com/a", "operator": "DoesNotExist"}, {"example.com/a": ""}, False),
        ({"key": "a", "operator": "In", "values": [""]}, {"a": ""}, True),
    ],
)
def test_expressions_are_those_of_kubernetes(given: Json, labels: dict[str, str], matches: bool) -> None:
    found = profile_of(document({"selector": {"matchExpressions": [given]}})).profile
    assert found is not None
    assert found.matches({}, labels) == matches


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"selector": {"matchLabels": {"a b": "1"}}}, "spec.selector: selector, key 'a b'"),
        ({"selector": {"matchLabels": {"": "1"}}}, "want the name of a label"),
        ({"selector": {"matchLabels": {"a": "x y"}}}, "want a value of at most 63"),
        ({"namespaceSelector": {"matchLabels": {"Ex/ample/a": "1"}}}, "spec.namespaceSelector"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}, "In and NotIn want values"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["1"]}]}}, "Exist none"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}}, "operator"),
        ({"selector": {"matchLabels": {"a": 1}}}, "matchLabels"),
        ({"selector": "a=b"}, "selector"),
        ({"probability": "half"}, "probability"), ({"probability": 0.5}, "probability"),
        ({"probability": True}, "probability"), ({"qosClass": "be"}, "qosClass"),
        ({"koordinatorPriority": 2**31}, "koordinatorPriority"), ({"labels": {"a": None}}, "labels"),
        ({"labels": {str(n): "" for n in range(MOST_KEYS + 1)}}, "labels"), ({"labels": ["a"]}, "labels"),
        ({"schedulerName": "x" * 2000}, "schedulerName"), ({"patch": "spec"}, "patch"),
        ({"patch": {"a": [0] * 20_000}}, "spec.patch: more than"), ("x", "spec"), ([1], "spec"),
    ],
)  # fmt: skip
def test_a_profile_that_cannot_be_read_matches_nothing_and_says_why(spec: Any, said: str) -> None:
    found = profile_of(document(spec))
    assert found.profile is None
    assert said in found.problem
    assert found.generation == 3


def test_a_deep_patch_is_refused_and_not_followed() -> None:
    deep: Json = {}
    for _ in range(5000):
        deep = {"a": deep}
    found = profile_of(document({"patch": deep}))
    assert found.profile is None
    assert "spec.patch" in found.problem


@pytest.mark.parametrize("meta", [None, {}, {"name": ""}, {"name": 5}, []])
def test_an_object_without_a_name_is_refused(meta: Any) -> None:
    with pytest.raises(Refused):
        profile_of({"metadata": meta, "spec": {}})


def test_the_conditions_that_stand_there_are_kept() -> None:
    there = {"type": "Valid", "status": "True"}
    assert profile_of(document({}) | {"status": {"conditions": [there, "x"]}}).conditions == (there,)
    assert profile_of(document({}) | {"status": {"conditions": "x"}}).conditions == ()
    assert profile_of(document({}) | {"status": []}).conditions == ()


def test_the_kind_declares_the_fields_that_are_read() -> None:
    crd = yaml.safe_load(CRD.read_text())
    version = crd["spec"]["versions"][0]
    names = crd["spec"]["names"]
    assert (crd["spec"]["group"], version["name"]) == (PROFILES.group, PROFILES.version)
    assert (names["kind"], names["plural"]) == (PROFILES.kind, PROFILES.plural)
    assert crd["metadata"]["name"] == f"{PROFILES.plural}.{PROFILES.group}"
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert spec.keys() == {field.alias for field in ProfileSpec.model_fields.values()}
    for name in ("selector", "namespaceSelector"):
        assert spec[name]["properties"].keys() == {"matchLabels", "matchExpressions"}
        row = spec[name]["properties"]["matchExpressions"]["items"]["properties"]
        assert row.keys() == {field.alias for field in SelectorExpression.model_fields.values()}
    assert spec["labels"]["maxProperties"] == MOST_KEYS
