"""The QoS class of a pod, and everything else its annotations say: tables of the rules, and laws."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from present import present

from shared.contracts.pod import QosClass
from shared.core.pods.qos import QOS_LEVEL, qos_class
from shared.core.pods.qos_annotations import oom_priority
from shared.errors import Refused
from shared.whatif.pod_qos import PodQosQuestion, pod_qos

K = "katalyst.kubewharf.io/"
CPU, MEMORY, NETWORK = f"{K}cpu_enhancement", f"{K}memory_enhancement", f"{K}network_enhancement"
DEDICATED, RECLAIMED = {QOS_LEVEL: "dedicated_cores"}, {QOS_LEVEL: "reclaimed_cores"}
BOUND = DEDICATED | {f"{K}numa_bind_result": "0"}
LEGACY: dict[QosClass, dict[str, str]] = {
    "dedicated_cores": {"legacy": "lse", "tier": "gold"},
    "shared_cores": {"legacy": "ls"},
}


def ask(annotations: dict[str, str], **more: Any) -> dict[str, Any]:
    question = PodQosQuestion.model_validate_json(json.dumps({"annotations": annotations} | more))
    return pod_qos(question).model_dump()


def cpu(annotations: dict[str, str] | None = None, /, **values: Any) -> dict[str, str]:
    return (annotations or {}) | {CPU: json.dumps(values)}


def memory(annotations: dict[str, str] | None = None, **values: Any) -> dict[str, str]:
    return (annotations or {}) | {MEMORY: json.dumps(values)}


@pytest.mark.parametrize(
    ("annotations", "selectors", "want"),
    [
        pytest.param({}, {}, "shared_cores", id="absent"),
        *(pytest.param({QOS_LEVEL: level}, {}, level, id=level) for level in get_args(QosClass)),
        pytest.param({QOS_LEVEL: ""}, {}, "unknown_level", id="empty"),
        pytest.param({QOS_LEVEL: "Shared_Cores"}, {}, "unknown_level", id="other case"),
        pytest.param({QOS_LEVEL: "shared_cores "}, {}, "unknown_level", id="a blank"),
        pytest.param({"legacy": "lse"}, LEGACY, "dedicated_cores", id="named by a selector alone"),
        pytest.param(DEDICATED | {"legacy": "lse"}, LEGACY, "dedicated_cores", id="named twice alike"),
        pytest.param({"legacy": "lse", "tier": "gold"}, LEGACY, "dedicated_cores", id="both keys of one selector"),
        pytest.param({"legacy": "lse", "tier": "iron"}, LEGACY, "conflict", id="keys of one selector disagree"),
        pytest.param({"legacy": "ls", "tier": "gold"}, LEGACY, "conflict", id="two selectors touch"),
        pytest.param(
            {"a": "1", "b": "2"},
            {"shared_cores": {"a": "1"}, "reclaimed_cores": {"b": "2"}},
            "conflict",
            id="two selectors match",
        ),
        pytest.param(RECLAIMED | {"legacy": "lse"}, LEGACY, "conflict", id="level against another's selector"),
        pytest.param(DEDICATED | {"tier": "iron"}, LEGACY, "conflict", id="level against its own selector"),
        pytest.param(RECLAIMED | {"tier": "iron"}, LEGACY, "reclaimed_cores", id="a mismatch alone names nothing"),
        pytest.param({"tier": "iron"}, LEGACY, "shared_cores", id="a mismatch of another class leaves the default"),
        pytest.param({"legacy": "be"}, LEGACY, "unknown_level", id="a mismatch of the default class denies it"),
        pytest.param({QOS_LEVEL: "LS"}, {"shared_cores": {QOS_LEVEL: "LS"}}, "shared_cores", id="the key itself"),
    ],
)
def test_the_class_follows_from_all_annotations_together(
    annotations: dict[str, str], selectors: dict[QosClass, dict[str, str]], want: str
) -> None:
    answer = ask(annotations, expanded_selectors=selectors)
    if want in get_args(QosClass):
        assert qos_class(annotations, selectors) == want == answer["qos_level"]
        return
    with pytest.raises(Refused) as refusal:
        qos_class(annotations, selectors)
    assert refusal.value.reason == want
    assert answer["qos_level"] is None
    assert answer["errors"] == {"qos_level": want}


def test_an_unknown_class_is_named_with_those_that_are_known() -> None:
    with pytest.raises(Refused, match=r"'best_effort'.*shared_cores.*reclaimed_cores"):
        qos_class({QOS_LEVEL: "best_effort"})


@given(st.permutations(list(LEGACY)), st.permutations([QOS_LEVEL, "legacy", "tier"]), st.data())
def test_the_class_never_depends_on_the_order_of_anything(
    levels: list[QosClass], keys: list[str], data: st.DataObject
) -> None:
    values = {QOS_LEVEL: ["dedicated_cores", "shared_cores", "x"], "legacy": ["ls", "lse", "x"], "tier": ["gold", "x"]}
    annotations = {key: data.draw(st.sampled_from(values[key])) for key in keys if data.draw(st.booleans())}

    def outcome(annotations: dict[str, str], selectors: dict[QosClass, dict[str, str]]) -> str:
        try:
            return qos_class(annotations, selectors)
        except Refused as refusal:
            return refusal.reason

    first = outcome(dict(sorted(annotations.items())), LEGACY)
    assert outcome(annotations, {level: LEGACY[level] for level in levels}) == first


@pytest.mark.parametrize(
    ("annotations", "field", "want"),
    [
        # booleans: the string "true" only
        pytest.param(memory(numa_binding="true"), "numa_binding", True, id="binding"),
        pytest.param(memory(numa_binding="True"), "numa_binding", False, id="binding in other case"),
        pytest.param({}, "numa_binding", False, id="no binding"),
        pytest.param(cpu(numa_binding="true"), "numa_binding", False, id="binding in the wrong annotation"),
        pytest.param(memory(BOUND, numa_binding="true", numa_exclusive="true"), "numa_exclusive", True, id="exclusive"),
        pytest.param(memory(DEDICATED, numa_exclusive="true"), "numa_exclusive", False, id="exclusive without binding"),
        pytest.param(memory(numa_binding="true", numa_exclusive="true"), "numa_exclusive", False,
                     id="exclusive on shared"),
        # the rest of cpu_enhancement
        pytest.param(cpu(cpuset_pool="batch"), "cpuset_pool", "batch", id="pool"),
        pytest.param({}, "cpuset_pool", None, id="no pool"),
        pytest.param(cpu(cpu_burst_policy="static"), "cpu_burst_policy", "static", id="burst policy"),
        pytest.param(cpu(cpu_burst_policy="wild"), "cpu_burst_policy", None, id="unknown burst policy"),
        pytest.param({}, "cpu_burst_policy", None, id="no burst policy"),
        pytest.param(RECLAIMED, "cpu_burst_policy", "closed", id="burst of reclaimed, not said"),
        pytest.param(cpu(RECLAIMED, cpu_burst_policy="dynamic"), "cpu_burst_policy", "closed", id="burst of reclaimed"),
        pytest.param(cpu(cpu_burst_percent="50"), "cpu_burst_percent", 50.0, id="burst percent"),
        pytest.param(cpu(cpu_burst_percent="150"), "cpu_burst_percent", 100.0, id="burst percent above 100"),
        pytest.param(cpu(RECLAIMED, suppression_tolerance_rate="0.5"), "suppression_tolerance_ratio", 0.5,
                     id="tolerance"),
        pytest.param(RECLAIMED, "suppression_tolerance_ratio", None, id="no tolerance"),
        # NUMA nodes, inside the enhancement or on their own
        pytest.param(cpu(**{f"{K}numa_ids": "0,2-3"}), "numa_ids", [0, 2, 3], id="ids inside"),
        pytest.param({f"{K}numa_ids": "2,0"}, "numa_ids", [0, 2], id="ids of their own"),
        pytest.param({f"{K}numa_ids": ""}, "numa_ids", [], id="no ids"),
        pytest.param(cpu(**{f"{K}numa_number": "2"}), "numa_number", 2, id="number inside"),
        pytest.param({f"{K}numa_number": "1"}, "numa_number", 1, id="number of its own"),
        pytest.param({f"{K}numa_number": ""}, "numa_number", 0, id="no number"),
        pytest.param({f"{K}numa_bind_result": "1"}, "numa_bind_result", 1, id="bind result"),
        pytest.param({}, "numa_bind_result", None, id="no bind result"),
        # memory and network
        pytest.param(memory(rss_overuse_threshold="0.8"), "rss_overuse_threshold_ratio", 0.8, id="rss threshold"),
        pytest.param(memory(rss_overuse_threshold="1.5"), "rss_overuse_threshold_ratio", 1.5, id="rss above 1"),
        pytest.param({f"{K}net_class_id": "7"}, "net_class_id", 7, id="net class"),
        pytest.param({f"{K}net_class_id": "-7"}, "net_class_id", None, id="net class below 0"),
        pytest.param({f"{K}net_class_id": "seven"}, "net_class_id", None, id="net class in words"),
        pytest.param({f"{K}net_class_id": str(2**32)}, "net_class_id", None, id="net class above 32 bits"),
        pytest.param({NETWORK: '{"namespace_type": "host_ns"}'} | cpu(a="b"), "enhancements",
                     {"a": "b", "namespace_type": "host_ns"}, id="enhancements are one flat map"),
    ],
)  # fmt: skip
def test_a_usable_value_is_read(annotations: dict[str, str], field: str, want: object) -> None:
    answer = ask(annotations, machine_numas=[0, 1, 2, 3])
    assert answer[field] == want
    assert answer["errors"] == {}


@pytest.mark.parametrize(
    ("annotations", "field", "code"),
    [
        *(pytest.param(cpu(cpu_burst_percent=text), "cpu_burst_percent", "invalid", id=f"burst {text!r}")
          for text in ("", "x", "1_0", " 5", "nan", "inf", "-1", "1e9999", "0x10")),
        *(pytest.param(cpu(RECLAIMED, suppression_tolerance_rate=text), "suppression_tolerance_ratio", "invalid",
                       id=f"tolerance {text!r}") for text in ("", "half", "-0.5")),
        pytest.param(cpu(suppression_tolerance_rate="0.5"), "suppression_tolerance_ratio", "not_reclaimed_cores",
                     id="tolerance of a shared pod"),
        *(pytest.param(memory(rss_overuse_threshold=text), "rss_overuse_threshold_ratio", "invalid",
                       id=f"rss {text!r}") for text in ("0", "-1", "x")),
        *(pytest.param({f"{K}numa_ids": text}, "numa_ids", "invalid", id=f"ids {text!r}")
          for text in ("a", "0,,1", "0-", "3-1", "0 1", "-1", "999999")),
        pytest.param({f"{K}numa_ids": "0,4"}, "numa_ids", "not_on_machine", id="ids of another machine"),
        *(pytest.param({f"{K}numa_number": text}, "numa_number", "invalid", id=f"number {text!r}")
          for text in ("x", "-1", "1.5", "5")),
        *(pytest.param({f"{K}numa_bind_result": text}, "numa_bind_result", "invalid", id=f"bound to {text!r}")
          for text in ("", "x", "0,1", "-1")),
        pytest.param(memory(DEDICATED, numa_binding="true"), "numa_bind_result", "missing", id="bound to nothing yet"),
        pytest.param({CPU: "{"}, "cpu_enhancement", "invalid_json", id="broken cpu"),
        pytest.param({MEMORY: ""}, "memory_enhancement", "invalid_json", id="empty memory"),
        pytest.param({NETWORK: "[]"}, "network_enhancement", "invalid_json", id="a list for network"),
        pytest.param({CPU: '{"a": NaN}'}, "cpu_enhancement", "invalid_json", id="NaN is no JSON"),
        pytest.param({CPU: '{"cpuset_pool": 1}'}, "cpu_enhancement", "not_a_string", id="a number"),
        pytest.param({MEMORY: '{"numa_binding": true}'}, "memory_enhancement", "not_a_string", id="a boolean"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_used_gets_its_code_and_counts_as_not_said(
    annotations: dict[str, str], field: str, code: str
) -> None:
    answer = ask(annotations, machine_numas=[0, 1, 2, 3])
    assert answer["errors"] == {field: code}
    assert not answer.get(field)


@pytest.mark.parametrize(
    ("wish", "requested", "priority", "errors"),
    [
        pytest.param("5", 5, 5, {}, id="inside"),
        pytest.param("+5", 5, 5, {}, id="with a sign"),
        pytest.param("-300", -300, 0, {}, id="below"),
        pytest.param("100", 100, 99, {}, id="above"),
        pytest.param("300", 300, 300, {}, id="the last one"),
        pytest.param("1.5", None, 0, {"oom_priority_requested": "invalid"}, id="not an integer"),
    ],
)
def test_the_oom_priority_is_the_wish_inside_the_range_of_the_class(
    wish: str, requested: int | None, priority: int, errors: dict[str, str]
) -> None:
    answer = ask(memory(oom_priority=wish))
    assert (answer["oom_priority_requested"], answer["oom_priority"], answer["errors"]) == (requested, priority, errors)


@given(st.sampled_from(get_args(QosClass)), st.none() | st.integers(-1000, 1000).filter(lambda n: n != 300))
def test_a_higher_class_is_always_killed_later(level: QosClass, wish: int | None) -> None:
    order: list[QosClass] = ["reclaimed_cores", "shared_cores", "dedicated_cores", "system_cores"]
    priority = oom_priority(level, wish)
    assert priority is not None
    assert all(priority < present(oom_priority(above, None)) for above in order[order.index(level) + 1 :])
    assert oom_priority(None, wish) is None


def test_neighbours_of_a_lost_value_stay() -> None:
    answer = ask({CPU: '{"cpuset_pool": "batch", "cpu_burst_percent": 5}', MEMORY: "{"})
    assert answer["cpuset_pool"] == "batch"
    assert answer["errors"] == {"cpu_enhancement": "not_a_string", "memory_enhancement": "invalid_json"}


def test_the_standard_enhancement_key_wins_over_the_one_that_stands_for_it() -> None:
    other, standard = {"corp/cpu": '{"cpuset_pool": "other"}'}, cpu(cpuset_pool="standard")
    keys = {CPU: "corp/cpu"}
    assert ask(other, expanded_enhancement_keys=keys)["cpuset_pool"] == "other"
    assert ask(other | standard, expanded_enhancement_keys=keys)["cpuset_pool"] == "standard"
    assert ask(other)["cpuset_pool"] is None


def test_without_a_known_machine_no_numa_node_is_too_many() -> None:
    answer = ask({f"{K}numa_ids": "0-7", f"{K}numa_number": "8"})
    assert (answer["numa_ids"], answer["numa_number"], answer["errors"]) == (list(range(8)), 8, {})


def test_a_pod_without_a_usable_class_is_still_read() -> None:
    answer = ask(cpu({QOS_LEVEL: "x"}, cpu_burst_percent="20"))
    assert (answer["cpu_burst_percent"], answer["oom_priority"]) == (20.0, None)


KEYS = [QOS_LEVEL, CPU, MEMORY, NETWORK, f"{K}numa_ids", f"{K}numa_number", f"{K}numa_bind_result", f"{K}net_class_id"]
VALUES = st.text(max_size=6) | st.sampled_from(["true", "0-3", "300", "{}", '{"oom_priority": "1"}', "1e400"])
FIELDS = ["cpu_burst_percent", "suppression_tolerance_rate", "rss_overuse_threshold", "oom_priority", "numa_binding"]


@given(
    st.dictionaries(st.sampled_from(KEYS), VALUES | st.dictionaries(st.sampled_from(FIELDS), VALUES).map(json.dumps)),
    st.none() | st.lists(st.integers(0, 8), max_size=4),
)
def test_no_annotation_breaks_the_reading_and_a_field_with_an_error_says_nothing(
    annotations: dict[str, str], numas: list[int] | None
) -> None:
    answer = ask(annotations, machine_numas=numas)
    assert all(not answer.get(field) for field in answer["errors"])
    json.dumps(answer, allow_nan=False)
