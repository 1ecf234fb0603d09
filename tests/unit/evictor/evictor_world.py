"""A node with an evictor on it: pods, samples, an allocation, a bus in memory, and a ledger on the disk."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from services.evictor.app import EvictorApp
from services.evictor.ports import EvictorPorts, PausesOfCluster
from services.evictor.settings import NAME, EvictorSettings
from shared.adapters.clock import LoopClock
from shared.adapters.files.pause import PauseFile
from shared.adapters.ledger.sqlite import SqliteLedger
from shared.app import Context
from shared.contracts.allocation import Allocation
from shared.contracts.bus.stored import read_event
from shared.contracts.bus.subjects import EVENTS_STREAM, INTENTS_STREAM, STREAMS
from shared.contracts.eviction import EvictionEvent, EvictionIntent
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import ContainerReading, NodeReading, NodeSample, NumaReading, PodReading
from shared.core.node_mode import NodeSwitch
from shared.fakes.fake_evictor import FakeEvictor
from shared.fakes.fake_taints import FakeTaints
from shared.fakes.memory_broker import MemoryBroker
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Received
from shared.settings import CommonSettings, section
from shared.wire import Wire

NODE = "node1"
GIB = 1 << 30
TOTAL_BYTES = 100 * GIB
PERIOD_S = 1.0
RECLAIMED = "reclaimed-resource-pressure-eviction-plugin"
MEMORY = "memory-pressure-eviction-plugin"
CPU_LOAD = "cpu-pressure-eviction-plugin"
CPU_SCOPE = "katalyst.kubewharf.io/reclaimed_millicpu"


def pod(name: str, qos: str = "reclaimed_cores", **fields: Any) -> Pod:
    """A pod whose UID follows from its name unless given."""
    cpu, memory = fields.pop("cpu", 0), fields.pop("memory", 0)
    containers = (Container(name="main", cpu_request_millis=cpu, memory_request_bytes=memory),)
    uid = fields.pop("uid", name.encode().hex())
    return Pod(uid=uid, name=name, qos=qos, containers=containers, **{"grace_s": 5.0} | fields)


def reading(of: Pod, used_bytes: int | None = GIB) -> PodReading:
    return PodReading(pod=of, containers=(ContainerReading(name="main", memory_usage_bytes=used_bytes),))


def sample_fields(readings: list[PodReading], free_bytes: int | None = 50 * GIB, **over: Any) -> dict[str, Any]:
    node = NodeReading(
        online_cpus="0-47",
        memory_total_bytes=TOTAL_BYTES,
        memory_free_bytes=free_bytes,
        watermark_scale_factor=100,
        kswapd_steal_pages=0,
    )
    numas = (NumaReading(numa=0, memory_total_bytes=TOTAL_BYTES, memory_free_bytes=free_bytes),)
    return {"node_reading": node, "numas": numas, "pods": tuple(readings)} | over


def readable_event(message: Received) -> EvictionEvent:
    event = read_event(message.subject, message.headers, message.data)
    assert isinstance(event, EvictionEvent), event
    return event


class Node:
    """One node over several lives of its evictor. The ledger file, the pods and the broker outlive each of them."""

    def __init__(self, folder: Path, **section: Any) -> None:
        self.folder, self.section = folder, section
        self.clock, self.broker = LoopClock(), MemoryBroker()
        self.bus = MemoryBus(self.broker, self.clock)
        self.evictor = FakeEvictor(self.clock)
        self.used: dict[str, int] = {}
        self.free_bytes: int | None = 50 * GIB
        self.offered_millis: int | None = 44_000
        self.allocation_status = "applied"
        self.voices = {s: Wire(self.bus, self.clock, node=NODE, service=s) for s in ("metrics", "qrm")}
        self.brake = PauseFile(folder)
        self.cluster_pauses: PausesOfCluster | None = None
        self.taints = FakeTaints()
        self.switch = NodeSwitch()
        self.app: EvictorApp | None = None

    async def create_streams(self) -> None:
        for spec in STREAMS:
            await self.bus.ensure_stream(spec)

    def run(self, *pods: Pod, used_bytes: int = GIB) -> None:
        self.evictor.run(*pods)
        self.used |= {p.uid: used_bytes for p in pods}

    def build(self, ledger: Any = None, actuator: Any = None, bus: Any = None) -> EvictorApp:
        wire = Wire(bus or self.bus, self.clock, node=NODE, service="evictor")
        who = actuator or self.evictor
        ports = EvictorPorts(
            ledger or SqliteLedger(self.folder), who, self.brake.why, self.taints, cluster_pauses=self.cluster_pauses
        )
        context = Context(wire, self.clock, CommonSettings(node=NODE), {NAME: self.section}, self.switch)
        self.app = EvictorApp(context, ports, section(EvictorSettings, context.raw, NAME))
        return self.app

    @contextlib.asynccontextmanager
    async def life(self, **parts: Any) -> AsyncIterator[EvictorApp]:
        """The evictor from start to stop."""
        app = self.build(**parts)
        task = asyncio.create_task(app.run())
        try:
            await asyncio.sleep(0.01)
            yield app
            if task.done():
                task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await app.close()

    async def tick(self, times: int = 1, **over: Any) -> None:
        """So many periods: offer, sample, and time to act."""
        for _ in range(times):
            if self.offered_millis is not None:
                wire = self.voices["qrm"]
                fields: dict[str, Any] = {"status": self.allocation_status, "reclaimed_memory_bytes": TOTAL_BYTES}
                await wire.publish(wire.stamp(Allocation, reclaimed_cpu_millis=self.offered_millis, **fields))
            await asyncio.sleep(0.01)
            wire = self.voices["metrics"]
            await wire.publish(wire.stamp(NodeSample, **sample_fields(self.readings(), self.free_bytes, **over)))
            await asyncio.sleep(PERIOD_S - 0.01)

    def readings(self) -> list[PodReading]:
        here = []
        for uid, one in self.evictor.pods.items():
            where = self.evictor._where(uid)
            if where != "gone":
                here.append(reading(one.model_copy(update={"terminating": where == "terminating"}), self.used[uid]))
        return here

    @property
    def events(self) -> list[EvictionEvent]:
        """Every event on the stream, in order."""
        return [readable_event(message) for message in self.broker.streams[EVENTS_STREAM].messages]

    @property
    def intents(self) -> list[EvictionIntent]:
        return [EvictionIntent.decode(m.data) for m in self.broker.streams[INTENTS_STREAM].messages]

    @property
    def story(self) -> list[tuple[str, str]]:
        """(pod, phase) of every event, in order."""
        return [(e.pod, e.phase) for e in self.events]

    @property
    def kills(self) -> Counter[str]:
        return Counter(self.evictor.kills)

    def state(self) -> dict[str, Any]:
        assert self.app is not None
        state: dict[str, Any] = json.loads(json.dumps(self.app.state(), default=str))
        return state


MakeNode = Callable[..., Node]
"""Makes a node whose evictor has the settings that are given as keywords."""

LARGE, SMALL, WEB = pod("large", cpu=24_000), pod("small", cpu=12_000), pod("web", "shared_cores")


async def overcommitted(node: Node) -> Node:
    """The tutorial's moment: 36k asked for, 4k left."""
    await node.create_streams()
    node.run(LARGE, SMALL, WEB)
    node.offered_millis = 4_000
    return node


async def short_of_memory(node: Node, *pods: Pod, free_bytes: int = GIB // 2) -> Node:
    await node.create_streams()
    node.run(*pods)
    node.free_bytes = free_bytes
    return node
