"""A reporter on a bus in memory and in virtual time, with the voices that it listens to."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from fixture_types import Virtual

from services.reporter.app import ReporterApp
from services.reporter.ports import ReporterPorts
from services.reporter.settings import ReporterSettings
from shared.adapters.clock import LoopClock
from shared.app import Context
from shared.contracts.allocation import Allocation
from shared.contracts.bus.subjects import state_subject
from shared.contracts.readiness import Health, Readiness, ServiceHealth
from shared.contracts.services import NODE_SERVICES
from shared.errors import Unavailable
from shared.fakes.memory_bus import MemoryBus
from shared.settings import CommonSettings, section
from shared.wire import Wire


class Writer:
    """A node writer that remembers, and fails on demand."""

    def __init__(self) -> None:
        self.documents: list[Mapping[str, Any]] = []
        self.failing = False
        self.takes_s = 0.0
        """Of a write, before it tells anything."""

    async def write(self, document: Mapping[str, Any], latest: Callable[[], Mapping[str, Any]] | None = None) -> None:
        if self.failing:
            raise Unavailable("disk is full")
        if self.takes_s:
            await asyncio.sleep(self.takes_s)
        self.documents.append(latest() if latest else document)

    @property
    def offers(self) -> list[str]:
        return [d["status"]["resourceAllocatable"]["katalyst.kubewharf.io/reclaimed_millicpu"] for d in self.documents]


class Node:
    """A reporter and the voices it listens to."""

    def __init__(self) -> None:
        self.clock, self.writer = LoopClock(), Writer()
        self.bus = MemoryBus()
        self.wires = {s: Wire(self.bus, self.clock, node="node1", service=s) for s in NODE_SERVICES}
        raw = {"reporter": {"refresh_s": 60}}
        self.context = context = Context(self.wires["reporter"], self.clock, CommonSettings(), raw)
        self.app = ReporterApp(context, ReporterPorts(self.writer), section(ReporterSettings, raw, "reporter"))
        self.beats: list[Readiness] = []

    async def offer(self, cpu_millis: int, **fields: Any) -> None:
        wire = self.wires["qrm"]
        status: dict[str, Any] = {"status": "applied", "reclaimed_memory_bytes": 195_257_901_056}
        await wire.publish(wire.stamp(Allocation, reclaimed_cpu_millis=cpu_millis, **status | fields))
        await asyncio.sleep(0.01)

    async def beat(self, *services: str, ok: bool = True) -> None:
        for service in services or NODE_SERVICES:
            wire = self.wires[service]
            health = ServiceHealth(service=service, ok=ok, why="" if ok else "no pods")
            await wire.publish(wire.stamp(Health, health=health), suffix=f".{service}")

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Node"]:
        await self.bus.subscribe(state_subject(Readiness, "*"), lambda m: self.beats.append(Readiness.decode(m.data)))
        task = asyncio.create_task(self.app.run())
        await asyncio.sleep(0.01)
        try:
            yield self
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await self.app.close()


Play = Callable[[Callable[[Node], Awaitable[None]]], Node]
"""Runs a story and returns its node."""


def player(virtual: Virtual) -> Play:
    """What runs stories in virtual time."""

    async def run(story: Callable[[Node], Awaitable[None]]) -> Node:
        async with Node().running() as node:
            await story(node)
            return node

    def play(story: Callable[[Node], Awaitable[None]]) -> Node:
        node: Node = virtual(run(story))
        return node

    return play
