"""The extender's answers on the wire: the form of the request comes back, and nobody is refused for being unknown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.scheduling.extender_reply import (
    ExtenderRequest,
    NodeStanding,
    filter_reply,
    points,
    prioritize_reply,
)

POD = {"metadata": {"name": "w"}}
NODES = {"items": [{"metadata": {"name": "a"}, "spec": None}, {"metadata": {"name": "b"}}, {}]}
VERDICTS = {
    "a": NodeStanding(False, "hot"),
    "b": NodeStanding(True),
    "c": NodeStanding(False, "taint", unresolvable=True),
}
KEYS = st.sampled_from(["Pod", "nodes", "NODENAMES", "items", "x"])
JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)


def test_names_come_back_as_names_in_their_order() -> None:
    request = ExtenderRequest.read({"Pod": POD, "NodeNames": ["c", "unknown", "b", "a"], "Nodes": None})
    assert filter_reply(request, VERDICTS) == {
        "Nodes": None,
        "NodeNames": ["unknown", "b"],
        "FailedNodes": {"a": "hot"},
        "FailedAndUnresolvableNodes": {"c": "taint"},
        "Error": "",
    }


def test_objects_come_back_as_they_are_also_one_without_a_name() -> None:
    request = ExtenderRequest.read({"POD": POD, "nodes": NODES})
    found = filter_reply(request, VERDICTS)
    assert found["Nodes"] == {"items": NODES["items"][1:]}
    assert found["NodeNames"] is None


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(None, id="nothing"),
        pytest.param([], id="a list"),
        pytest.param({"NodeNames": ["a"]}, id="no pod"),
        pytest.param({"Pod": "w", "NodeNames": ["a"]}, id="a pod that is none"),
        pytest.param({"Pod": POD}, id="no nodes"),
        pytest.param({"Pod": POD, "NodeNames": None, "Nodes": None}, id="null"),
        pytest.param({"Pod": POD, "NodeNames": ["a", 5]}, id="a name that is none"),
        pytest.param({"Pod": POD, "NodeNames": "a"}, id="names that are no list"),
        pytest.param({"Pod": POD, "Nodes": {"items": 5}}, id="items that are no list"),
    ],
)
def test_a_request_that_cannot_be_read_is_answered_as_such(body: object) -> None:
    request = ExtenderRequest.read(body)
    assert filter_reply(request, VERDICTS)["Error"] == "bad_request"
    assert prioritize_reply(request, {"a": 50}) == []


def test_no_candidates_are_no_error() -> None:
    assert filter_reply(ExtenderRequest.read({"Pod": POD, "NodeNames": []}), {})["NodeNames"] == []
    assert filter_reply(ExtenderRequest.read({"Pod": POD, "Nodes": {"items": None}}), {})["Nodes"] == {"items": []}


def test_scores_become_points_and_an_unknown_node_has_none() -> None:
    request = ExtenderRequest.read({"pod": POD, "nodenames": ["b", "a", "x"]})
    assert prioritize_reply(request, {"a": 99, "b": 100}) == [
        {"Host": "b", "Score": 10},
        {"Host": "a", "Score": 9},
        {"Host": "x", "Score": 0},
    ]
    assert [points(score) for score in (-5, 9, 1000)] == [0, 0, 10]


@given(JSON)
def test_law_no_body_raises_and_every_node_is_answered_once(body: object) -> None:
    request = ExtenderRequest.read(body)
    reply = filter_reply(request, VERDICTS)
    if request is not None:
        stay = reply["NodeNames"] if request.objects is None else reply["Nodes"]["items"]
        refused = set(reply["FailedNodes"]) | set(reply["FailedAndUnresolvableNodes"])
        assert len(stay) + sum(name in refused for name in request.names) == len(request.names)
    assert [row["Host"] for row in prioritize_reply(request, {})] == list(request.names if request else ())
