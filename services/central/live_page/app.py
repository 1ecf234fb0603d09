"""The live page as a service: it listens, keeps the picture new, and serves it."""

import asyncio
from collections.abc import Mapping
from typing import Any

from services.central.core.lost_nodes.rules import Rules
from services.central.live_page.intake import SERVICE, LivePageIntake
from services.central.live_page.viewers import Viewers
from services.central.ports.live_page import PageServer
from shared.contracts.readiness import ServiceHealth
from shared.wire import Wire

REFRESH_S = 1.0


class LivePageApp:
    """Serves the page to whoever the server lets in, and writes nothing but requests for a node's CPUs."""

    def __init__(self, wire: Wire, server: PageServer, rules: Rules) -> None:
        self._clock, self._server = wire.clock, server
        self._intake = LivePageIntake(wire, rules)
        self._viewers = Viewers(wire, self._intake)
        self._bus = wire.bus

    async def run(self) -> None:
        """Work until cancelled.

        Raises:
            Unavailable: the address of the page cannot be had.
        """
        await self._intake.listen()
        await self._server.start(self._viewers.frames)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._intake.probe_forever(), name="page-probe")
            tasks.create_task(self._intake.follow_events(), name="page-events")
            tasks.create_task(self._viewers.watch_forever(), name="page-watch")
            while True:
                self._intake.refresh()
                self._viewers.forget_gone()
                await self._clock.sleep(REFRESH_S)

    def health(self) -> ServiceHealth:
        """Well while the bus is there: without it the page says so, and shows what it knew."""
        why = "" if self._bus.connected else "the bus is away"
        return ServiceHealth(service=SERVICE, ok=not why, why=why)

    def state(self) -> Mapping[str, Any]:
        """How many nodes are shown to how many viewers."""
        return {"nodes": len(self._intake.fleet), "viewers": len(self._viewers), "url": self._server.url}

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Take nothing: the page has static settings alone."""

    async def close(self) -> None:
        """Stop serving and listening."""
        await self._server.close()
        await self._intake.close()
