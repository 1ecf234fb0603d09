"""Scrapes as samples: each reason to drop a line, odd text, and no text that throws."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.central.core.custom_metrics.exposition import read_samples

TYPE = "# TYPE m gauge\n"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("m{ 1 4000", "unreadable", id="no closing brace"),
        pytest.param("m", "unreadable", id="no value"),
        pytest.param("m 1 4000 5", "unreadable", id="more than a time"),
        pytest.param("m-n 1 4000", "unreadable", id="no name of a metric"),
        pytest.param('m{a="1",a="2"} 1 4000', "unreadable", id="a label twice"),
        pytest.param('m{a="1" b="2"} 1 4000', "unreadable", id="no comma"),
        pytest.param('m{a="\\x"} 1 4000', "unreadable", id="an escape that there is none of"),
        pytest.param("n 1 4000", "not_gauge", id="without type"),
        pytest.param("# TYPE n counter\nn much 4000", "not_gauge", id="the type goes before the value"),
        pytest.param("m much 4000", "unreadable", id="a value that is none"),
        pytest.param("m 1_0 4000", "unreadable", id="Python's own spelling of numbers"),
        pytest.param("m \u0661 4000", "unreadable", id="digits of others"),
        pytest.param("m NaN 4000", "not_a_number", id="NaN"),
        pytest.param("m +Inf", "not_a_number", id="infinite, which goes before the missing time"),
        pytest.param("m 1e999 4000", "not_a_number", id="beyond the largest number"),
        pytest.param("m 1", "no_timestamp", id="no time"),
        pytest.param('m{timestamp="soon"} 1 4000.5', "no_timestamp", id="two times that are none"),
        pytest.param("m 1 99999999999999999999", "no_timestamp", id="a time beyond 64 bits"),
        pytest.param('m{object="pods"} 1 1', "no_object_name", id="an object without name"),
        pytest.param('m{object="pods",object_name=""} 1 4000', "no_object_name", id="an empty name"),
        pytest.param("m 1 699999", "expired", id="older than is kept"),
    ],
)
def test_a_line_is_dropped_for_its_first_reason(text: str, reason: str) -> None:
    samples, dropped = read_samples(f"{TYPE}{text}\n", now_ms=1_000_000, expire_s=300)
    assert samples == []
    assert dict(dropped) == {reason: 1}


@pytest.mark.parametrize(
    ("text", "at_ms", "labels"),
    [
        pytest.param("m 1 4000", 4000, (), id="bare"),
        pytest.param("m\t1\t4000", 4000, (), id="tabs"),
        pytest.param('m{timestamp="4000"} 1', 4000, (), id="time as label"),
        pytest.param('m{timestamp="5"} 1 4000', 4000, (), id="the sample's own time goes first"),
        pytest.param('m{timestamp="4000"} 1 soon', 4000, (), id="the label where the sample's own is none"),
        pytest.param('m { selector_b = "2" , selector_a="1", } 1 4000', 4000, (("a", "1"), ("b", "2")), id="blanks"),
        pytest.param('m{selector_a="x}\\"\\n\\\\",job="j"} 1 4000', 4000, (("a", 'x}"\n\\'),), id="escapes"),
        pytest.param('m{object=""} 1 4000', 4000, (), id="an empty object is an external metric"),
    ],
)
def test_a_line_is_read(text: str, at_ms: int, labels: tuple[tuple[str, str], ...]) -> None:
    samples, dropped = read_samples(f"# HELP m text\n\n{TYPE}{text}\r\n", now_ms=5000, expire_s=300)
    assert not dropped
    assert [(one.timestamp_ms, one.value, one.key.labels) for one in samples] == [(at_ms, 1.0, labels)]
    assert samples[0].key.about == (None, None, None)


def test_one_bad_line_costs_itself_alone() -> None:
    samples, dropped = read_samples(f"{TYPE}m 1 1\nm{{ 2 2\n# TYPE\nm 3 3\n", now_ms=5, expire_s=300)
    assert [one.value for one in samples] == [1.0, 3.0]
    assert dict(dropped) == {"unreadable": 1}


@given(st.text(alphabet='m{}="\\,# \t\n01e.-NaTYPgue_', max_size=200))
def test_no_text_throws_and_every_line_is_counted(text: str) -> None:
    samples, dropped = read_samples(TYPE + text, now_ms=0, expire_s=1e6)
    lines = [line for line in text.split("\n") if line.strip() and not line.strip().startswith("#")]
    assert len(samples) + sum(dropped.values()) == len(lines)
