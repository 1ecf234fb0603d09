"""Label selectors: what each form admits, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Refused
from sublet.pods.label_selector import admits, read_selector

WEB = {"app": "web", "example.org/tier": "front"}
KEYS, VALUES = st.sampled_from(["app", "tier", "a/b"]), st.sampled_from(["", "web", "db"])
LABELS = st.dictionaries(KEYS, VALUES)


@pytest.mark.parametrize(
    ("selector", "admitted"),
    [
        ("", True), ("  ", True), ("app=web", True), ("app==web", True), ("app = web", True), ("app=db", False),
        ("app!=db", True), ("app!=web", False), ("none!=x", True), ("none=x", False), ("none=", False),
        ("app in (web,db)", True), ("app in ( web , db )", True), ("app in (db)", False), ("app notin (db)", True),
        ("none notin (db)", True), ("app notin (web)", False), ("app", True), ("!app", False), ("none", False),
        ("!none", True), ("example.org/tier=front", True), ("app=web,example.org/tier=front", True),
        ("app in (web,db),example.org/tier notin (back),!none", True), ("app=web,none", False),
    ],
)  # fmt: skip
def test_what_a_selector_admits(selector: str, admitted: bool) -> None:
    assert admits(read_selector(selector), WEB) is admitted


@pytest.mark.parametrize(
    "selector",
    ["=", "=web,", ",", "app in", "app in web", "app in (web", "app in (we b)", "app>1", "app=web db", "a b",
     "app===web", "!app=web", "-x", "app=web,,", "ünï=x", "app=ü", "a" * 64, "x" * 5000, "app in (-)"],
)  # fmt: skip
def test_what_is_no_selector_is_refused_with_the_part(selector: str) -> None:
    with pytest.raises(Refused, match="--selector"):
        read_selector(selector)


@given(LABELS, KEYS, VALUES)
def test_a_requirement_and_its_opposite_part_all_labels(labels: dict[str, str], key: str, value: str) -> None:
    for one, other in (
        (f"{key}={value}", f"{key}!={value}"),
        (f"{key} in ({value})", f"{key} notin ({value})"),
        (key, f"!{key}"),
    ):
        assert admits(read_selector(one), labels) != admits(read_selector(other), labels)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        admits(read_selector(text), WEB)
    except Refused as refusal:
        assert "--selector" in str(refusal)  # noqa: PT017 - either outcome is right
