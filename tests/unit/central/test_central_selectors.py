"""Label selectors as Kubernetes writes them, and whether two of them can take the same node."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.kcc.selector_overlap import overlap
from services.central.core.kcc.selectors import MAX_NUMBER, Selector, parse_selector
from shared.errors import Refused


@pytest.mark.parametrize(
    ("text", "takes", "leaves"),
    [
        ("", [{}, {"a": "1"}], []),
        ("  ", [{}, {"a": "1"}], []),
        ("a=1", [{"a": "1"}], [{}, {"a": "2"}]),
        ("a == 1", [{"a": "1"}], [{"b": "1"}]),
        ("a=", [{"a": ""}], [{}, {"a": "1"}]),
        ("a!=1", [{}, {"a": "2"}], [{"a": "1"}]),
        ("a", [{"a": ""}, {"a": "1"}], [{}]),
        ("!a", [{}, {"b": ""}], [{"a": ""}]),
        ("a in (1,2)", [{"a": "1"}, {"a": "2"}], [{}, {"a": "3"}]),
        ("a in(1)", [{"a": "1"}], [{}]),
        ("a in ()", [{"a": ""}], [{}, {"a": "1"}]),
        ("a in (,1)", [{"a": ""}, {"a": "1"}], [{"a": "2"}]),
        ("a notin (1, 2)", [{}, {"a": "3"}], [{"a": "1"}, {"a": "2"}]),
        ("a>5", [{"a": "6"}, {"a": "06"}], [{}, {"a": "5"}, {"a": "x"}, {"a": "6_0"}]),
        ("a < 5", [{"a": "4"}], [{"a": "5"}, {}]),
        ("a=1,b in (x,y), !c", [{"a": "1", "b": "y"}], [{"a": "1"}, {"a": "1", "b": "x", "c": "z"}]),
        ("in in (in)", [{"in": "in"}], [{"in": "x"}]),
        ("node.kubernetes.io/zone=eu-1", [{"node.kubernetes.io/zone": "eu-1"}], [{"zone": "eu-1"}]),
    ],
)
def test_a_selector_takes_what_kubernetes_would(
    text: str, takes: list[dict[str, str]], leaves: list[dict[str, str]]
) -> None:
    selector = parse_selector(text)
    assert all(selector.matches(labels) for labels in takes)
    assert not any(selector.matches(labels) for labels in leaves)


@pytest.mark.parametrize(
    "text",
    [",", "a=1,", ",a", "a=b=c", "a in", "a in (", "a in (b", "a in b", "a (b)", "a b", "!", "!!a", "=a", "a>x", "a>",
     "a=-b", "a=b_", "-a=b", "a/b/c=d", "A.b/c=d", "/a=b", "a/=b", "a=" + "x" * 64, "x" * 64, "a=é", "a notin(b))",
     "a>99999999999999999999"],
)  # fmt: skip
def test_what_is_no_selector_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(Refused, match="want") as refusal:
        parse_selector(text)
    assert refusal.value.reason == "selector"


KEYS, VALUES = ("a", "b"), ("1", "3", "x", "")
ANY_VALUE = (*VALUES, "2", "4", "9" * 18, "fresh", None)
NODES = [
    {key: value for key, value in zip(KEYS, values, strict=True) if value is not None}
    for values in product(ANY_VALUE, repeat=len(KEYS))
]


@st.composite
def selectors(draw: st.DrawFn) -> Selector:
    parts = []
    for _ in range(draw(st.integers(0, 3))):
        key, values = (
            draw(st.sampled_from(KEYS)),
            ",".join(draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=3))),
        )
        parts.append(
            draw(st.sampled_from([f"{key} in ({values})", f"{key} notin ({values})", key, f"!{key}", f"{key}>1",
                                  f"{key}<3", f"{key}<0", f"{key}>{MAX_NUMBER}"]))
        )  # fmt: skip
    return parse_selector(",".join(parts))


@given(selectors(), selectors())
def test_overlap_is_what_trying_all_nodes_finds(one: Selector, other: Selector) -> None:
    found = any(one.matches(labels) and other.matches(labels) for labels in NODES)
    assert overlap(one, other, KEYS) is found
    assert overlap(other, one, KEYS) is found


@given(selectors(), selectors(), st.sets(st.sampled_from(KEYS)))
def test_fewer_labels_to_tell_apart_never_hide_an_overlap(one: Selector, other: Selector, keys: set[str]) -> None:
    if overlap(one, other, KEYS):
        assert overlap(one, other, sorted(keys))
    assert overlap(one, other, [])


@pytest.mark.parametrize(
    ("one", "other", "overlaps"),
    [
        ("l=a", "l=b", False),
        ("l=a", "l!=b", True),
        ("l=a", "l in (a,b)", True),
        ("l=a", "l in (a,b),m=c", True),
        ("l notin (a, b),m=b", "l in (a),m=b", False),
        ("l in (a),m notin (b,c)", "l notin (c,d),m notin (c)", True),
        ("l", "!l", False),
        ("l!=a", "!l", True),
        ("l=a", "!l", False),
        ("l>5", "l<7", True),
        ("l>5", "l<6", False),
        ("l>5", "l in (4,7)", True),
        ("l in (a,b),l!=a", "l!=b", False),
    ],
)
def test_overlap_by_example(one: str, other: str, overlaps: bool) -> None:
    assert overlap(parse_selector(one), parse_selector(other), ["l", "m"]) is overlaps
