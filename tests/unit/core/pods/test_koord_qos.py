"""Koordinator's labels: the worked cases, a table of the rules, and the class that a pod gets by either dialect."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contracts.pod import KubeQos, QosClass
from shared.core.cgroups.kube_qos import kube_qos
from shared.core.pods.koord_qos import PRIORITY_CLASS_LABEL, QOS_LABEL, QOS_OF_KOORD, SUB_PRIORITY_LABEL, KoordQos
from shared.core.pods.qos import QOS_LEVEL, class_of_kube, qos_class
from shared.errors import Refused
from sublet.reference.koord_pod_class import (
    EVICTION_ENABLED_LABEL,
    EVICTION_PRIORITY,
    KoordPodClassQuestion,
    koord_pod_class,
)

CASES = [
    json.loads(line) for line in (Path(__file__).parents[3] / "cases/koord_qos_labels.jsonl").read_text().splitlines()
]
CPU, BOTH = {"cpu": 1000}, {"cpu": 1000, "memory": 1 << 30}
BURSTABLE = [{"requests": CPU, "limits": {"cpu": 2000}}]
LEGACY: dict[QosClass, dict[str, str]] = {"dedicated_cores": {"tier": "gold"}, "shared_cores": {"legacy": "ls"}}


def ask(default_sub_priority: int = 0, **pod: Any) -> dict[str, Any]:
    question = {"pod": {"labels": {}, "annotations": {}, "containers": []} | pod}
    inputs = question | {"default_sub_priority": default_sub_priority}
    return koord_pod_class(KoordPodClassQuestion.model_validate_json(json.dumps(inputs))).model_dump()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_worked_case_is_answered_as_printed(case: dict[str, Any]) -> None:
    answer = ask(**{key: value for key, value in case["inputs"]["pod"].items() if value is not None})
    assert {name: answer[name] for name in case["outputs"]} == case["outputs"]


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        *(pytest.param({"labels": {QOS_LABEL: qos}}, {"koord_qos": qos}, id=qos) for qos in QOS_OF_KOORD),
        pytest.param({"containers": BURSTABLE}, {"koord_qos": None}, id="no label"),
        pytest.param({"labels": {QOS_LABEL: "be"}}, {"koord_qos": None}, id="a label that names none"),
        # by value: the bands with their edges
        *(
            pytest.param({"priority": value}, {"priority_class": name, "priority_value": value}, id=f"value {value}")
            for value, name in [
                (10_000, None), (9999, "koord-prod"), (9000, "koord-prod"), (8999, None), (8000, None),
                (7999, "koord-mid"), (7000, "koord-mid"), (6999, None), (6000, None), (5999, "koord-batch"),
                (5000, "koord-batch"), (4999, None), (4000, None), (3999, "koord-free"), (3000, "koord-free"),
                (2999, None), (-1, None),
            ]
        ),
        # by label, with the default value of the class
        *(
            pytest.param(
                {"labels": {PRIORITY_CLASS_LABEL: name}},
                {"priority_class": name, "priority_class_with_default": name, "priority_value": value},
                id=name,
            )
            for name, value in [("koord-prod", 9500), ("koord-mid", 7500), ("koord-batch", 5500), ("koord-free", 3500)]
        ),
        pytest.param(
            {"labels": {PRIORITY_CLASS_LABEL: "koord-prod"}, "priority": 5500},
            {"priority_class": "koord-prod", "priority_class_with_default": "koord-prod", "priority_value": 5500},
            id="the label beats the value",
        ),
        pytest.param(
            {"labels": {PRIORITY_CLASS_LABEL: "gold"}, "priority": 5500, "containers": BURSTABLE},
            {"priority_class": None, "priority_class_with_default": "koord-prod", "priority_value": 5500, "errors": {}},
            id="an unknown label beats the value too",
        ),
        # by default
        pytest.param({}, {"priority_class": None, "priority_class_with_default": "koord-batch",
                          "priority_value": 5500}, id="nothing said, best effort"),
        pytest.param({"containers": BURSTABLE}, {"priority_class_with_default": "koord-prod",
                                                 "priority_value": 9500}, id="nothing said, burstable"),
        pytest.param({"containers": [{"requests": BOTH, "limits": BOTH}]},
                     {"priority_class_with_default": "koord-prod"}, id="nothing said, guaranteed"),
        pytest.param({"containers": [{"requests": {"kubernetes.io/batch-cpu": 500}}]},
                     {"priority_class_with_default": "koord-batch"}, id="batch resources alone are best effort"),
        pytest.param({"labels": {QOS_LABEL: "BE"}, "containers": BURSTABLE},
                     {"priority_class_with_default": "koord-batch"}, id="BE is batch"),
        *(pytest.param({"labels": {QOS_LABEL: qos}}, {"priority_class_with_default": "koord-prod"},
                       id=f"{qos} is prod") for qos in ("LSE", "LSR", "LS", "SYSTEM")),
        pytest.param({"labels": {QOS_LABEL: "LSR"}, "priority": 5500}, {"priority_class_with_default": "koord-batch"},
                     id="the value beats the QoS label"),
        pytest.param({"priority": 0, "labels": {QOS_LABEL: "LS"}}, {"priority_class": None, "priority_value": 0},
                     id="priority 0 is what admission fills in"),
        # eviction
        pytest.param({"labels": {EVICTION_ENABLED_LABEL: "true"}}, {"eviction_enabled": True}, id="may be evicted"),
        *(pytest.param({"labels": {EVICTION_ENABLED_LABEL: text}}, {"eviction_enabled": False, "errors": {}},
                       id=f"eviction {text!r}") for text in ("false", "True", "", "x")),
        pytest.param({}, {"eviction_enabled": False, "eviction_priority": 0, "errors": {}}, id="no eviction label"),
        *(pytest.param({"annotations": {EVICTION_PRIORITY: text}}, {"eviction_priority": number, "errors": {}},
                       id=f"eviction priority {text}")
          for text, number in (("100", 100), ("-10", -10), ("+5", 5), ("2147483647", 2**31 - 1))),
        *(pytest.param({"annotations": {EVICTION_PRIORITY: text}},
                       {"eviction_priority": 0, "errors": {"eviction_priority": "invalid"}},
                       id=f"eviction priority {text!r}") for text in ("xxx", "", "1.5", "2147483648", "-2147483649")),
        # sub-priority
        pytest.param({"labels": {SUB_PRIORITY_LABEL: "1200"}}, {"sub_priority": 1200, "errors": {}}, id="sub-priority"),
        pytest.param({"labels": {SUB_PRIORITY_LABEL: "-1"}}, {"sub_priority": -1, "errors": {}}, id="below 0"),
        pytest.param({}, {"sub_priority": 77, "errors": {}}, id="no sub-priority"),
        pytest.param({"labels": {SUB_PRIORITY_LABEL: ""}}, {"sub_priority": 77, "errors": {}}, id="empty"),
        *(pytest.param({"labels": {SUB_PRIORITY_LABEL: text}},
                       {"sub_priority": 77, "errors": {"sub_priority": "invalid"}}, id=f"sub-priority {text!r}")
          for text in ("xxx", "1e3", "2147483648")),
    ],
)  # fmt: skip
def test_the_classes_and_priorities_follow_the_labels(pod: dict[str, Any], wanted: dict[str, Any]) -> None:
    answer = ask(default_sub_priority=77, **pod)
    assert {name: answer[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("containers", "want"),
    [
        pytest.param([], "BestEffort", id="no container"),
        pytest.param([({}, {}), ({}, {})], "BestEffort", id="nothing asked"),
        pytest.param([({"cpu": 0}, {"memory": 0})], "BestEffort", id="zero is nothing"),
        pytest.param([({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1})], "BestEffort", id="other resources"),
        pytest.param([(BOTH, BOTH)], "Guaranteed", id="all equal"),
        pytest.param([({}, BOTH)], "Guaranteed", id="limits are the requests too"),
        pytest.param([(BOTH, BOTH), (BOTH, BOTH)], "Guaranteed", id="every container"),
        pytest.param([(BOTH, BOTH), ({}, {})], "Burstable", id="one container without"),
        pytest.param([({}, {}), (BOTH, BOTH)], "Burstable", id="the first without"),
        pytest.param([(CPU, CPU)], "Burstable", id="cpu alone"),
        pytest.param([(CPU, BOTH | {"cpu": 2000})], "Burstable", id="a request below its limit"),
        pytest.param([(BOTH, {})], "Burstable", id="no limit"),
    ],
)
def test_the_kubernetes_class_follows_from_requests_and_limits(
    containers: list[tuple[dict[str, int], dict[str, int]]], want: str
) -> None:
    assert kube_qos(containers) == want


@pytest.mark.parametrize(("koord", "qos"), QOS_OF_KOORD.items())
def test_the_label_alone_gives_the_class(koord: str, qos: str) -> None:
    assert qos_class({}, labels={QOS_LABEL: koord}) == qos


@given(st.sampled_from([*get_args(QosClass), "gold", ""]), st.sampled_from(list(QOS_OF_KOORD)))
def test_a_pod_that_speaks_both_dialects_is_refused_with_both_words(level: str, koord: KoordQos) -> None:
    annotations, labels = {QOS_LEVEL: level}, {QOS_LABEL: koord}
    with pytest.raises(Refused) as refusal:
        qos_class(annotations, labels=labels)
    assert refusal.value.reason == "conflict"
    assert all(word in str(refusal.value) for word in (QOS_LEVEL, repr(level), QOS_LABEL, repr(koord), "remove"))


@pytest.mark.parametrize(
    ("annotations", "label", "want"),
    [
        pytest.param({}, "LSX", "unknown_level", id="a label that names no class"),
        pytest.param({}, "", "unknown_level", id="an empty label"),
        pytest.param({QOS_LEVEL: "gold"}, "BE", "conflict", id="an annotation that names no class"),
        pytest.param({"tier": "gold"}, "LSR", "dedicated_cores", id="a selector agrees"),
        pytest.param({"tier": "gold"}, "LS", "conflict", id="a selector names another class"),
        pytest.param({"tier": "iron"}, "LSE", "conflict", id="a selector contradicts the label's class"),
        pytest.param({"tier": "iron"}, "BE", "reclaimed_cores", id="a selector of another class does not match"),
        pytest.param({"legacy": "be"}, "BE", "reclaimed_cores", id="the default is denied but not needed"),
    ],
)
def test_the_label_stands_beside_a_clusters_own_selectors(annotations: dict[str, str], label: str, want: str) -> None:
    if want in get_args(QosClass):
        assert qos_class(annotations, LEGACY, {QOS_LABEL: label}) == want
        return
    with pytest.raises(Refused) as refusal:
        qos_class(annotations, LEGACY, {QOS_LABEL: label})
    assert refusal.value.reason == want


@pytest.mark.parametrize("kube", ["Guaranteed", "Burstable", "BestEffort"])
def test_kubernetes_qos_is_a_fallback_that_never_gives_whole_cores_away(kube: KubeQos) -> None:
    default = class_of_kube(kube)
    assert default == ("reclaimed_cores" if kube == "BestEffort" else "shared_cores")
    assert qos_class({}, default=default) == default
    assert qos_class({QOS_LEVEL: "system_cores"}, default=default) == "system_cores"
    assert qos_class({}, labels={QOS_LABEL: "LS"}, default=default) == "shared_cores"
