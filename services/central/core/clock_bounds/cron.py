"""A cron expression of five fields: the minutes that it names.

Fields are minute, hour, day of the month, month and day of the week, made of numbers, `*`, lists, ranges and steps;
Sunday is 0. A step restricts its field, `*/2` too, as in Kubernetes' own CronJob (docs/facts/clock-bounds.md#cron).
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from shared.errors import Refused

MINUTES_A_DAY: Final = 1440
LONGEST: Final = 200
"""Characters of an expression; all minutes of an hour as a list have 169."""

_FIELDS: Final = (("minute", 0, 59), ("hour", 0, 23), ("day of the month", 1, 31), ("month", 1, 12),
                  ("day of the week", 0, 6))  # fmt: skip
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cron:
    """The minutes that an expression names."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    """Whether one of day of the month and day of the week is enough, for both are restricted."""

    def fires(self, local_minute: int) -> bool:
        """Whether it names this minute, counted from 1970 in local time."""
        day, minute = divmod(local_minute, MINUTES_A_DAY)
        return self._on(day) and minute // 60 in self.hours and minute % 60 in self.minutes

    def last_fired(self, local_minute: int, earliest: int) -> int | None:
        """Return the newest minute that it names, from `earliest` to `local_minute`; None if there is none."""
        today, latest = divmod(local_minute, MINUTES_A_DAY)
        for day in range(today, earliest // MINUTES_A_DAY - 1, -1):
            if not self._on(day):
                continue
            until = latest if day == today else MINUTES_A_DAY
            of_day = [minute for hour in self.hours for minute in (hour * 60 + past for past in self.minutes)
                      if minute <= until]  # fmt: skip
            if of_day:
                found = day * MINUTES_A_DAY + max(of_day)
                return found if found >= earliest else None
        return None

    def _on(self, day: int) -> bool:
        date = _EPOCH + timedelta(days=day)
        if date.month not in self.months:
            return False
        by_month, by_week = date.day in self.days, date.isoweekday() % 7 in self.weekdays
        return by_month or by_week if self.either_day else by_month and by_week


def parse_cron(text: str) -> Cron:
    """The expression that a text is.

    Raises:
        Refused: it is none; reason `invalid_cron`.
    """
    fields = text.split() if len(text) <= LONGEST else []
    if len(fields) != len(_FIELDS):
        raise _refused(text, "five fields: minute, hour, day of the month, month, day of the week")
    sets = [_numbers(text, field, *bounds) for field, bounds in zip(fields, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = sets
    either = not (_is_free(fields[2]) or _is_free(fields[4]))
    return Cron(minutes, hours, days, months, weekdays, either)


def _numbers(text: str, field: str, name: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, slash, step_text = part.partition("/")
        first_text, dash, last_text = span.partition("-")
        step = _number(step_text) if slash else 1
        if span == "*":
            first, last = low, high
        else:
            first_number, last_number = _number(first_text), _number(last_text if dash else first_text)
            # A single number with a step runs to the end of the range, as in CronJob: 5/15 is 5,20,35,50.
            first, last = first_number, high if slash and not dash else last_number
        if not (low <= first <= last <= high and step >= 1):
            raise _refused(text, f"for the {name} numbers from {low} to {high}, not {part!r}")
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _number(text: str) -> int:
    """Return the number, or -1, which no field accepts."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 2 else -1


def _is_free(field: str) -> bool:
    return any(part in ("*", "*/1") for part in field.split(","))


def _refused(text: str, want: str) -> Refused:
    return Refused(f"cron {text[:LONGEST]!r}: want {want}, such as '0 8 * * 1-5'", reason="invalid_cron")
