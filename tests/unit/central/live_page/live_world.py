"""A live page on a bus in memory, and the nodes that it hears."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from services.central.core.lost_nodes.rules import Rules
from services.central.live_page.app import LivePageApp
from services.central.ports.live_page import Frames
from shared.adapters.clock import LoopClock
from shared.contracts.cluster.offer import NodeOffer, OfferedNuma, PodUses, ResourceAmounts
from shared.contracts.readiness import Readiness, ServiceHealth
from shared.fakes.memory_bus import MemoryBus
from shared.wire import Wire


class KeptFrames:
    """A page server that serves nobody, and keeps what would be served."""

    url = "http://127.0.0.1:0/"

    def __init__(self) -> None:
        self.frames: Frames | None = None

    async def start(self, frames: Frames) -> None:
        self.frames = frames

    async def close(self) -> None:
        self.frames = None


class World:
    """The page, its server, and a wire for each node."""

    def __init__(self) -> None:
        self.clock, self.bus, self.server = LoopClock(), MemoryBus(), KeptFrames()
        wire = Wire(self.bus, self.clock, node="page", service="page")
        self.app = LivePageApp(wire, self.server, Rules())
        self._nodes: dict[str, Wire] = {}

    def node(self, name: str) -> Wire:
        return self._nodes.setdefault(name, Wire(self.bus, self.clock, node=name, service="reporter"))

    async def beat(self, name: str, why: str = "") -> None:
        wire = self.node(name)
        health = ServiceHealth(service="qrm", ok=not why, why=why, config_revision=3)
        await wire.publish(wire.stamp(Readiness, ready=not why, mode="enforce", services=(health,)))

    async def offer(self, name: str, **fields: Any) -> None:
        wire = self.node(name)
        await wire.publish(wire.stamp(NodeOffer, **(OFFER | fields)))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["World"]:
        task = asyncio.create_task(self.app.run())
        await asyncio.sleep(0.01)
        try:
            yield self
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await self.app.close()


OFFER: dict[str, Any] = {
    "reclaimed": ResourceAmounts(cpu_millis=4000, memory_bytes=8 << 30),
    "used": ResourceAmounts(cpu_millis=2500, memory_bytes=3 << 30),
    "numas": (OfferedNuma(numa=0, capacity=ResourceAmounts(cpu_millis=8000, memory_bytes=16 << 30)),),
    "pods": PodUses(uids=("a1", "a2", "a3"), namespaces=("d",) * 3, names=("web", "db", "batch"),
                    qos=("shared_cores", "shared_cores", "reclaimed_cores"), prod=(True, True, False),
                    cpu_millis=(1500, None, 500), memory_bytes=(None, None, None)),
}  # fmt: skip
