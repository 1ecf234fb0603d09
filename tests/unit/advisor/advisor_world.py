"""An advisor on a bus in memory and in virtual time, and the voices of the services that it listens to."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

from services.advisor.app import AdvisorApp
from services.advisor.ports import AdvisorPorts
from services.advisor.settings import AdvisorSettings
from shared.adapters.clock import LoopClock
from shared.app import Context
from shared.contracts.advice import PoolAdvice
from shared.contracts.allocation import Allocation, PodAllocation
from shared.contracts.bus.subjects import state_subject
from shared.contracts.sample import NodeSample, PodReading
from shared.core.cpus.topology import Topology, UniformShape
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Past, Received
from shared.settings import CommonSettings, section
from shared.wire import Wire

TUTORIAL_NODE = Topology.uniform(UniformShape(sockets=2, numa_per_socket=1, cores_per_numa=12, threads=2))
SOON_S = 0.01

MakePod = Callable[..., PodReading]
"""Makes a pod: name, QoS level, what it asks for, and its container's readings by name."""
MakeFields = Callable[..., dict[str, Any]]
"""Makes the fields of a sample: pods, the node's readings, and other fields by name."""
MakeSample = Callable[..., NodeSample]
"""Makes a whole sample of the same arguments."""


class Skewed(LoopClock):
    """A clock that somebody can make run ahead."""

    ahead_s = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead_s


class Node:
    """An advisor, and the voice of the metrics service."""

    def __init__(self, settings: dict[str, Any], topology: Topology = TUTORIAL_NODE, past: Past | None = None) -> None:
        self.clock, self.bus, self.waited_s = Skewed(), MemoryBus(), 0.0
        self.metrics = Wire(self.bus, self.clock, node="node1", service="metrics")
        self.qrm = Wire(self.bus, self.clock, node="node1", service="qrm")
        wire = Wire(self.bus, self.clock, node="node1", service="advisor")
        context = Context(wire, self.clock, CommonSettings(node="node1"), {"advisor": settings})
        ports = AdvisorPorts(topology, past, lambda: self.waited_s)
        self.app = AdvisorApp(context, ports, section(AdvisorSettings, context.raw, "advisor"))
        self.heard: list[tuple[float, PoolAdvice]] = []

    async def measure(self, fields: dict[str, Any]) -> NodeSample:
        sample = self.metrics.stamp(NodeSample, **fields)
        await self.metrics.publish(sample)
        await asyncio.sleep(SOON_S)
        return sample

    async def place(self, *pods: PodAllocation, idle_class: bool | None = None) -> None:
        await self.qrm.publish(self.qrm.stamp(Allocation, status="applied", pods=pods, idle_class=idle_class))
        await asyncio.sleep(SOON_S)

    @property
    def advices(self) -> list[PoolAdvice]:
        return [advice for _, advice in self.heard]

    @property
    def shares(self) -> list[int]:
        return [advice.size_of("share") for advice in self.advices]

    def _hear(self, received: Received) -> None:
        self.heard.append((self.clock.monotonic(), PoolAdvice.decode(received.data)))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Node"]:
        await self.bus.subscribe(state_subject(PoolAdvice, "*"), self._hear)
        task = asyncio.create_task(self.app.run())
        await asyncio.sleep(SOON_S)
        try:
            yield self
        finally:
            assert not task.done(), task.exception()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await self.app.close()


class Live(Protocol):
    """Runs a story with a node in virtual time."""

    def __call__(
        self,
        story: Callable[[Node], Awaitable[None]],
        settings: dict[str, Any] | None = None,
        topology: Topology = TUTORIAL_NODE,
    ) -> None: ...
