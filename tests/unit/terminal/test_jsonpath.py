"""Templates of `-o jsonpath=`: what they give, what is refused, and that no text of any kind does harm."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Refused
from sublet.terminal.jsonpath import read_template

PODS: dict[str, Any] = {
    "kind": "List",
    "items": [
        {
            "metadata": {"name": "web", "annotations": {"example.org/qos.level": "shared"}},
            "spec": {"priority": 5, "on": True},
        },
        {"metadata": {"name": "db"}, "spec": {"priority": 0, "tags": ["a", "b"]}},
    ],
}


def test_a_strangers_value_cannot_command_the_terminal() -> None:
    assert read_template("{.a}\t{.b}").render({"a": "\x1b]0;x\x07\u202e", "b": "two\nlines"}) == (
        "\\x1b]0;x\\x07\\u202e\ttwo\nlines"
    )


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.kind}", "List"), ("{ .kind }", "List"), ("{$.kind}", "List"), ("{@.kind}", "List"),
        ("{.items[*].metadata.name}", "web db"), ("{.items[0].metadata.name}", "web"),
        ("{.items[-1].metadata.name}", "db"), ("{.items[7].metadata.name}", ""), ("{.nope.at.all}", ""),
        ("{.items[0].spec.priority}", "5"), ("{.items[0].spec.on}", "true"), ("{.items[1].spec.tags}", '["a", "b"]'),
        ("{.items[0].metadata.annotations.example\\.org/qos\\.level}", "shared"),
        ("{.items[0].metadata.annotations['example.org/qos.level']}", "shared"),
        ('{range .items[*]}{.metadata.name}{"\\t"}{.spec.priority}{"\\n"}{end}', "web\t5\ndb\t0\n"),
        ("{range .items[*]}[{range .spec.tags[*]}{@}.{end}]{end}", "[][a.b.]"),
        ("name is {.items[1].metadata.name}!", "name is db!"), ("{.items[1].metadata.*}", "db"), ("plain", "plain"),
        ("{.kind.deeper}", ""), ("{.items.metadata}", ""),
    ],
)  # fmt: skip
def test_what_a_template_gives(template: str, text: str) -> None:
    assert read_template(template).render(PODS) == text


@pytest.mark.parametrize(
    "template",
    ["", "{", "}", "{.x", "{.items[?(@.a==1)]}", "{.items[0:2]}", "{..name}", "{.items[}", "{.items['a}", "{end}",
     "{range .items[*]}", "{range .items[*]}{.x}", "{.a b}", "{{.a}}", "{if}", "x" * 5000, "{.items[99999999999]}"],
)  # fmt: skip
def test_what_is_no_template_is_refused(template: str) -> None:
    with pytest.raises(Refused, match="jsonpath"):
        read_template(template)


@given(st.text(alphabet="{}[]().*'\"\\ab0-:?@$ rangeend\n", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        read_template(text).render(PODS)
    except Refused as refusal:
        assert "jsonpath" in str(refusal)  # noqa: PT017 - either outcome is right
