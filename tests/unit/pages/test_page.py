"""The page layer: one file that needs nothing from elsewhere, and texts of others stay texts."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pages_world import Seen, page_of

from sublet.pages.chart import Chart, ChartAxes, ChartLine
from sublet.pages.page import PageCell

PLAIN = Seen(page_of("plain"))
EVIL = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "-->",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</title></style></table>",
    "{{ 7 * 7 }}{% raw %}",
    "\u2028\u2029\x00\x1b[31m",
    "]]>&lt;script&gt;",
)


@pytest.mark.parametrize("text", EVIL)
def test_a_text_of_others_becomes_no_element_and_no_attribute(text: str) -> None:
    seen = Seen(page_of(text))
    assert seen.elements == PLAIN.elements
    assert seen.scripts[1:] == PLAIN.scripts[1:]


@given(st.text(st.sampled_from("<>/!-\"'&{}%= scriptSCRIPT\n"), min_size=1, max_size=40))
def test_no_text_at_all_changes_the_page(text: str) -> None:
    assert Seen(page_of(text)).elements == PLAIN.elements


@pytest.mark.parametrize("text", EVIL)
def test_the_charts_get_the_text_as_it_is(text: str) -> None:
    charts = json.loads(Seen(page_of(text)).scripts[0])
    assert charts[0]["title"] == text
    assert charts[1]["dots"][0]["name"] == text


def test_the_page_loads_nothing_and_runs_its_own_scripts_alone() -> None:
    text = page_of("plain")
    assert not re.search(r"<link|<img|@import|url\(|<iframe| src=|fetch\(|XMLHttp", text)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert "default-src &#39;none&#39;" in policy[1]
    assert policy[1].count("sha256-") == 2
    assert "unsafe-inline" not in policy[1].split("script-src")[1]
    assert "prefers-color-scheme:dark" in text


def test_a_cell_without_a_number_is_not_sorted_by_one() -> None:
    assert 'data-sort="plain"' in page_of("plain")
    assert PageCell("-").sort_by is None


def test_a_gap_stays_a_gap_in_what_the_browser_gets() -> None:
    chart = Chart("t", ChartAxes(0, 2, 0, 1, "s"), [0, 1, 2], [ChartLine("a", "shared", [0.123456789, None, 3])])
    assert chart.data()["lines"][0]["y"] == [0.123457, None, 3.0]
