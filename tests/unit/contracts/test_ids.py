"""Node tokens, UIDs and intent ids."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from shared.contracts.ids import NAME_PATTERN, UID_PATTERN, PodUid, intent_id, node_of_token, node_token

node_names = st.from_regex(re.compile(r"[a-z0-9]([-a-z0-9.]{0,40}[a-z0-9])?"), fullmatch=True)


@given(node_names)
def test_a_token_is_one_subject_token_and_leads_back_to_the_name(name: str) -> None:
    token = node_token(name)
    assert "." not in token
    assert node_of_token(token) == name


@given(node_names, node_names)
def test_two_nodes_never_share_a_token(one: str, other: str) -> None:
    assert (node_token(one) == node_token(other)) == (one == other)


@pytest.mark.parametrize(
    "name", ["", "A", "a_b", "a/b", "a b", "-a", "a-", ".a", "a.", "*", ">", "a>", "a\n", "a\nPUB x", "é", "a" * 254]
)
def test_a_name_that_is_none_has_no_token(name: str) -> None:
    with pytest.raises(ValueError, match="node name"):
        node_token(name)


@pytest.mark.parametrize("uid", ["1f3a-5b", "0", "6f0c0d9e-6a0c-5c3b-9f0e-2d7a5c1b8e44", "a" * 64])
def test_a_uid_is_hexadecimal_with_dashes(uid: str) -> None:
    assert TypeAdapter(PodUid).validate_python(uid) == uid


@pytest.mark.parametrize(
    "uid", ["", "..", "../x", "a/b", "/", "-a", "a-", "A1", "a.b", "xyz", "a\n", "a\0", "a" * 65, "a b"]
)
def test_nothing_else_can_become_a_folder_name(uid: str) -> None:
    """A path from a pod can never leave the cgroup root (docs/facts/safety-rules.md#rule-8-least-right)."""
    with pytest.raises(ValidationError):
        TypeAdapter(PodUid).validate_python(uid)


@given(st.text(alphabet="abcdef0123456789-./_~\n\0", max_size=70))
def test_what_passes_as_a_uid_holds_no_separator(text: str) -> None:
    try:
        TypeAdapter(PodUid).validate_python(text)
    except ValidationError:
        return
    assert not set(text) - set("abcdef0123456789-")


def test_the_patterns_are_anchored() -> None:
    for pattern in (NAME_PATTERN, UID_PATTERN):
        assert pattern.startswith("^")
        assert pattern.endswith("$")


parts = st.tuples(node_names, st.from_regex(re.compile(r"[0-9a-f]{1,8}"), fullmatch=True), st.sampled_from(["a", "b"]),
                  st.integers(0, 9))  # fmt: skip


@given(parts, parts)
def test_an_intent_id_is_the_same_for_the_same_decision_and_for_no_other(
    one: tuple[str, str, str, int], other: tuple[str, str, str, int]
) -> None:
    assert re.fullmatch(r"[0-9a-f-]{36}", intent_id(*one))
    assert (intent_id(*one) == intent_id(*other)) == (one == other)


def test_an_intent_id_never_changes_between_releases() -> None:
    """A ledger of an older release must find its intents again."""
    assert intent_id("node-a", "1f3a", "reclaimed", 1) == "16720b95-a8f1-5264-a6ba-a20bcbc972bc"
