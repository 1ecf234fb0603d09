"""Heartbeats come over a connection of their own, whose backlog or end delays nothing else; how late it is, is said."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from central_rig import NoText
from fixture_types import Virtual

from services.central.adapters.streams import FactStreams
from services.central.app import CentralApp
from services.central.ports.app import CentralPorts
from services.central.settings import CentralSettings
from shared import telemetry
from shared.adapters.clock import LoopClock
from shared.app import Context
from shared.contracts.bus.subjects import probe_subject, state_subject
from shared.contracts.readiness import Readiness
from shared.errors import Unavailable
from shared.fakes.memory_bus import MemoryBus
from shared.settings import CommonSettings
from shared.wire import Wire


class Apart:
    """A second connection."""

    def __init__(self, bus: MemoryBus) -> None:
        self.bus, self.left = bus, False

    async def get(self) -> MemoryBus:
        return self.bus

    async def close(self) -> None:
        self.left = True


class Central:
    """Central with two connections, and a node."""

    def __init__(self) -> None:
        self.clock, self.bus = LoopClock(), MemoryBus()
        self.apart, self.others = Apart(MemoryBus(self.bus.broker)), MemoryBus(self.bus.broker)
        self.wire = Wire(self.bus, self.clock, node="hub", service="central")
        context = Context(self.wire, self.clock, CommonSettings(node="hub"))
        ports = CentralPorts(NoText(), FactStreams(self.bus, self.clock), heartbeats=self.apart)
        self.app = CentralApp(context, ports, CentralSettings())
        self.node = Wire(self.others, self.clock, node="n1", service="reporter")

    async def beat(self) -> None:
        await self.node.publish(self.node.stamp(Readiness, ready=True))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["asyncio.Task[None]"]:
        task = asyncio.create_task(self.app.run())
        await asyncio.sleep(0.01)
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.app.close()


def test_what_holds_up_the_heartbeats_holds_up_nothing_else(virtual: Virtual) -> None:
    async def story() -> None:
        central = Central()
        async with central.running():
            await asyncio.sleep(32)
            await central.beat()
            await asyncio.sleep(2)
            assert central.app.state()["nodes"]["ready"] == 1
            central.apart.bus.go_offline()
            seen: list[str] = []
            await central.bus.subscribe(state_subject(Readiness, "*"), lambda message: seen.append(message.subject))
            for _ in range(4):
                await central.beat()
                await asyncio.sleep(10)
            # The other connection works, and central does not take a node for silent that it could not hear.
            assert len(seen) == 4
            assert central.app.state()["nodes"] == {"ready": 0, "unready": 0, "late": 0, "unknown": 1}
            assert "own probe" in central.app.health().why
            central.apart.bus.go_online()
            await asyncio.sleep(6)
            await central.beat()
            await asyncio.sleep(2)
            assert central.app.state()["nodes"]["ready"] == 1
        assert central.apart.left

    virtual(story())


def test_the_end_of_that_connection_is_the_end_of_the_process(virtual: Virtual) -> None:
    async def story() -> None:
        central = Central()
        async with central.running() as task:
            central.apart.bus.close("for good")
            await asyncio.sleep(1)
            with pytest.raises(ExceptionGroup) as caught:
                task.result()
            assert caught.group_contains(Unavailable, match="for good")

    virtual(story())


@pytest.mark.parametrize("forged", [b"", b"-1", b"x" * 1000, b"99999999999999999999"])
def test_how_late_heartbeats_are_read_is_said_and_nobody_can_make_it_up(virtual: Virtual, forged: bytes) -> None:
    async def story() -> None:
        central = Central()
        async with central.running():
            await asyncio.sleep(4)
            assert central.app.health().ok
            probe = probe_subject(central.wire.boot_id)
            await central.others.publish(probe, b"0")  # the first probe, as if it had stood behind so many heartbeats
            await asyncio.sleep(0.1)
            assert central.app.health().why == ("reads heartbeats 4.0 s after they were sent: give central more CPU")
            assert telemetry.HEARTBEATS_BEHIND._value.get() == pytest.approx(4.0, abs=0.1)
            await asyncio.sleep(6)
            assert central.app.health().ok
            await central.others.publish(probe, forged)
            await asyncio.sleep(0.1)
            assert central.app.health().ok

    virtual(story())
