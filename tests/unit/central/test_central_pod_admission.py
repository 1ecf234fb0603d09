"""Whether a pod with Koordinator's classes is admitted: a table of the rules in their order, and laws."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.profiles.pod_admission import PodClaims, Reason, objection, requests_together
from services.central.whatif.pod_admission import PodValidateQuestion, pod_validate
from shared.core.pods.koord_qos import PRIORITY_CLASS_LABEL, QOS_LABEL, SUB_PRIORITY_LABEL, KoordQos
from sublet.whatif import Malformed, answer, kinds

CPU, MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"
Json = dict[str, Any]


def reason(pod: Json, old: Json | None = None, **more: Any) -> str | None:
    operation = "CREATE" if old is None else "UPDATE"
    question = PodValidateQuestion.model_validate({"operation": operation, "old_pod": old, "pod": pod, **more})
    found = pod_validate(question)
    assert found.allowed == (found.reason is None)
    return found.reason


def pod_of(qos: str | None = None, priority: int | None = None, **requests: int) -> Json:
    labels = {} if qos is None else {QOS_LABEL: qos}
    return {"labels": labels, "priority": priority, "containers": [{"name": "main", "requests": requests}]}


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(pod_of(), None, id="nothing said"),
        pytest.param(pod_of("unknown", 9000), None, id="a label that names none"),
        pytest.param(pod_of("LS", None), None, id="LS goes with none"),
        pytest.param(pod_of("SYSTEM", 5000), None, id="SYSTEM goes with all"),
        pytest.param(pod_of(None, 5000, **{CPU: 1}), "batch_needs_be", id="batch-cpu without the label"),
        pytest.param(pod_of("LS", 5000, **{MEMORY: 1}), "batch_needs_be", id="batch-memory of LS"),
        pytest.param(pod_of(None, 5000, **{CPU: 0}), None, id="zero asks for nothing"),
        pytest.param(pod_of(None, 7000, **{"kubernetes.io/mid-cpu": 1}), None, id="mid may be of any"),
        pytest.param(pod_of("BE", 5000, **{CPU: 1}), None, id="batch of BE"),
        pytest.param(pod_of("BE"), "qos_priority_forbidden", id="BE with none"),
        pytest.param(pod_of("BE", 9500), "qos_priority_forbidden", id="BE with prod"),
        pytest.param(pod_of("BE", 6500), "qos_priority_forbidden", id="BE between the bands"),
        *(pytest.param(pod_of("BE", value), None, id=f"BE with {value}") for value in (3000, 5000, 7999)),
        *(pytest.param(pod_of("LSR", value, cpu=1000), "qos_priority_forbidden", id=f"LSR with {value}")
          for value in (None, 3000, 5000, 7000)),
        pytest.param(pod_of("LSR", 9000, cpu=2000), None, id="LSR with prod"),
        pytest.param(pod_of("LSE", None, cpu=2000), None, id="LSE goes with none"),
        pytest.param(pod_of("LSR", 9000), "cpu_request_missing", id="LSR without cpu"),
        pytest.param(pod_of("LSE", cpu=0), "cpu_request_missing", id="LSE with zero"),
        pytest.param(pod_of("LSE", cpu=1500), "cpu_request_not_whole", id="LSE with a fraction"),
        pytest.param(pod_of("LSR", 9000, cpu=1), "cpu_request_not_whole", id="LSR with a fraction"),
        pytest.param(pod_of("LSR", 5000), "qos_priority_forbidden", id="the pair before the cpu"),
        pytest.param(pod_of("LSR", 5000, **{CPU: 5}), "batch_needs_be", id="batch before the pair"),
        pytest.param(pod_of("BE", 9500) | {"labels": {QOS_LABEL: "BE", PRIORITY_CLASS_LABEL: "koord-mid"}}, None,
                     id="the label beats the value"),
        pytest.param(pod_of("BE", 5000) | {"labels": {QOS_LABEL: "BE", PRIORITY_CLASS_LABEL: "gold"}},
                     "qos_priority_forbidden", id="an unknown label is none"),
        pytest.param(pod_of("LSE") | {"containers": [{"name": "a", "requests": {"cpu": 500}},
                                                    {"name": "b", "requests": {"cpu": 500}}]}, None, id="together"),
        pytest.param(pod_of("LSE", cpu=1000) | {"init_containers": [{"name": "i", "requests": {"cpu": 1500}}]},
                     "cpu_request_not_whole", id="a larger init container"),
        pytest.param(pod_of("LSE", cpu=1000) | {"overhead": {"cpu": 250}}, "cpu_request_not_whole", id="overhead"),
        pytest.param(pod_of("LSE") | {"containers": [{"name": "a", "limits": {"cpu": 1000}}]}, "cpu_request_missing",
                     id="a limit is no request"),
    ],
)  # fmt: skip
def test_a_pod_that_is_created_is_judged_in_order(pod: Json, want: str | None) -> None:
    assert reason(pod) == want
    assert reason(pod, old=pod) == want  # an update that changes nothing is judged alike


@pytest.mark.parametrize(
    ("old", "new", "want"),
    [
        ({}, {QOS_LABEL: "BE"}, "qos_immutable"),
        ({QOS_LABEL: "LS"}, {}, "qos_immutable"),
        ({QOS_LABEL: "x"}, {QOS_LABEL: "y"}, None),
        ({}, {PRIORITY_CLASS_LABEL: "koord-mid"}, "priority_class_immutable"),
        ({PRIORITY_CLASS_LABEL: "koord-mid"}, {PRIORITY_CLASS_LABEL: "x"}, "priority_class_immutable"),
        ({}, {SUB_PRIORITY_LABEL: "1"}, "sub_priority_immutable"),
        ({SUB_PRIORITY_LABEL: ""}, {}, None),
        ({SUB_PRIORITY_LABEL: "1"}, {SUB_PRIORITY_LABEL: "01"}, "sub_priority_immutable"),
        ({}, {QOS_LABEL: "LS", PRIORITY_CLASS_LABEL: "koord-mid", SUB_PRIORITY_LABEL: "1"}, "qos_immutable"),
        ({}, {PRIORITY_CLASS_LABEL: "koord-mid", SUB_PRIORITY_LABEL: "1"}, "priority_class_immutable"),
    ],
)
def test_a_living_pod_keeps_its_classes(old: Json, new: Json, want: str | None) -> None:
    assert reason({"labels": new}, old={"labels": old}) == want


def test_priority_may_move_within_its_band_and_not_beyond() -> None:
    assert reason({"priority": 5999}, old={"priority": 5000}) is None
    assert reason({"priority": 9000}, old={"priority": 5000}) == "priority_class_immutable"


def test_the_sub_priority_may_change_where_that_is_asked() -> None:
    old, new = {"labels": {SUB_PRIORITY_LABEL: "1"}}, {"labels": {SUB_PRIORITY_LABEL: "2"}}
    assert reason(new, old, skip_sub_priority_check=True) is None


def test_an_update_needs_the_pod_as_it_was() -> None:
    with pytest.raises(Malformed, match="old_pod"):
        answer(kinds(), "pod_validate", {"operation": "UPDATE", "pod": {}})
    assert reason(pod_of("LS")) is None


def test_what_is_created_has_no_past() -> None:
    question = {"operation": "CREATE", "old_pod": {"labels": {QOS_LABEL: "BE"}}, "pod": pod_of("LS")}
    assert pod_validate(PodValidateQuestion.model_validate(question)).allowed


def test_every_objection_says_what_to_write_instead() -> None:
    written = {
        "batch_needs_be": "qosClass: BE", "qos_priority_forbidden": "want koord-prod", "cpu_request_missing": "such as",
        "cpu_request_not_whole": "write 2", "qos_immutable": "create it anew", "priority_class_immutable": "as they",
        "sub_priority_immutable": "leave it",
    }  # fmt: skip
    bare = PodClaims({})
    found = [
        objection(PodClaims({}, 5000, {CPU: 1})),
        objection(PodClaims({QOS_LABEL: "LSR"})),
        objection(PodClaims({QOS_LABEL: "LSE"})),
        objection(PodClaims({QOS_LABEL: "LSE"}, None, {"cpu": 1100})),
        objection(PodClaims({QOS_LABEL: "LS"}), bare),
        objection(PodClaims({}, 5000), bare),
        objection(PodClaims({SUB_PRIORITY_LABEL: "1"}), bare),
    ]
    said: dict[str, str] = {one.reason: one.message for one in found if one is not None}
    assert said.keys() == written.keys() == set(get_args(Reason))
    for name, words in written.items():
        assert words in said[name]


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", CPU]), st.integers(0, 3000))


@given(st.lists(AMOUNTS, max_size=3), st.lists(AMOUNTS, max_size=3), AMOUNTS)
def test_requests_together_are_the_larger_of_sum_and_init(
    init: list[dict[str, int]], containers: list[dict[str, int]], overhead: dict[str, int]
) -> None:
    found = requests_together(init, containers, overhead)
    for name in ("cpu", CPU):
        total = sum(one.get(name, 0) for one in containers)
        largest = max([total, *(one.get(name, 0) for one in init)])
        assert found.get(name, 0) == largest + overhead.get(name, 0)


@given(st.sampled_from([None, *get_args(KoordQos)]), st.none() | st.integers(2000, 10_000), st.integers(0, 4000))
def test_batch_resources_are_never_admitted_for_another_class_than_be(
    qos: str | None, priority: int | None, millis: int
) -> None:
    claims = PodClaims({} if qos is None else {QOS_LABEL: qos}, priority, {CPU: millis, "cpu": 1000})
    found = objection(claims)
    if millis and qos != "BE":
        assert found is not None
        assert found.reason == "batch_needs_be"
