"""Times of the command line: `30m`, `2h` or `7d`, as how long or how long ago, or RFC 3339."""

import re
from datetime import UTC, datetime, timedelta

from shared.errors import Refused

_AGO = re.compile(r"(?P<count>\d{1,5})(?P<unit>[smhd])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration_s(text: str) -> float:
    """The seconds of a duration such as 30m.

    Raises:
        Refused: it is none, or no time at all.
    """
    found = _AGO.fullmatch(text)
    seconds = int(found["count"]) * _SECONDS[found["unit"]] if found else 0
    if seconds == 0:
        raise Refused(f"{text!r} is no duration: want 90s, 30m, 2h or 1d", reason="no_time")
    return float(seconds)


def parse_timespec(text: str, now: datetime) -> datetime:
    """The moment that a text names; a time without an offset is UTC.

    Raises:
        Refused: it names none.
    """
    if ago := _AGO.fullmatch(text):
        return now - timedelta(seconds=int(ago["count"]) * _SECONDS[ago["unit"]])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(f"{text!r} is no time: want 30m, 2h, 7d, or 2026-03-09T14:00:00Z", reason="no_time") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
