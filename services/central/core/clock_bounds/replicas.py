"""Replica bounds by the clock: the newest bound that fired stays in force until the next one fires.

Upstream's bounds hold for only one minute, after which the autoscaler falls back; that behaviour is available as
`minute` for comparison (docs/facts/clock-bounds.md#bounds).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from services.central.core.clock_bounds.cron import Cron, parse_cron
from shared.errors import Refused

Hold = Literal["until_next", "minute"]

LOOK_BACK_S: Final = 7 * 24 * 3600
"""Age after which a fired bound is over; a longer one must fire every week."""


@dataclass(frozen=True, slots=True)
class Replicas:
    """Bounds of an autoscaler; None: unset."""

    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class CronBound:
    """Bounds from each minute on that an expression names."""

    cron: str
    replicas: Replicas


@dataclass(frozen=True, slots=True)
class TimeBound:
    """Bounds that are in force strictly after a start and before an end; None: always."""

    bounds: Sequence[CronBound]
    start_s: float | None = None
    end_s: float | None = None

    def in_force(self, now_s: float) -> bool:
        """Whether its time is now."""
        return (self.start_s is None or self.start_s < now_s) and (self.end_s is None or now_s < self.end_s)


@dataclass(frozen=True, slots=True)
class ScheduledBounds:
    """The current bounds, which bound decided last, and which expressions could not be read."""

    least: int
    most: int
    active: tuple[int, int] | None
    """Index of the time bound, and of the bound in it."""
    invalid: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LocalTime:
    """Now, and how far local time is ahead of UTC."""

    now_s: float
    utc_offset_minutes: int = 0

    @property
    def local_minute(self) -> int:
        """Minutes of local time since 1970."""
        return self.local(self.now_s)

    def local(self, moment_s: float) -> int:
        """The minute of local time in which a moment lies."""
        return math.floor(moment_s / 60) + self.utc_offset_minutes


def scheduled_bounds(
    plain: tuple[int, int], time_bounds: Sequence[TimeBound], moment: LocalTime, hold: Hold = "until_next"
) -> ScheduledBounds:
    """Return least and most replicas now; `plain` are the bounds without a schedule.

    The most is never below the least, which the API server refuses (docs/facts/clock-bounds.md#autoscalers).
    """
    (least, most), active, invalid = plain, None, list[str]()
    for place, time_bound in enumerate(time_bounds):
        if not time_bound.in_force(moment.now_s):
            continue
        crons = dict(_readable(time_bound, invalid))
        for index in _fired(crons, time_bound.start_s, moment, hold):
            said, active = time_bound.bounds[index].replicas, (place, index)
            least = least if said.least is None else said.least
            most = most if said.most is None else said.most
    return ScheduledBounds(least, max(least, most), active, tuple(invalid))


def _readable(time_bound: TimeBound, invalid: list[str]) -> Iterator[tuple[int, Cron]]:
    for index, bound in enumerate(time_bound.bounds):
        try:
            yield index, parse_cron(bound.cron)
        except Refused:
            invalid.append(bound.cron)


def _fired(crons: dict[int, Cron], start_s: float | None, moment: LocalTime, hold: Hold) -> list[int]:
    """The bounds that count now, in order."""
    if hold == "minute":
        return [index for index, cron in crons.items() if cron.fires(moment.local_minute)]
    earliest = math.ceil((moment.now_s - LOOK_BACK_S) / 60) + moment.utc_offset_minutes
    if start_s is not None:
        earliest = max(earliest, moment.local(start_s))
    fired = [(minute, index) for index, cron in crons.items()
             if (minute := cron.last_fired(moment.local_minute, earliest)) is not None]  # fmt: skip
    return [max(fired)[1]] if fired else []
