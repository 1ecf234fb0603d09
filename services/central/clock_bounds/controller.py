"""The controller of clock bounds: every minute, and on each change, autoscalers get the bounds of now."""

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import structlog

from services.central.clock_bounds.zones import utc_offset_minutes
from services.central.core.clock_bounds.autoscaler import (
    AUTOSCALERS,
    STATUS,
    AutoscalerChange,
    AutoscalerSeen,
    autoscaler_of,
    bounds_now,
    change_to,
    change_to_plain,
    change_to_refused,
)
from services.central.core.clock_bounds.replicas import LocalTime, ScheduledBounds
from services.central.core.clock_bounds.schedule import SCHEDULE, Schedule, read_schedule
from services.central.leadership.each_node import EachNode
from services.central.leadership.passes import Passes
from services.central.ports.decisions import DecisionLog
from shared.contracts.cluster.decision import Decided, DecidedObject
from shared.core.node_mode import NodeSwitch
from shared.errors import Refused
from shared.ports import Clock, ObjectMirror, Objects

log = structlog.get_logger()

LISTED: Final = 100
"""Autoscalers that are named in the state."""


class ClockBoundsController:
    """Writes through objects that only the leader may write. One that fails holds up no other."""

    def __init__(self, objects: Objects, clock: Clock, switch: NodeSwitch, decisions: DecisionLog) -> None:
        self._objects, self._clock, self._switch, self._decisions = objects, clock, switch, decisions
        changed = asyncio.Event()
        self._autoscalers = objects.mirror(AUTOSCALERS, autoscaler_of, changed.set)
        self._writing = EachNode(clock, "bound HorizontalPodAutoscaler by the clock")
        self._passes = Passes("clock_bounds", clock, changed, self.reconcile, self._until_next_minute)
        self._refused: dict[str, str] = {}
        self._would_write: list[str] = []

    @property
    def mirrors(self) -> Sequence[ObjectMirror[Any]]:
        """The autoscalers that carry an annotation of ours."""
        return [self._autoscalers]

    @property
    def failure(self) -> str:
        """Why the newest pass failed; "" after a good one."""
        return self._passes.failure

    async def run(self) -> None:
        """Work until cancelled."""
        await self._passes.run()

    def state(self) -> dict[str, Any]:
        """What is refused and what could not be written, by namespace and name."""
        return {
            "failure": self.failure,
            "refused": dict(islice(sorted(self._refused.items()), LISTED)),
            "would_write": self._would_write[:LISTED],
            "not_written": dict(islice(sorted(self._writing.failures.items()), LISTED)),
        }

    async def reconcile(self) -> None:
        """Bring every autoscaler to the bounds of now, one after the other.

        Raises:
            SubletError: the API server is away, or another one leads.
        """
        self._refused.clear()
        due = {one.key: one for one in self._autoscalers.objects.values() if self._change(one) is not None}
        self._writing.retain(due)
        self._would_write = sorted(due) if self._switch.observes else []
        if not self._switch.observes:
            await self._writing.each(sorted(due), lambda key: self._write(due[key]))

    async def _write(self, known: AutoscalerSeen) -> None:
        """Write what follows from the autoscaler as it is now; its status changes too often for the mirror's."""
        document = await self._objects.get(AUTOSCALERS, known.name, known.namespace)
        seen = None if document is None else autoscaler_of(document)
        change = None if seen is None else self._change(seen)
        if document is None or seen is None or change is None:
            return
        version = str(document["metadata"].get("resourceVersion") or "")
        try:
            await self._objects.patch(AUTOSCALERS, change.document(seen, version))
        except Refused as refusal:
            # Such as a least of 0 where the feature is off: said on the object, which else would not tell.
            told = change_to_refused(seen, str(refusal))
            if told is not None and change.bounds is not None:
                await self._objects.patch(AUTOSCALERS, told.document(seen, version))
            self._say(seen, "refused", str(refusal))
            raise
        said = change.annotations.get(STATUS) or ""
        self._say(seen, "refused" if seen.key in self._refused else "bounded" if said else "given_back", said)
        log.info("clock_bounds.written", autoscaler=seen.key, bounds=change.bounds)

    def _say(self, seen: AutoscalerSeen, verdict: str, message: str) -> None:
        about = DecidedObject(kind="horizontalpodautoscaler", namespace=seen.namespace, name=seen.name)
        self._decisions.say(Decided(area="clock_bounds", about=about, verdict=verdict, message=message))

    def _change(self, seen: AutoscalerSeen) -> AutoscalerChange | None:
        text = seen.annotations.get(SCHEDULE)
        if text is None:
            return change_to_plain(seen)
        try:
            schedule = read_schedule(text)
            now = self._clock.wall()
            time = LocalTime(now.timestamp(), utc_offset_minutes(schedule.time_zone, now))
        except Refused as refusal:
            self._refused[seen.key] = str(refusal)
            return change_to_refused(seen, str(refusal))
        found = bounds_now(seen, schedule, time)
        return change_to(seen, found, _said(found, schedule))

    def _until_next_minute(self) -> float:
        return 60 - self._clock.wall().timestamp() % 60


def _said(found: ScheduledBounds, schedule: Schedule) -> str:
    if found.active is None:
        return f"no bound is in force ({schedule.time_zone}): {found.least} to {found.most} replicas"
    place, index = found.active
    cron = schedule.time_bounds[place].bounds[index].cron
    return (
        f"timeBounds[{place}].bounds[{index}] {cron!r} ({schedule.time_zone}): {found.least} to {found.most} replicas"
    )
