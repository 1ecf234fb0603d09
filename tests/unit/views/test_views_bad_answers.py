"""Whatever answers on the bus, no view fails on it: what cannot be read counts as not told."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from sublet.ask import MAX_ANSWER_BYTES, read_answer
from sublet.views import status, top
from sublet.views.explain.chain import chain
from sublet.views.explain.chain_text import lines
from sublet.views.explain.cpu import cpu_chain
from sublet.views.explain.cpu_text import cpu_lines
from sublet.views.facts import read

GONE = object()
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["0-3", "default"])
)
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document."""
    yield path
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in inner:
        yield from places(value, (*path, key))


def put(document: Any, path: tuple[Any, ...], value: object) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(document)
    here = changed
    for key in path[:-1]:
        here = here[key]
    if value is GONE:
        del here[path[-1]]
    else:
        here[path[-1]] = value
    return changed


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_no_view_fails_on_an_answer_with_anything_anywhere(answers: dict[str, Any], data: Any) -> None:
    answers = json.loads(json.dumps(answers))
    for _ in range(data.draw(st.integers(1, 3))):
        service = data.draw(st.sampled_from(sorted(answers)))
        path = data.draw(st.sampled_from(sorted(places(answers[service]), key=str)))
        changed = put(answers[service], path, data.draw(st.just(GONE) | anything))
        answers[service] = changed if isinstance(changed, dict) else None
    facts = read("node1", answers)
    console = Console(file=None, record=True, quiet=True, width=120)
    console.print(status.render(facts))
    console.print(top.render(facts))
    json.dumps(status.as_json(facts))
    for pod in ("web", "encode", "x"):
        if (document := chain(facts, [], "default", pod)) is not None:
            list(lines(document))
    if (of_cpu := cpu_chain(facts, 0)) is not None:
        list(cpu_lines(of_cpu))


@given(st.binary(max_size=200) | anything.map(lambda value: json.dumps(value).encode()))
def test_an_answer_is_a_mapping_or_none(payload: bytes) -> None:
    assert isinstance(read_answer(payload), dict | None)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b'{"a": "' + b"x" * MAX_ANSWER_BYTES + b'"}', id="too large"),
        pytest.param(b'{"a":' * 33 + b"1" + b"}" * 33, id="too deep"),
        pytest.param(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, id="as deep as it goes"),
        pytest.param(b"[" * 500_000, id="lists"),
        pytest.param(b"\xff{}", id="no text"),
    ],
)
def test_an_answer_that_is_too_much_is_none(payload: bytes) -> None:
    assert read_answer(payload) is None


def test_an_answer_cannot_steer_a_terminal() -> None:
    answer = read_answer(json.dumps({"a\x1b]0;": ["\x1b[2J\u202e", "b\tc\n"]}).encode())
    assert answer == {"a\\x1b]0;": ["\\x1b[2J\\u202e", "b\tc\n"]}
