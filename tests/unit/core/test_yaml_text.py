"""YAML from outside: one error for whatever is wrong, no key twice, and no value in any error."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.text.yaml_text import MAX_DEPTH, read_yaml, read_yaml_documents
from shared.errors import Refused

MAX = 10_000


def refusal(text: str) -> str:
    with pytest.raises(Refused) as caught:
        read_yaml_documents(text, what="file a.yaml", max_bytes=MAX)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "file a.yaml, line 3: key 'a' stands twice, first in line 1; remove one"),
        ("x:\n  a: 1\n  'a': 2\n", "file a.yaml, line 3: key 'a' stands twice, first in line 2"),
        ("1: a\n0x1: b\n", "key 1 stands twice"),
        ("- {a: 1, a: 2}\n", "stands twice"),
        ("a: 1\n---\nb: 1\nb: 2\n", "line 4: key 'b' stands twice"),
        ("{a: 1}: b\n", "a key is a list or a mapping"),
        ("[" * 5000, "nested too deep"),
        ("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2), f"at most {MAX_DEPTH} levels"),
        ("a: &a {b: *a}", "nested too deep"),
        ("a: &a {<<: *a}", "nested too deep"),
        ("a: [secret", "file a.yaml: not YAML (line 1, column"),
        ("a: *secret", "not YAML (line 1, column"),
        ("a: !!python/name:os.system x", "not YAML"),
        ("a: \x00", "not YAML"),
        ("a: 2026-02-30", "a date or a number cannot be read"),
        ("a: " + "9" * 5000, "a date or a number cannot be read"),
        ("a" * (MAX + 1), f"{MAX + 1} bytes, at most {MAX} are read"),
    ],
)
def test_a_text_that_cannot_be_used_is_refused(text: str, words: str) -> None:
    said = refusal(text)
    assert words in said
    assert "secret" not in said


def test_an_alias_counts_wherever_it_stands() -> None:
    laughs = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{c}: &{c} [{','.join([f'*{b}'] * 9)}]\n" for b, c in zip("abcdef", "bcdefg", strict=True)
    )
    assert "too many values" in refusal(laughs)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# nothing\n", None),
        ("a: 1", {"a": 1}),
        ("1: a\n'1': b", {1: "a", "1": "b"}),
        ("base: &b {x: 1, y: 2}\nmine: {<<: *b, y: 3}", {"base": {"x": 1, "y": 2}, "mine": {"x": 1, "y": 3}}),
        ("a: &v [1]\nb: *v", {"a": [1], "b": [1]}),
    ],
)
def test_a_text_is_what_it_says(text: str, value: object) -> None:
    assert read_yaml(text, what="a", max_bytes=MAX).value == value


def test_the_line_of_a_key_is_known_or_that_of_the_one_above() -> None:
    document = read_yaml("a:\n  b: 1\n  c:\n  - d: 2\n  - e: 3\n", what="a", max_bytes=MAX)
    paths = [("a",), ("a", "b"), ("a", "c", "1", "e"), ("a", "x"), ("y",)]
    assert [document.line_of(path) for path in paths] == [1, 2, 5, 1, 1]


@given(st.text() | st.text(alphabet="ab:-{}[]&*<!|>'\"\n ,0.~%@`"))
def test_whatever_is_given_it_is_a_value_or_one_error(text: str) -> None:
    with contextlib.suppress(Refused):
        read_yaml_documents(text, what="a", max_bytes=MAX)
