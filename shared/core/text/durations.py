"""Spans and moments as Kubernetes writes them ("1h30m", RFC 3339), exactly, in nanoseconds."""

import re
from datetime import datetime
from fractions import Fraction

from shared.errors import Refused

NS_PER_S = 1_000_000_000

_UNIT_NS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign
    "\u03bcs": 1_000,  # the Greek letter
    "ms": 1_000_000,
    "s": NS_PER_S,
    "m": 60 * NS_PER_S,
    "h": 3600 * NS_PER_S,
}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
_DURATION = re.compile(rf"[+-]?(?:{_PART.pattern})+")
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)
_MAX_NS = (1 << 63) - 1  # what Go's time.Duration holds


def duration_ns(text: str) -> int:
    """A span such as "5h", "1m30s" or "1.5h"; it may be negative, and "0" needs no unit.

    Raises:
        Refused: `duration`, no span, or one longer than 292 years.
    """
    if text.lstrip("+-") == "0" and len(text) <= 2:
        return 0
    if not _DURATION.fullmatch(text):
        raise Refused(f"{text!r}: want a duration such as 90s, 1h30m or 1.5h", reason="duration")
    parts = (int(Fraction(number) * _UNIT_NS[unit]) for number, unit in _PART.findall(text))
    total = sum(parts) * (-1 if text.startswith("-") else 1)
    if abs(total) > _MAX_NS:
        raise Refused(f"{text!r}: want a duration of at most 2562047h", reason="duration")
    return total


def moment_ns(text: str) -> int:
    """A moment of RFC 3339 such as "2006-01-02T15:04:05Z", since the start of 1970 in UTC.

    Raises:
        Refused: `moment`.
    """
    found = _MOMENT.fullmatch(text)
    try:
        if found is None:
            raise ValueError("no RFC 3339")
        day, clock, fraction, zone = found.groups()
        moment = datetime.fromisoformat(f"{day}T{clock}{zone.upper()}")
    except ValueError:
        raise Refused(f"{text!r}: want a moment such as 2006-01-02T15:04:05Z", reason="moment") from None
    return int(moment.timestamp()) * NS_PER_S + int((fraction or "").ljust(9, "0")[:9])


def expired(created_ns: int, last_duration_ns: int, now_ns: int) -> bool:
    """Whether a temporary object is over; at its very last moment it is not."""
    return now_ns > created_ns + last_duration_ns
