"""The class of a pod: both dialects, one answer, whatever is said; admission's side of the table is an attack test."""

from typing import Any

import pytest
from class_claims import CLAIMS, NATIVE, RECLAIMED, Claim
from hypothesis import given
from hypothesis import strategies as st
from present import present

from shared.core.pods.kube_pod import pod_of
from shared.core.pods.qos import LOWEST_FIRST, Fallback, lowest_class, qos_class
from shared.errors import Refused

by_name = pytest.mark.parametrize("claim", CLAIMS, ids=[claim.name for claim in CLAIMS])
claims = st.sampled_from(CLAIMS)


def on_node(claim: Claim, amounts: dict[str, str], kube: str = "Burstable") -> dict[str, Any]:
    document = claim.document("p", amounts)
    document["metadata"] |= {"uid": "0f-1", "namespace": "default"}
    return document | {"status": {"phase": "Running", "qosClass": kube}}


@by_name
def test_who_runs_already_is_the_lowest_that_he_names(claim: Claim) -> None:
    assert lowest_class(claim.annotations, claim.labels) == claim.qos
    assert present(pod_of(on_node(claim, NATIVE))).qos == claim.qos


@by_name
def test_who_is_to_be_made_is_refused_where_he_is_not_clear_and_else_is_the_same(claim: Claim) -> None:
    if claim.clear:
        assert qos_class(claim.annotations, labels=claim.labels) == claim.qos
        return
    with pytest.raises(Refused):
        qos_class(claim.annotations, labels=claim.labels)


@by_name
@pytest.mark.parametrize("name", [*RECLAIMED, "katalyst.kubewharf.io/reclaimed_memory", "koordinator.sh/batch-cpu"])
def test_who_asks_for_reclaimed_resources_is_reclaimed_whatever_he_says(claim: Claim, name: str) -> None:
    assert present(pod_of(on_node(claim, {name: "1k"}, "BestEffort"))).qos == "reclaimed_cores"


@by_name
def test_who_speaks_both_dialects_already_is_named_with_the_class_that_he_has(claim: Claim) -> None:
    pod = present(pod_of(on_node(claim, NATIVE)))
    said = [words for words in pod.unread if "in two dialects" in words]
    assert said == [words for words in pod.unread if words.endswith(f": it is {claim.qos}")]
    assert len(said) == (1 if claim.annotations and claim.labels else 0)


@given(claims, claims)
def test_to_say_more_never_lifts_anybody(one: Claim, other: Claim) -> None:
    both = lowest_class(one.annotations | other.annotations, one.labels | other.labels)
    without_label = lowest_class(one.annotations | other.annotations, {})
    label_alone = lowest_class({}, one.labels | other.labels)
    said = [qos for qos, words in ((without_label, one.annotations | other.annotations),
                                   (label_alone, one.labels | other.labels)) if words]  # fmt: skip
    assert both == min(said, key=LOWEST_FIRST.index, default="shared_cores")


@given(
    st.lists(claims, min_size=2, max_size=6),
    st.sampled_from([NATIVE, RECLAIMED, {}]),
    st.sampled_from(["shared_cores", "kubernetes"]),
)
def test_the_class_of_a_live_uid_stays_whatever_is_written_onto_it(
    said: list[Claim], amounts: dict[str, str], fallback: Fallback
) -> None:
    kube = "Burstable" if amounts is NATIVE else "BestEffort"
    first = present(pod_of(on_node(said[0], amounts, kube), fallback)).qos
    for claim in said[1:]:
        assert present(pod_of(on_node(claim, amounts, kube), fallback, first)).qos == first
