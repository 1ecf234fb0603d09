"""A patch merged into a Pod: what the API server makes of it, and what is refused."""

from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.profiles.strategic_merge import merge_pod
from shared.errors import Refused

Json = dict[str, Any]


def containers(*names: str) -> Json:
    return {"spec": {"containers": [{"name": name} for name in names]}}


@pytest.mark.parametrize(
    ("pod", "patch", "want"),
    [
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}, id="maps are merged"),
        pytest.param({"a": 1, "b": 2}, {"a": None, "c": None}, {"b": 2}, id="null removes"),
        pytest.param({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}, id="null in what is new is not there"),
        pytest.param({"a": 1}, {"a": {"b": 1}}, {"a": {"b": 1}}, id="another kind of value"),
        pytest.param({"a": {"b": 1}}, {"a": {}}, {"a": {"b": 1}}, id="an empty map says nothing"),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "replace", "c": 1}}, {"a": {"c": 1}}, id="replace a map"),
        pytest.param({"a": {"b": 1}}, {"a": {"$patch": "delete"}}, {"a": {}}, id="delete a map"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"$retainKeys": ["c", "d"], "d": 4}}, {"a": {"c": 2, "d": 4}},
                     id="retain keys"),
        pytest.param({"spec": {"tolerations": [{"key": "a"}]}}, {"spec": {"tolerations": [{"key": "b"}]}},
                     {"spec": {"tolerations": [{"key": "b"}]}}, id="a list without a key is replaced"),
        pytest.param({"metadata": {"finalizers": ["a", "b"]}}, {"metadata": {"finalizers": ["c", "b"]}},
                     {"metadata": {"finalizers": ["a", "b", "c"]}}, id="finalizers are added"),
        pytest.param({"metadata": {"finalizers": ["a", "b"]}},
                     {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "x"]}},
                     {"metadata": {"finalizers": ["b"]}}, id="a finalizer is removed"),
        pytest.param({}, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}, {"metadata": {}},
                     id="none to remove"),
        # lists whose elements have a key
        pytest.param(containers("a", "b"), containers("b"), containers("a", "b"), id="nothing new"),
        pytest.param(containers("a", "b"), containers("c"), containers("c", "a", "b"), id="new ones stand in front"),
        pytest.param(containers("a", "b", "c"), containers("c", "a"), containers("b", "c", "a"),
                     id="the order of the patch"),
        pytest.param(containers("a", "b"), containers("b", "n"), containers("a", "b", "n"), id="behind its neighbour"),
        pytest.param(containers("a"), {"spec": {"containers": [{"name": "a", "image": "i", "tty": None}]}},
                     {"spec": {"containers": [{"name": "a", "image": "i"}]}}, id="elements are merged"),
        pytest.param(containers("a", "b"), {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}},
                     containers("b"), id="an element is deleted"),
        pytest.param(containers("a"), {"spec": {"containers": [{"name": "x", "$patch": "delete"}]}},
                     containers("a"), id="one that is not there"),
        pytest.param(containers("a", "b"), {"spec": {"containers": [{"$patch": "replace"}, {"name": "n"}]}},
                     containers("n"), id="the list is replaced"),
        pytest.param(containers("a", "b"), {"spec": {"$setElementOrder/containers": [{"name": "b"}]}},
                     containers("a", "b"), id="an order is left out"),
        pytest.param(
            {"spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}], "args": ["1", "2"]}]}},
            {"spec": {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}], "args": ["3"]}]}},
            {"spec": {"containers": [{"name": "a", "args": ["3"], "env": [{"name": "Y", "value": "2"},
                                                                         {"name": "X", "value": "1"}]}]}},
            id="lists of an element",
        ),
        pytest.param({"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "w"}]}]}},
                     {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80, "protocol": "UDP"}]}]}},
                     {"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "w",
                                                                       "protocol": "UDP"}]}]}}, id="a number as key"),
        pytest.param({"spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1},
                                                             {"topologyKey": "zone", "maxSkew": 2}]}},
                     {"spec": {"topologySpreadConstraints": [{"topologyKey": "host"}]}},
                     {"spec": {"topologySpreadConstraints": [{"topologyKey": "host"},
                                                             {"topologyKey": "zone", "maxSkew": 1},
                                                             {"topologyKey": "zone", "maxSkew": 2}]}},
                     id="two of one key stay two"),
        pytest.param({"spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1},
                                                             {"topologyKey": "zone", "maxSkew": 2}]}},
                     {"spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "minDomains": 3}]}},
                     {"spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1, "minDomains": 3},
                                                             {"topologyKey": "zone", "maxSkew": 2}]}},
                     id="the first of one key is merged"),
        pytest.param({"spec": {"topologySpreadConstraints": [{"topologyKey": "zone"}, {"topologyKey": "zone"}]}},
                     {"spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "$patch": "delete"}]}},
                     {"spec": {"topologySpreadConstraints": []}}, id="all of one key are deleted"),
    ],
)  # fmt: skip
def test_a_patch_is_merged_as_the_api_server_does(pod: Json, patch: Json, want: Json) -> None:
    before = deepcopy((pod, patch))
    assert merge_pod(pod, patch) == want
    assert (pod, patch) == before


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ({"$patch": "merge"}, "patch, the whole"),
        ({"spec": {"$patch": 1}}, "spec"),
        ({"spec": {"containers": [{"image": "x"}]}}, "has no name"),
        ({"spec": {"containers": ["x"]}}, "has no name"),
        ({"spec": {"containers": [{"name": ["x"]}]}}, "has no name"),
        ({"spec": {"containers": [{"name": "a", "$patch": "merge"}]}}, "replace or delete"),
        ({"spec": {"$retainKeys": "a"}}, "want a list"),
        ({"metadata": {"finalizers": [{"a": 1}]}}, "metadata.finalizers: want a list of texts"),
        ({"spec": {"$deleteFromPrimitiveList/containers": "a"}}, "want a list"),
    ],
)
def test_what_is_no_patch_is_refused_with_its_place(patch: Json, said: str) -> None:
    with pytest.raises(Refused, match=said.replace("$", r"\$")) as refused:
        merge_pod({"metadata": {"finalizers": []}, **containers("a")}, patch)
    assert refused.value.reason == "patch"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b", "$patch", "replace"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["a", "name", "spec", "metadata", "containers", "finalizers", "$patch", "$retainKeys",
                         "$deleteFromPrimitiveList/finalizers"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
DOCUMENTS = st.dictionaries(st.sampled_from(["spec", "metadata"]), JSON, max_size=2)


@given(DOCUMENTS, DOCUMENTS)
def test_a_patch_is_merged_or_refused_and_a_second_time_changes_nothing(pod: Json, patch: Json) -> None:
    with suppress(Refused):
        once = merge_pod(pod, patch)
        assert merge_pod(once, patch) == once


@given(DOCUMENTS)
def test_no_directive_gets_into_a_pod(patch: Json) -> None:
    with suppress(Refused):
        assert not directives(merge_pod(containers("a"), patch))


def directives(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [key for key in value if key.startswith("$")] + [
            name for one in value.values() for name in directives(one)
        ]
    return [name for one in value for name in directives(one)] if isinstance(value, list) else []
