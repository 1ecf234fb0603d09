"""One pod to evict, an evictor for it, and the voices that it hears, on a real server."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from slow_machines import patience_s

from services.evictor.app import EvictorApp
from services.evictor.ports import EvictorPorts
from services.evictor.settings import NAME, EvictorSettings
from shared.adapters.clock import SystemClock
from shared.adapters.ledger.sqlite import SqliteLedger
from shared.adapters.nats.bus import NatsBus
from shared.app import Context
from shared.contracts.allocation import Allocation
from shared.contracts.pod import Container, Pod
from shared.contracts.readiness import Readiness
from shared.contracts.sample import NodeReading, NodeSample, PodReading
from shared.fakes.fake_evictor import FakeEvictor
from shared.settings import CommonSettings, section
from shared.wire import Wire

NODE = "node-a"
PATIENCE_S = patience_s(20.0)
VICTIM = Pod(
    uid="beef", name="batch", qos="reclaimed_cores", containers=(Container(name="main", cpu_request_millis=9_000),),
    grace_s=0,
)  # fmt: skip
PLENTY_MILLIS, TOO_LITTLE_MILLIS = 90_000, 100


def evictor_app(wire: Wire, state_dir: Path, evictor: FakeEvictor, **settings: Any) -> EvictorApp:
    """An evictor with its ledger in a folder."""
    context = Context(wire, wire.clock, CommonSettings(node=NODE), {NAME: settings})
    ports = EvictorPorts(SqliteLedger(state_dir), evictor)
    return EvictorApp(context, ports, section(EvictorSettings, context.raw, NAME))


class Voices:
    """Metrics, qrm and reporter of one node, as far as an evictor and central hear them."""

    def __init__(self, bus: NatsBus) -> None:
        self.bus, self.wire = bus, Wire(bus, SystemClock(), node=NODE, service="metrics")
        self.evictor = FakeEvictor(SystemClock())
        self.pods: list[Pod] = []
        self.run(VICTIM)

    def run(self, pod: Pod) -> None:
        """Start another pod."""
        self.evictor.run(pod)
        self.pods.append(pod)

    async def speak(self, offered_millis: int) -> None:
        """A sample, what is offered to the pod, and a heartbeat of the node."""
        wire = self.wire
        offer: dict[str, Any] = {"reclaimed_cpu_millis": offered_millis, "reclaimed_memory_bytes": 1 << 40}
        await wire.publish(wire.stamp(Allocation, status="applied", **offer))
        here = tuple(PodReading(pod=pod) for pod in self.pods if self.evictor.running(pod.uid))
        await wire.publish(wire.stamp(NodeSample, node_reading=NodeReading(online_cpus="0-47"), pods=here))
        await wire.publish(wire.stamp(Readiness, ready=True))

    async def speak_until(self, done: Callable[[], object], offered_millis: int) -> None:
        """Say it again until something is the case."""
        async with asyncio.timeout(PATIENCE_S):
            while not done():
                await self.speak(offered_millis)
                await asyncio.sleep(0.02)
