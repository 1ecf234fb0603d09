"""Printing: columns, and YAML as the quick start shows it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from sublet.output import LineTable, age, as_text, as_yaml, columns, printable

NOW = datetime(2026, 1, 1, tzinfo=UTC)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def test_columns_line_up_and_an_empty_cell_is_a_dash() -> None:
    assert columns(("NAME", "CPU"), [("a", "100m"), ("longer", "")]) == "NAME     CPU\na        100m\nlonger   -"


def test_numbers_stand_at_the_right_and_headers_in_capitals() -> None:
    assert columns(("policy", "cores"), [("a", "7"), ("b", "1200")], right={1}) == (
        "POLICY   CORES\na            7\nb         1200"
    )


def test_in_a_pipe_a_row_is_one_line_and_on_a_terminal_no_wider_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("pod", "word " * 60)]
    assert len(columns(("name", "message"), rows).splitlines()) == 2
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    lines = columns(("name", "message"), rows).splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize("evil", ["\x1b[31mred", "two\nlines", "\rover", "[red]no markup[/red]"])
def test_a_cell_cannot_write_to_the_terminal(evil: str) -> None:
    for line in (columns(("name",), [(evil,)]).splitlines(), [LineTable(("name",), (4,)).line([evil])]):
        assert line[-1] == printable(evil)


def test_lines_that_come_one_by_one_have_the_same_look() -> None:
    table = LineTable(("seq", "pod"), (4, 6), right={0})
    assert [table.head(), table.line(["1", "a"]), table.line(["2", "longer than that"])] == [
        " SEQ   POD", "   1   a", "   2   longer than that",
    ]  # fmt: skip


def test_the_nodes_object_is_printed_in_the_form_of_the_quick_start() -> None:
    document = {
        "status": {
            "resourceAllocatable": {
                "katalyst.kubewharf.io/reclaimed_memory": "195257901056",
                "katalyst.kubewharf.io/reclaimed_millicpu": "44k",
            }
        }
    }
    assert as_yaml(document).splitlines() == [
        "status:",
        "  resourceAllocatable:",
        '    katalyst.kubewharf.io/reclaimed_memory: "195257901056"',
        "    katalyst.kubewharf.io/reclaimed_millicpu: 44k",
    ]


@given(JSON_VALUES)
@example("0\n")
@example({"script": "a\n\n"})
def test_what_is_printed_as_yaml_is_read_back_the_same(document: dict[str, Any] | list[Any] | str | None) -> None:
    assert yaml.safe_load(f"{as_yaml(document)}\n") == document  # a printed text ends its last line


def test_json_keeps_the_order_of_keys() -> None:
    assert as_text({"b": 1, "a": 2}, "json") == '{\n  "b": 1,\n  "a": 2\n}'


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (125, "2m5s"), (3 * 3600 + 720, "3h12m"), (8 * 86_400 + 5, "8d"), (-5, "0s")],
)
def test_an_age_has_its_leading_units(seconds: int, text: str) -> None:
    assert age(NOW - timedelta(seconds=seconds), NOW) == text


def test_an_unknown_age_is_a_dash() -> None:
    assert age(None, NOW) == "-"
