"""Config objects as people write them: every one is read or refused in words, and none stops central."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.rollout.config_documents import kcc_of, target_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("config", "priority", "nodeLabelSelector", "ephemeralSelector", "updateStrategy", "paused", "targetType",
          "nodeLabelSelectorAllowedKeyList", "nodeLabelSelectorKey")  # fmt: skip


def document(spec: object) -> dict[str, Any]:
    return {"metadata": {"namespace": "default", "name": "x", "uid": "u", "generation": 3}, "spec": spec}


@given(st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON)
def test_whatever_is_written_central_lives(
    spec: object,
) -> None:
    seen, kcc = target_of(document(spec)), kcc_of(document(spec))
    assert seen.target.key == kcc.kcc.name == "default/x"
    assert seen.target.generation == kcc.generation == 3


@pytest.mark.parametrize(
    "spec",
    [
        {"ephemeralSelector": "n1"},
        {"ephemeralSelector": {"nodeNames": "n1"}},
        {"nodeLabelSelector": ["a=b"]},
        {"priority": "high"},
        {"updateStrategy": 5},
        {"config": [1]},
        {"paused": "no"},
        [1],
    ],
    ids=str,
)
def test_what_cannot_be_read_is_for_no_node_never_for_all(spec: object) -> None:
    seen = target_of(document(spec))
    assert seen.problem.startswith("spec")
    assert not seen.target.for_all
    assert seen.target.node_names == ["/"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ({"group": "apps", "version": "v1alpha1", "resource": "r"}, "spec.targetType.group = 'apps'"),
        ({"group": "config.katalyst.kubewharf.io", "version": "v1", "resource": "r"}, "spec.targetType.version = 'v1'"),
        ("r", "cannot be read"),
    ],
)
def test_a_kcc_for_a_foreign_kind_is_refused_with_field_value_and_bound(kind: dict[str, str] | str, words: str) -> None:
    assert words in kcc_of(document({"targetType": kind})).problem


def test_the_old_shape_of_a_kcc_allows_its_one_label() -> None:
    spec = {"targetType": {"group": "config.katalyst.kubewharf.io", "version": "v1alpha1", "resource": "r"}}
    seen = kcc_of(document({**spec, "nodeLabelSelectorKey": "pool"}))
    assert [(entry.priority, entry.keys) for entry in seen.kcc.allowed_keys] == [(0, ["pool"])]
    assert seen.problem == ""


@pytest.mark.parametrize(("now", "over"), [("2026-01-01T01:00:00Z", False), ("2026-01-01T01:00:01Z", True)])
def test_a_temporary_object_is_over_after_its_duration_and_one_that_cannot_be_read_stays(now: str, over: bool) -> None:
    spec = {"ephemeralSelector": {"nodeNames": ["n1"], "lastDuration": "1h"}}
    written = document(spec)
    written["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    assert target_of(written).over(now) is over
    written["spec"] = {**spec, "config": [1]}
    assert not target_of(written).over(now)
