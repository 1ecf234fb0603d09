"""What is due for an autoscaler, and why: bounds by a schedule, its own bounds, or a message about a faulty
schedule."""

from dataclasses import dataclass
from typing import Literal

from services.central.core.clock_bounds.autoscaler import (
    AutoscalerChange,
    AutoscalerSeen,
    bounds_now,
    change_to,
    change_to_plain,
    change_to_refused,
    plain_bounds,
)
from services.central.core.clock_bounds.replicas import LocalTime, ScheduledBounds
from services.central.core.clock_bounds.schedule import Schedule
from shared.contracts.cluster.decision import Decided, DecidedObject
from shared.contracts.envelope import Reason

AREA = "clock_bounds"
Verdict = Literal["bounded", "given_back", "refused"]


@dataclass(frozen=True, slots=True)
class AutoscalerDue:
    """A change, and what is reported after it is written."""

    change: AutoscalerChange
    verdict: Verdict
    said: str
    why: Reason

    def decided(self, seen: AutoscalerSeen) -> Decided:
        """The decision on this autoscaler."""
        return _decided(seen, self.verdict, self.said, self.why)


def due_by(schedule: Schedule, seen: AutoscalerSeen, time: LocalTime) -> AutoscalerDue | None:
    """Return the change to the bounds of this time; None if the autoscaler has them, and says so."""
    found = bounds_now(seen, schedule, time)
    rule, words = _in_force(found, schedule)
    change = change_to(seen, found, words)
    if change is None:
        return None
    numbers = {**_figures((found.least, found.most), plain_bounds(seen)), "time_zone": schedule.time_zone}
    return AutoscalerDue(change, "bounded", words, Reason(rule=rule, numbers=numbers))


def due_without(seen: AutoscalerSeen) -> AutoscalerDue | None:
    """Return the change to its own bounds after its schedule was removed; None if it has them."""
    change, plain = change_to_plain(seen), plain_bounds(seen)
    if change is None:
        return None
    said = f"its schedule is gone: {plain[0]} to {plain[1]} replicas, its own bounds"
    return AutoscalerDue(change, "given_back", said, Reason(rule="no schedule", numbers=_figures(plain, plain)))


def due_for_fault(seen: AutoscalerSeen, why: str) -> AutoscalerDue | None:
    """Return the change that reports an unusable schedule; None if that is reported already."""
    change = change_to_refused(seen, why)
    return None if change is None else AutoscalerDue(change, "refused", why, _stay("schedule refused", seen))


def refused_by_server(seen: AutoscalerSeen, why: str) -> Decided:
    """The API server does not take what was due; the bounds stay."""
    return _decided(seen, "refused", why, _stay("API server refused", seen))


def _decided(seen: AutoscalerSeen, verdict: Verdict, said: str, why: Reason) -> Decided:
    about = DecidedObject(kind="horizontalpodautoscaler", namespace=seen.namespace, name=seen.name)
    return Decided(area=AREA, about=about, verdict=verdict, message=said, why=(why,))


def _stay(rule: str, seen: AutoscalerSeen) -> Reason:
    return Reason(rule=rule, numbers=_figures((seen.least, seen.most), plain_bounds(seen)))


def _figures(bounds: tuple[int, int], plain: tuple[int, int]) -> dict[str, float | int | str | bool | None]:
    return {
        "min_replicas": bounds[0], "max_replicas": bounds[1],
        "plain_min_replicas": plain[0], "plain_max_replicas": plain[1],
    }  # fmt: skip


def _in_force(found: ScheduledBounds, schedule: Schedule) -> tuple[str, str]:
    """The rule that decided last, and the same as a sentence."""
    replicas = f"({schedule.time_zone}): {found.least} to {found.most} replicas"
    if found.active is None:
        return "no bound is in force", f"no bound is in force {replicas}"
    place, index = found.active
    cron = schedule.time_bounds[place].bounds[index].cron
    return f"cron {cron}", f"timeBounds[{place}].bounds[{index}] {cron!r} {replicas}"
