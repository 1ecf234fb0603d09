"""Who looks at the live page, at which node, and what each is sent."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from services.central.core.live_page.cpu_map import cpu_map
from services.central.core.live_page.fleet import CLASSES, COLUMNS
from services.central.live_page.intake import LivePageIntake
from shared.contracts.cluster.cpus import MAX_WATCH_S, WATCH_PERIOD_S, CpuWatch
from shared.contracts.ids import NodeName
from shared.errors import Refused
from shared.wire import Wire

FRAME_S = 1.0
"""Between two frames of a viewer."""
MAX_VIEWERS = 32
MAX_WATCHED = 16
"""Nodes that tell their CPUs at a time: each sends up to 128 KiB a second."""
CPUS_AGE_S = 3 * WATCH_PERIOD_S
"""CPUs that are older are shown no more."""


@dataclass(eq=False, slots=True)
class _Viewer:
    node: NodeName | None
    fleet_revision: int = 0
    event_sequence: int = 0
    cpus_sent_s: float = float("-inf")


class Viewers:
    """Makes a frame a second for each viewer: what has changed since the frame before."""

    def __init__(self, wire: Wire, intake: LivePageIntake) -> None:
        self._wire, self._clock, self._intake = wire, wire.clock, intake
        self._viewers: set[_Viewer] = set()
        self._opened = asyncio.Event()

    def __len__(self) -> int:
        return len(self._viewers)

    async def frames(self, node: NodeName | None) -> AsyncGenerator[bytes, None]:
        """The frames of one viewer, as JSON, until the caller ends; `node` is the node whose CPUs are wanted.

        Raises:
            Refused: there are as many viewers already as are answered.
        """
        if len(self._viewers) >= MAX_VIEWERS:
            raise Refused(f"{MAX_VIEWERS} viewers are there already; close another page", reason="too_many")
        viewer = _Viewer(node)
        self._viewers.add(viewer)
        self._opened.set()
        try:
            yield self._frame(viewer, first=True)
            while True:
                await self._clock.sleep(FRAME_S)
                yield self._frame(viewer, first=False)
        finally:
            self._viewers.discard(viewer)

    async def watch_forever(self) -> None:
        """Ask the nodes that viewers look at for their CPUs, again and again, until cancelled."""
        while True:
            watched = sorted({viewer.node for viewer in self._viewers if viewer.node is not None})[:MAX_WATCHED]
            self._intake.watch(watched)
            for node in watched:
                message = self._wire.stamp(CpuWatch, watch_s=min(MAX_WATCH_S, 3 * WATCH_PERIOD_S))
                await self._wire.publish(message.model_copy(update={"node": node}))
            self._opened.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WATCH_PERIOD_S):
                    await self._opened.wait()

    def forget_gone(self) -> None:
        """Drop what every viewer has been told of nodes that are gone."""
        told = [viewer.fleet_revision for viewer in self._viewers]
        self._intake.fleet.forget_gone(min(told, default=self._intake.fleet.revision))

    def _frame(self, viewer: _Viewer, *, first: bool) -> bytes:
        intake = self._intake
        changes = intake.fleet.changes(viewer.fleet_revision)
        viewer.fleet_revision = changes.revision
        viewer.event_sequence, events = intake.feed.since(viewer.event_sequence)
        frame: dict[str, Any] = {
            "at": self._clock.wall().isoformat(),
            "nodes": changes.rows,
            "gone": changes.gone,
            "events": events,
            "bus": intake.assessment.bus_suspect,
            "paused": intake.assessment.guards.paused,
            "evictions_paused": intake.evictions_paused,
        }
        if first:
            frame |= {"first": True, "columns": COLUMNS, "classes": CLASSES}
        if viewer.node is not None:
            frame["cpus"] = self._cpus(viewer, viewer.node)
        return json.dumps(frame, separators=(",", ":")).encode()

    def _cpus(self, viewer: _Viewer, node: NodeName) -> dict[str, Any] | None:
        """The node's CPUs where they are newer than what the viewer has; None: there is nothing new."""
        cpus, heard_s = self._intake.cpus.get(node, (None, float("-inf")))
        if cpus is None or heard_s <= viewer.cpus_sent_s or self._clock.monotonic() - heard_s > CPUS_AGE_S:
            return None
        viewer.cpus_sent_s = heard_s
        return cpu_map(cpus)
