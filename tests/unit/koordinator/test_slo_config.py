"""Koordinator's ConfigMap: what each key may say, what is named when it may not, and what holds on a node."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.slo.config_map import MAX_NAMED, MAX_NODE_STRATEGIES, read_slo_config
from services.central.core.slo.effective import effective_slo
from services.central.core.slo.keys import SHAPES, SLO_KEYS, SloKey
from services.central.core.slo.label_selector import read_label_selector
from services.central.core.slo.overlay import leaves, overlay
from shared.errors import Refused

THRESHOLD: SloKey = "resource-threshold-config"
HOT = {"matchLabels": {"pool": "hot"}}
COLD = {"matchLabels": {"pool": "cold"}}


def cm(key: SloKey = THRESHOLD, **document: Any) -> dict[str, str]:
    return {key: json.dumps(document)}


def entry(selector: Any = HOT, name: str = "hot", **strategy: Any) -> dict[str, Any]:
    return {"name": name, "nodeSelector": selector, **strategy}


def holds(data: dict[str, str], key: SloKey = THRESHOLD, **labels: str) -> Any:
    return effective_slo(read_slo_config(data).config, labels)[key].strategy


def problems(data: dict[str, str]) -> list[str]:
    return [str(problem) for problem in read_slo_config(data).problems]


def test_there_are_eight_keys_and_what_is_built_in_fits_its_model() -> None:
    assert len(SLO_KEYS) == 8
    for shape in SHAPES.values():
        assert shape.model.model_validate(dict(shape.built_in)).model_extra == {}


def test_without_a_config_map_what_is_built_in_holds() -> None:
    assert all(holds({}, key) == SHAPES[key].built_in for key in SLO_KEYS)
    assert holds({})["cpuSuppressThresholdPercent"] == 65


def test_the_cluster_goes_over_what_is_built_in_and_the_first_match_over_both() -> None:
    hot = entry(cpuSuppressThresholdPercent=50)
    data = cm(clusterStrategy={"enable": True, "memoryEvictThresholdPercent": 80}, nodeStrategies=[hot])
    wanted = {
        "enable": True,
        "cpuSuppressPolicy": "cpuset",
        "cpuSuppressThresholdPercent": 65,
        "memoryEvictThresholdPercent": 80,
    }
    assert holds(data) == wanted
    assert holds(data, pool="hot") == wanted | {"cpuSuppressThresholdPercent": 50}
    found = effective_slo(read_slo_config(data).config, {"pool": "hot"})[THRESHOLD]
    assert found.sources == {
        "enable": "cluster",
        "cpuSuppressPolicy": "built-in",
        "cpuSuppressThresholdPercent": "hot",
        "memoryEvictThresholdPercent": "cluster",
    }


def test_objects_are_merged_and_lists_are_not() -> None:
    be: dict[str, Any] = {"beClass": {"memoryQOS": {"wmarkRatio": 90}}}
    found = holds(cm("resource-qos-config", nodeStrategies=[entry(**be)]), "resource-qos-config", pool="hot")
    assert found["beClass"]["memoryQOS"]["wmarkRatio"] == 90
    assert found["beClass"]["memoryQOS"]["wmarkMinAdj"] == 50
    assert found["lsClass"]["memoryQOS"]["wmarkRatio"] == 95
    windows = cm("colocation-config", metricAggregatePolicy={"durations": ["1m"]})
    assert holds(windows, "colocation-config")["metricAggregatePolicy"] == {"durations": ["1m"]}


def test_null_says_nothing() -> None:
    assert overlay({"a": 1, "b": {"c": 2}}, {"a": None, "b": {"c": None}}) == {"a": 1, "b": {"c": 2}}
    assert holds(cm(clusterStrategy={"enable": None}))["enable"] is False
    assert holds(cm(clusterStrategy=None, nodeStrategies=None)) == SHAPES[THRESHOLD].built_in


def test_the_applications_of_some_nodes_stand_instead_of_the_clusters() -> None:
    key: SloKey = "host-application-config"
    nginx, db = {"name": "nginx", "qos": "LS"}, {"name": "db", "qos": "LSR"}
    configs = [entry(applications=[db]), entry(COLD, "cold")]
    data = cm(key, applications=[nginx], nodeConfigs=configs)
    assert holds(data, key)["applications"] == [nginx]
    assert holds(data, key, pool="hot")["applications"] == [db]
    assert holds(data, key, pool="cold")["applications"] == []


@pytest.mark.parametrize(
    ("key", "strategy", "said"),
    [
        (THRESHOLD, {"cpuSuppressThresholdPercent": 101}, "cpuSuppressThresholdPercent = 101: want at most 100"),
        (THRESHOLD, {"cpuSuppressThresholdPercent": -1}, "cpuSuppressThresholdPercent = -1: want at least 0"),
        (THRESHOLD, {"cpuSuppressThresholdPercent": 6.5}, "cpuSuppressThresholdPercent = 6.5: want a whole number"),
        (THRESHOLD, {"cpuSuppressThresholdPercent": "65"}, "'65': want a whole number"),
        (THRESHOLD, {"enable": "true"}, "enable = 'true': want true or false"),
        (THRESHOLD, {"cpuSuppressPolicy": "cfsquota"}, "did you mean 'cfsQuota'"),
        (THRESHOLD, {"memoryEvictLowerPercent": 70}, "(70) below memoryEvictThresholdPercent (70)"),
        (THRESHOLD, {"cpuEvictTimeWindowSeconds": 0}, "want at least 1"),
        (THRESHOLD, {"allocatableEvictPriorityThreshold": 8000}, "want at most 7999"),
        (
            THRESHOLD,
            {"memoryAllocatableEvictThresholdPercent": 90, "memoryAllocatableEvictLowerPercent": 90},
            "want memoryAllocatableEvictLowerPercent (90) below memoryAllocatableEvictThresholdPercent (90)",
        ),
        (
            THRESHOLD,
            {"cpuAllocatableEvictThresholdPercent": 9, "cpuAllocatableEvictLowerPercent": 10},
            "want cpuAllocatableEvictLowerPercent (10) below",
        ),
        (THRESHOLD, {"cpuEvictThresholdPercent": 9, "cpuEvictLowerPercent": 9}, "want cpuEvictLowerPercent (9) below"),
        ("resource-qos-config", {"beClass": {"cpuQOS": {"groupIdentity": 3}}}, "beClass.cpuQOS.groupIdentity = 3"),
        ("resource-qos-config", {"lsClass": {"resctrlQOS": {"catRangeStartPercent": 100}}}, "below catRangeEndPercent"),
        ("resource-qos-config", {"beClass": {"memoryQOS": {"wmarkMinAdj": 51}}}, "want at most 50"),
        ("cpu-burst-config", {"cfsQuotaBurstPercent": 99}, "want at least 100"),
        ("system-config", {"watermarkScaleFactor": 401}, "want at most 400"),
        ("colocation-config", {"resourceDiffThreshold": 0}, "want more than 0"),
        ("colocation-config", {"metricAggregatePolicy": {"durations": ["1m" * 20]}}, "want at most 32 characters"),
        ("colocation-config", {"midReclaimMode": "x" * 254}, "want at most 253 characters"),
        ("colocation-config", {"cpuCalculatePolicy": "peak"}, "want 'usage', 'request' or 'maxUsageRequest'"),
        ("colocation-config", {"metricAggregatePolicy": {"durations": ["5"]}}, "want a duration such as"),
        ("cpu-normalization-config", {"ratioModel": {"x": {"baseRatio": 5.1}}}, "want at most 5"),
        ("resource-amplification-config", {"resourceAmplificationRatio": {"cpu": 0.9}}, "want at least 1"),
        ("host-application-config", {"applications": [{"name": "a", "qos": "BEST"}]}, "applications.0.qos = 'BEST'"),
    ],
)
def test_a_value_out_of_bounds_is_named_and_the_last_good_one_holds(
    key: SloKey, strategy: dict[str, Any], said: str
) -> None:
    shape = SHAPES[key]
    last = read_slo_config(cm(key)).config
    bad = read_slo_config(cm(key, **(strategy if shape.inline else {"clusterStrategy": strategy})), last)
    assert [said in str(problem) for problem in bad.problems] == [True], bad.problems
    assert bad.config == last
    some = read_slo_config(cm(key, **{shape.nodes: [entry(**strategy)]}))
    assert [said in str(problem) for problem in some.problems] == [True], some.problems
    assert f"{shape.nodes}.0" in str(some.problems[0])
    assert effective_slo(some.config, {"pool": "hot"})[key].strategy == shape.built_in


@pytest.mark.parametrize("text", ["{", "[]", "1", '"x"', "NaN", "{" * 5000])
def test_what_is_no_json_object_leaves_the_last_good_key_alone(text: str) -> None:
    last = read_slo_config(cm(clusterStrategy={"enable": True}) | cm("system-config")).config
    found = read_slo_config({THRESHOLD: text, "system-config": "{}"}, last)
    assert found.config[THRESHOLD] == last[THRESHOLD]
    assert len(found.problems) == 1
    assert "the last good one holds" in str(found.problems[0])


def test_a_key_that_is_taken_away_says_nothing_any_more() -> None:
    last = read_slo_config(cm(clusterStrategy={"enable": True})).config
    assert read_slo_config({}, last).config == read_slo_config({THRESHOLD: " "}, last).config == {}


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        (None, "want a mapping"),
        ({}, "takes every node"),
        ({"matchLabels": {}}, "takes every node"),
        ({"matchlabels": {"a": "b"}}, "no such field"),
        ({"matchExpressions": [{"key": "a", "operator": "in", "values": ["b"]}]}, "want 'In', 'NotIn', 'Exists'"),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "want at least one value"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}, "want no values"),
    ],
)
def test_an_entry_whose_selector_cannot_be_used_matches_nothing(selector: Any, said: str) -> None:
    data = cm(nodeStrategies=[entry(selector, enable=True)])
    assert said in problems(data)[0]
    assert holds(data, pool="hot")["enable"] is False


def test_selectors_that_can_take_one_node_are_named_and_the_first_holds() -> None:
    first, second = entry(HOT, "one", enable=True), entry({"matchLabels": {"disk": "ssd"}}, "two", enable=False)
    data = cm(nodeStrategies=[first, second])
    assert "'one' and 'two' can take the same node, where the first holds" in problems(data)[0]
    assert holds(data, pool="hot", disk="ssd")["enable"] is True
    assert problems(cm(nodeStrategies=[first, entry(COLD, "two")])) == []


def test_two_entries_of_one_name_and_one_without_are_named() -> None:
    assert "two are called 'x'" in problems(cm(nodeStrategies=[entry(HOT, "x"), entry(COLD, "x")]))[0]
    assert "nodeStrategies.0.name: want a name" in problems(cm(nodeStrategies=[{"nodeSelector": HOT}]))[0]


def test_a_strategy_of_some_nodes_must_fit_what_it_is_merged_with() -> None:
    data = cm(clusterStrategy={"memoryEvictThresholdPercent": 60}, nodeStrategies=[entry(memoryEvictLowerPercent=65)])
    assert "want memoryEvictLowerPercent (65) below memoryEvictThresholdPercent (60)" in problems(data)[0]
    assert "memoryEvictLowerPercent" not in holds(data, pool="hot")


def test_fields_and_keys_that_nobody_knows_are_named_and_bounded() -> None:
    strategy = {"cpuSuppressThreshold": 1} | {f"x{n}": 1 for n in range(50)}
    found = read_slo_config(cm(clusterStrategy=strategy) | {"system-confg": "{}"})
    assert found.problems == ()
    assert "cpuSuppressThreshold" in found.unknown[0]
    assert len(found.unknown) == MAX_NAMED + 1
    assert found.unknown[-1] == "and 32 more"
    assert read_slo_config({"system-confg": "{}"}).unknown[0].endswith("did you mean 'system-config'?")


def test_too_many_entries_are_no_entries() -> None:
    data = cm(nodeStrategies=[entry(enable=True)] * (MAX_NODE_STRATEGIES + 1))
    assert f"at most {MAX_NODE_STRATEGIES}" in problems(data)[0]
    assert holds(data, pool="hot")["enable"] is False


@pytest.mark.parametrize(
    ("expression", "labels", "takes"),
    [
        ({"operator": "In", "values": ["a", "b"]}, {"k": "b"}, True),
        ({"operator": "In", "values": ["a", "b"]}, {}, False),
        ({"operator": "NotIn", "values": ["a"]}, {}, True),
        ({"operator": "NotIn", "values": ["a"]}, {"k": "a"}, False),
        ({"operator": "Exists"}, {"k": ""}, True),
        ({"operator": "DoesNotExist"}, {"k": ""}, False),
    ],
)
def test_expressions_of_a_selector(expression: dict[str, Any], labels: dict[str, str], takes: bool) -> None:
    selector = read_label_selector({"matchExpressions": [{"key": "k", **expression}]})
    assert selector.matches(labels) is takes


def test_a_selector_has_bounds() -> None:
    with pytest.raises(Refused, match="at most"):
        read_label_selector({"matchLabels": {str(n): "x" for n in range(1000)}})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)
objects = st.dictionaries(st.text(max_size=2), json_values, max_size=4)


@given(objects, objects)
def test_what_the_upper_one_says_holds_and_the_rest_stays(lower: dict[str, Any], upper: dict[str, Any]) -> None:
    merged = overlay(lower, upper)
    for name, value in upper.items():
        if value is not None and not isinstance(value, dict):
            assert merged[name] == value
    assert all(merged[name] == value for name, value in lower.items() if name not in upper)
    assert overlay(merged, upper) == merged
    assert len(list(leaves(merged))) <= len(list(leaves(lower))) + len(list(leaves(upper)))
