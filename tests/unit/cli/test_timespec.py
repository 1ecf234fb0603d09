"""Moments on a command line."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.errors import Refused
from sublet.timespec import parse_timespec

NOW = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("90s", NOW - timedelta(seconds=90)),
        ("30m", NOW - timedelta(minutes=30)),
        ("2h", NOW - timedelta(hours=2)),
        ("7d", NOW - timedelta(days=7)),
        ("2026-01-01T00:00:00Z", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01T02:00:00+02:00", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-01-01", datetime(2026, 1, 1, tzinfo=UTC)),
    ],
)
def test_the_moment_that_a_text_names(text: str, moment: datetime) -> None:
    assert parse_timespec(text, NOW) == moment


@pytest.mark.parametrize("text", ["2 h", "-2h", "h", "2w", "yesterday", "1.5h", "٣h", "100000d", ""])
def test_what_names_no_moment_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(Refused, match="want 30m, 2h, 7d"):
        parse_timespec(text, NOW)
