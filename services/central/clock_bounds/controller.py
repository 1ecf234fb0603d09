"""The controller of clock bounds: every minute, and on each change, autoscalers get the bounds of now."""

import asyncio
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import structlog

from services.central.clock_bounds.zones import utc_offset_minutes
from services.central.core.clock_bounds.autoscaler import (
    AUTOSCALERS,
    AutoscalerSeen,
    autoscaler_of,
    change_to_refused,
)
from services.central.core.clock_bounds.due import (
    AutoscalerDue,
    due_by,
    due_for_fault,
    due_without,
    refused_by_server,
)
from services.central.core.clock_bounds.replicas import LocalTime
from services.central.core.clock_bounds.schedule import SCHEDULE, read_schedule
from services.central.leadership.each_node import EachNode
from services.central.leadership.passes import Passes, PassSchedule
from services.central.ports.decisions import DecisionLog
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
        self._passes = Passes("clock_bounds", clock, changed, self.reconcile, PassSchedule(self._until_next_minute))
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
        """Return what is refused and what could not be written, by namespace and name."""
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
        due = {one.key: one for one in self._autoscalers.objects.values() if self._due(one) is not None}
        self._writing.retain(due)
        self._would_write = sorted(due) if self._switch.observes else []
        if not self._switch.observes:
            await self._writing.each(sorted(due), lambda key: self._write(due[key]))

    async def _write(self, known: AutoscalerSeen) -> None:
        """Write what follows from the current autoscaler; its status changes too often for the mirror's copy."""
        document = await self._objects.get(AUTOSCALERS, known.name, known.namespace)
        seen = None if document is None else autoscaler_of(document)
        due = None if seen is None else self._due(seen)
        if document is None or seen is None or due is None:
            return
        version = str(document["metadata"].get("resourceVersion") or "")
        try:
            await self._objects.patch(AUTOSCALERS, due.change.document(seen, version))
        except Refused as refusal:
            # For example a least of 0 where the feature is off: report it on the object, which would otherwise not show
            # it.
            told = change_to_refused(seen, str(refusal))
            if told is not None and due.change.bounds is not None:
                await self._objects.patch(AUTOSCALERS, told.document(seen, version))
            self._decisions.say(refused_by_server(seen, str(refusal)))
            raise
        self._decisions.say(due.decided(seen))
        log.info("clock_bounds.written", autoscaler=seen.key, bounds=due.change.bounds)

    def _due(self, seen: AutoscalerSeen) -> AutoscalerDue | None:
        text = seen.annotations.get(SCHEDULE)
        if text is None:
            return due_without(seen)
        try:
            schedule = read_schedule(text)
            now = self._clock.wall()
            time = LocalTime(now.timestamp(), utc_offset_minutes(schedule.time_zone, now))
        except Refused as refusal:
            self._refused[seen.key] = str(refusal)
            return due_for_fault(seen, str(refusal))
        return due_by(schedule, seen, time)

    def _until_next_minute(self) -> float:
        return 60 - self._clock.wall().timestamp() % 60
