"""Spans and moments as Kubernetes writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.text.durations import NS_PER_S, duration_ns, expired, moment_ns
from shared.errors import Refused


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("-0", 0), ("+0", 0), ("0s", 0), ("5h", 18_000), ("1m30s", 90), ("1h30m", 5400), ("1.5h", 5400),
        (".5m", 30), ("1.s", 1), ("-1m", -60), ("+1m", 60), ("99999h", 359_996_400), ("1s1s", 2), ("250ms", 0.25),
        ("1us", 1e-6), ("1µs", 1e-6), ("1μs", 1e-6), ("1ns", 1e-9), ("0.1ns", 0), ("168h0m0s", 604_800),
    ],
)  # fmt: skip
def test_a_duration(text: str, seconds: float) -> None:
    assert duration_ns(text) == round(seconds * NS_PER_S)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "h",
        ".",
        ".s",
        "1d",
        "1h 30m",
        " 1h",
        "1h-30m",
        "1e3s",
        "--1s",
        "+",
        "2562048h",
        "٣h",
        "1H",
        "00",
        "inf",
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="want a duration"):
        duration_ns(text)


@given(st.integers(-(10**12), 10**12))
def test_a_duration_says_what_it_is(milliseconds: int) -> None:
    assert duration_ns(f"{milliseconds}ms") == milliseconds * 1_000_000


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:01z", NS_PER_S),
        ("1970-01-01T01:00:00.5+01:00", NS_PER_S // 2),
        ("1969-12-31T23:59:59.123456789Z", -NS_PER_S + 123_456_789),
        ("2006-01-02T15:04:05.1234567891Z", 1_136_214_245_123_456_789),
    ],
)
def test_a_moment(text: str, ns: int) -> None:
    assert moment_ns(text) == ns


@pytest.mark.parametrize(
    "text", ["", "2006-01-02", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z", "2006-13-02T15:04:05Z",
             "2006-02-30T15:04:05Z", "2006-01-02T15:04:60Z", "20060102T150405Z", "2006-01-02T15:04:05+0100",
             "2006-01-02T15:04:05.Z"],
)  # fmt: skip
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(Refused, match="want a moment"):
        moment_ns(text)


@given(st.integers(0, 10**18), st.integers(0, 10**15), st.integers(0, 10**18), st.integers(0, 10**15))
def test_what_is_over_stays_over(created: int, lasts: int, now: int, later: int) -> None:
    assert expired(created, lasts, now + later) or not expired(created, lasts, now)
    assert not expired(created, lasts, created + lasts)
