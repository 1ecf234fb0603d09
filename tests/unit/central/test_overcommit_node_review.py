"""The webhook on the status of Nodes: kubelet's figures become originals, nobody else's do, and nobody is refused."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.admission.allowed import read_request
from services.central.core.overcommit.node_review import MAX_NODE_REVIEW_BYTES, node_patch
from services.central.overcommit.answers import NodeStatusAnswers

DOMAIN = "katalyst.kubewharf.io"
OWN = {"cpu": "4", "memory": "8Gi", "pods": "110"}
TWICE = {"cpu": "8", "memory": "8Gi", "pods": "110"}
RATIO = {f"{DOMAIN}/cpu_overcommit_ratio": "2"}
GIB8 = str(8 << 30)
ORIGINALS = {
    f"{DOMAIN}/original_allocatable_cpu": "4",
    f"{DOMAIN}/original_capacity_cpu": "4",
    f"{DOMAIN}/original_allocatable_memory": GIB8,
    f"{DOMAIN}/original_capacity_memory": GIB8,
}
KUBELET = "system:node:n"


def node(amounts: dict[str, str], annotations: dict[str, str]) -> dict[str, Any]:
    status = {"allocatable": dict(amounts), "capacity": dict(amounts)}
    return {"metadata": {"name": "n", "annotations": dict(annotations)}, "status": status}


def review(new: Any, old: Any = None, user: Any = KUBELET, **more: Any) -> dict[str, Any]:
    request = {"uid": "u", "operation": "UPDATE", "subResource": "status", "userInfo": {"username": user}}
    return {"kind": "AdmissionReview", "request": {**request, "object": new, "oldObject": old, **more}}


def after(new: Any, old: Any = None, user: Any = KUBELET, **more: Any) -> dict[str, Any]:
    """The Node as it is stored."""
    patch, _ = node_patch(read_request(json.dumps(review(new, old, user, **more)).encode(), MAX_NODE_REVIEW_BYTES))
    stored = json.loads(json.dumps(new))
    for operation in patch:
        *path, last = [part.replace("~1", "/") for part in operation["path"].split("/")[1:]]
        place = stored
        for part in path:
            place = place[part]
        assert operation["op"] == "add" or last in place
        place[last] = operation["value"]
    return dict(stored)


def test_kubelets_figures_are_kept_and_amplified() -> None:
    assert after(node(OWN, RATIO)) == node(TWICE, RATIO | ORIGINALS)


def test_a_node_that_is_not_overcommitted_is_left_alone() -> None:
    plain = node(OWN, {"other": "annotation"})
    assert after(plain) == plain
    del plain["metadata"]["annotations"]
    assert after(plain) == plain


@pytest.mark.parametrize("user", ["system:node:m", "system:serviceaccount:x:y", "", None, 7])
def test_what_anybody_else_sends_back_never_becomes_an_original(user: Any) -> None:
    there = node(TWICE, RATIO | ORIGINALS)
    assert after(there, there, user) == there
    assert after(node({**TWICE, "cpu": "64"}, RATIO | ORIGINALS), there, user) == there
    first = node({**OWN, "cpu": "64"}, RATIO)
    assert after(first, node(OWN, RATIO), user) == first


def test_kubelet_that_sent_no_amounts_does_not_double_them() -> None:
    """Its patch has only what it believes to have changed: the rest of the object is what the API server had."""
    there = node(TWICE, RATIO | ORIGINALS)
    assert after(there, there) == there


def test_new_figures_of_kubelet_take_the_place_of_those_that_were_made_of_old_ones() -> None:
    figures = {f"{DOMAIN}/overcommit_{field}_cpu": "7" for field in ("allocatable", "capacity")}
    there = node({**TWICE, "cpu": "7"}, RATIO | ORIGINALS | figures)
    assert after(node(OWN, RATIO | ORIGINALS | figures), there)["status"]["allocatable"]["cpu"] == "7"
    stored = after(node({**OWN, "cpu": "2"}, RATIO | ORIGINALS | figures), there)
    assert stored["status"]["allocatable"]["cpu"] == "4"
    assert stored["metadata"]["annotations"][f"{DOMAIN}/original_capacity_cpu"] == "2"


def test_without_a_ratio_kubelets_figures_come_back() -> None:
    there = node(TWICE, ORIGINALS)
    assert after(node(OWN, ORIGINALS), there) == node(OWN, ORIGINALS)
    assert after(node(OWN, ORIGINALS), there, "somebody") == node(OWN, ORIGINALS)


def test_who_changes_no_figure_changes_none() -> None:
    """An agent writes what it offers at once, whatever has just become due of the Node's CPU."""
    there = node(OWN, RATIO | ORIGINALS)
    assert after(there, there, "agent") == there
    assert after(node({**OWN, "cpu": "3"}, RATIO | ORIGINALS), there, "other") == node(TWICE, RATIO | ORIGINALS)


@pytest.mark.parametrize(
    "more", [{"operation": "CREATE"}, {"subResource": ""}, {"subResource": None}, {"object": None}]
)
def test_nothing_but_an_update_of_a_status_is_changed(more: dict[str, Any]) -> None:
    asked = json.dumps(review(node(OWN, RATIO), **more)).encode()
    assert node_patch(read_request(asked, MAX_NODE_REVIEW_BYTES)) == ([], "not_overcommitted")


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["1e99", "4", "-1", "nan", "8Gi"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["cpu", "memory", "x"]), inner),
    max_leaves=8,
)


@given(junk, junk, junk, st.sampled_from([*RATIO, *ORIGINALS]), st.text(max_size=70))
def test_whatever_a_node_holds_it_is_answered_and_admitted(a: Any, b: Any, old: Any, key: str, value: str) -> None:
    new = {"metadata": {"name": "n", "annotations": {**RATIO, key: value}}, "status": {"allocatable": a, "capacity": b}}
    asked = json.dumps(review(new, old)).encode()
    reply = NodeStatusAnswers(_Clock()).answer(asked)  # type: ignore[arg-type]
    assert reply.status == 200
    response = json.loads(reply.body)["response"]
    assert response["allowed"] is True
    for operation in json.loads(base64.b64decode(response.get("patch", "W10="))):
        assert operation["op"] in ("add", "replace")


class _Clock:
    def monotonic(self) -> float:
        return 0.0


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"kind":"AdmissionReview"}', b"x" * (MAX_NODE_REVIEW_BYTES + 1)])
def test_what_is_no_review_is_a_bad_request(text: bytes) -> None:
    assert NodeStatusAnswers(_Clock()).answer(text).status == 400  # type: ignore[arg-type]
