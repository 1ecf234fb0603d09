"""Reads the annotation that gives a HorizontalPodAutoscaler bounds by the clock, and bounds its size.

Fields are those of upstream's IHPA, so its users can copy their lists (docs/facts/clock-bounds.md#bounds). If any part
of a schedule cannot be read, the whole schedule is ignored, because half of it may be the wrong half.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Final, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from services.central.core.clock_bounds.cron import parse_cron
from services.central.core.clock_bounds.replicas import CronBound, Replicas, TimeBound
from shared.core.pydantic_words import first_fault
from shared.core.text.json_text import read_json_object
from shared.errors import Refused

SCHEDULE: Final = "sublet.io/replica-schedule"
MAX_BYTES: Final = 32 << 10
MOST_TIME_BOUNDS: Final = 32
MOST_BOUNDS: Final = 64
"""Of one time bound."""
MOST_REPLICAS: Final = 100_000

_ZONE: Final = re.compile(r"^[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}$")
_Count = Annotated[int, Field(ge=0, le=MOST_REPLICAS)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel)


class ScheduledCron(_Part):
    """Bounds from each minute on that an expression names."""

    cron_tab: str
    min_replicas: _Count | None = None
    max_replicas: Annotated[_Count, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_replicas is not None and self.max_replicas is not None and self.min_replicas > self.max_replicas:
            raise ValueError(f"minReplicas {self.min_replicas} is above maxReplicas {self.max_replicas}")
        return self


class ScheduledTime(_Part):
    """Bounds and when they are in force."""

    start: Annotated[AwareDatetime, Field(strict=False)] | None = None
    end: Annotated[AwareDatetime, Field(strict=False)] | None = None
    bounds: Annotated[list[ScheduledCron], Field(min_length=1, max_length=MOST_BOUNDS)]


class ScheduleDocument(_Part):
    """The annotation."""

    time_zone: str = "UTC"
    time_bounds: Annotated[list[ScheduledTime], Field(min_length=1, max_length=MOST_TIME_BOUNDS)]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Bounds by the clock of a time zone."""

    time_zone: str
    time_bounds: tuple[TimeBound, ...]


def read_schedule(text: str) -> Schedule:
    """The schedule that an annotation describes.

    Raises:
        Refused: it cannot be used as a whole; the message names the field or the expression.
    """
    found = read_json_object(text, what=SCHEDULE, max_bytes=MAX_BYTES)
    try:
        document = ScheduleDocument.model_validate(found)
    except ValidationError as error:
        raise Refused(f"{SCHEDULE}: {first_fault(error, whole='the schedule')}", reason="malformed") from error
    if not _ZONE.match(document.time_zone):
        raise Refused(f"timeZone {document.time_zone[:80]!r}: want a name such as Europe/Berlin", reason="malformed")
    for time in document.time_bounds:
        for bound in time.bounds:
            parse_cron(bound.cron_tab)
    return Schedule(document.time_zone, tuple(_time_bound(time) for time in document.time_bounds))


def _time_bound(time: ScheduledTime) -> TimeBound:
    return TimeBound(
        [CronBound(one.cron_tab, Replicas(one.min_replicas, one.max_replicas)) for one in time.bounds],
        None if time.start is None else time.start.timestamp(),
        None if time.end is None else time.end.timestamp(),
    )
