"""The extender's tasks: mirrors, the messages of nodes, what was decided, and the server that answers."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from services.central.core.scheduling.cluster.node_documents import said_by_node
from services.central.core.scheduling.cluster.placement_view import PlacementView
from services.central.node_messages import MessageBounds, NodeMessages
from services.central.scheduling.mirrors import SchedulingMirrors
from services.central.serving.serving import Serving
from shared import telemetry
from shared.contracts.cluster.offer import NodeOffer
from shared.contracts.envelope import MAX_MESSAGE_BYTES
from shared.errors import Unavailable
from shared.ports import Bus, Clock

log = structlog.get_logger()

NAME = "extender"
OFFERS = MessageBounds(max_bytes=MAX_MESSAGE_BYTES, period_s=10.0, per_s=20.0, burst=40)
"""A node publishes its offer at once when it changes: many times a second while a machine fills up."""
LOOK_S = 5.0


class OfferListener:
    """Receives nodes' offers, as soon as the bus is connected."""

    def __init__(self, view: PlacementView, clock: Clock, bus: Callable[[], Awaitable[Bus]]) -> None:
        self._view, self._clock, self._bus = view, clock, bus
        self._messages = NodeMessages(NodeOffer, clock, OFFERS, self._take, service=NAME)

    async def run(self) -> None:
        """Listen until cancelled.

        Raises:
            Unavailable: the bus will not come back.
        """
        bus = await self._bus()
        await self._messages.listen(bus)
        raise Unavailable(f"bus client closed for good: {await bus.wait_closed()}", reason="closed")

    def _take(self, offer: NodeOffer, heard_s: float) -> None:
        self._view.hear(offer.node, said_by_node(offer, heard_s, self._clock.wall().timestamp()))


class ExtenderController:
    """Every replica answers; it needs the API server, and is better with the bus."""

    def __init__(
        self,
        view: PlacementView,
        mirrors: SchedulingMirrors,
        serving: Serving,
        clock: Clock,
        tasks: Mapping[str, Callable[[], Awaitable[None]]],
    ) -> None:
        """`tasks`: further tasks, by name."""
        self._view, self._mirrors, self.serving, self._clock, self._tasks = view, mirrors, serving, clock, dict(tasks)

    @property
    def failure(self) -> str:
        """Why schedulers would not be answered; "" while they are."""
        return self.serving.failure

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for mirror in self._mirrors.every:
                tasks.create_task(mirror.run(), name="extender-mirror")
            for name, work in self._tasks.items():
                tasks.create_task(_run(work), name=f"extender-{name}")
            tasks.create_task(self.serving.run(), name="extender-server")
            tasks.create_task(self._measure(), name="extender-ages")

    async def close(self) -> None:
        """Stop answering."""
        await self.serving.close()

    async def _measure(self) -> None:
        while True:
            now_s = self._clock.monotonic()
            ages = [now_s - one.heard_s for one in self._view.heard.values()]
            fresh = [age_s for age_s in ages if age_s <= self._view.said_max_age_s]
            telemetry.EXTENDER_SILENT.set(len(self._view.nodes.things) - len(fresh))
            telemetry.EXTENDER_DATA_AGE.set(max(fresh, default=0.0))
            await self._clock.sleep(LOOK_S)


async def _run(work: Callable[[], Awaitable[Any]]) -> None:
    await work()
