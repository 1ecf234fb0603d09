"""The what-if kind `scheduled_bounds`: replica bounds by the clock."""

from typing import Annotated

from pydantic import Field

from services.central.core.clock_bounds.replicas import (
    CronBound,
    Hold,
    LocalTime,
    Replicas,
    TimeBound,
    scheduled_bounds,
)
from shared.whatif.decisions import Answer, Question, decision

Second = Annotated[float, Field(ge=0, le=100_000_000_000)]


class AskedCronBound(Question):
    """Bounds from each minute on that an expression names; null leaves a bound unchanged."""

    cron: str
    min_replicas: int | None = None
    max_replicas: int | None = None


class AskedTimeBound(Question):
    """Bounds and when they are in force; null: always."""

    start_s: Second | None = None
    end_s: Second | None = None
    bounds: list[AskedCronBound]


class ScheduledBoundsQuestion(Question):
    """The default bounds, those by the clock, and the time."""

    min_replicas: int = 1
    max_replicas: int
    now_s: Second
    utc_offset_minutes: Annotated[int, Field(ge=-1440, le=1440)] = 0
    hold: Hold = "until_next"
    time_bounds: list[AskedTimeBound] = []


class ScheduledBoundsAnswer(Answer):
    """The current bounds, which one decided last, and unreadable expressions."""

    min_replicas: int
    max_replicas: int
    active: tuple[int, int] | None
    invalid: list[str]


@decision("scheduled_bounds", area="recommendation", asks=ScheduledBoundsQuestion, answers=ScheduledBoundsAnswer)
def scheduled_bounds_now(question: ScheduledBoundsQuestion) -> ScheduledBoundsAnswer:
    """Replica bounds by the clock."""
    asked = [
        TimeBound(
            [CronBound(one.cron, Replicas(one.min_replicas, one.max_replicas)) for one in time_bound.bounds],
            time_bound.start_s,
            time_bound.end_s,
        )
        for time_bound in question.time_bounds
    ]
    moment = LocalTime(question.now_s, question.utc_offset_minutes)
    found = scheduled_bounds((question.min_replicas, question.max_replicas), asked, moment, question.hold)
    return ScheduledBoundsAnswer(
        min_replicas=found.least, max_replicas=found.most, active=found.active, invalid=list(found.invalid)
    )
