"""The evictor on a real NATS server: an outage costs no event, and each arrives once by its CloudEvents id."""

import asyncio
from pathlib import Path
from typing import Any

from evictor_rig import NODE, evictor_app
from fixture_types import Until
from slow_machines import patience_s

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.allocation import Allocation
from shared.contracts.bus.stored import read_event
from shared.contracts.bus.subjects import EVENTS_STREAM, INTENTS_STREAM, STREAMS
from shared.contracts.eviction import EvictionEvent, EvictionIntent
from shared.contracts.pod import Container, Pod
from shared.contracts.sample import NodeReading, NodeSample, PodReading
from shared.fakes.fake_evictor import FakeEvictor
from shared.fakes.memory_broker import MemoryBroker
from shared.fakes.memory_bus import MemoryBus
from shared.wire import Wire


class TwoBuses:
    """State over a bus in memory, so that samples go on while the server is down; facts over the real one."""

    def __init__(self, memory: MemoryBus, real: NatsBus) -> None:
        self._memory, self._real = memory, real

    def __getattr__(self, name: str) -> Any:
        durable = name in ("connected", "publish_durable", "replay")
        return getattr(self._real if durable else self._memory, name)


def batch(name: str, cpu_millis: int) -> Pod:
    container = Container(name="main", cpu_request_millis=cpu_millis)
    return Pod(uid=name.encode().hex(), name=name, qos="reclaimed_cores", containers=(container,), grace_s=0)


async def test_events_of_an_outage_arrive_once_each_in_order_after_it(
    server: NatsServer, tmp_path: Path, until: Until
) -> None:
    clock = SystemClock()
    real = await connect(server.url, name="evictor/node-a", connect_timeout_s=5, clock=clock)
    for spec in STREAMS:
        await real.ensure_stream(spec)
    memory = MemoryBus(MemoryBroker(), clock)
    wire = Wire(TwoBuses(memory, real), clock, node=NODE, service="evictor")
    voice = Wire(memory, clock, node=NODE, service="metrics")
    pods = [batch("one", 40_000), batch("two", 30_000), batch("three", 20_000)]
    evictor = FakeEvictor(clock)
    stays = batch("stays", 50_000).model_copy(update={"namespace": "kube-system"})
    evictor.run(*pods, stays)
    app = evictor_app(wire, tmp_path, evictor, cooling_s=0, announce_s=0.2)
    task = asyncio.create_task(app.run())

    async def pressed_until(kills: int) -> None:
        """Samples and an offer far too small, until so many pods were evicted."""
        while len(evictor.kills) < kills:
            offer = voice.stamp(Allocation, status="applied", reclaimed_cpu_millis=100, reclaimed_memory_bytes=1 << 40)
            await voice.publish(offer)
            # A sample of before an eviction that is judged after it would begin another one, which is called off.
            going = {intent["pod_uid"] for intent in app.state()["live"]}
            here = tuple(PodReading(pod=p) for p in (*pods, stays) if evictor.running(p.uid) and p.uid not in going)
            await voice.publish(voice.stamp(NodeSample, node_reading=NodeReading(online_cpus="0-47"), pods=here))
            await asyncio.sleep(0.01)

    try:
        async with asyncio.timeout(patience_s(20)):
            await pressed_until(1)
            await until(lambda: app.state()["outbox"] == 0)
            server.kill()
            await until(lambda: not real.connected)
            await pressed_until(3)
            await until(lambda: app.state()["outbox"] == 8)  # two intents with three events each
            server.start()
            await until(lambda: app.state()["outbox"] == 0)
            messages = await real.replay(EVENTS_STREAM, ">")
            intents = [EvictionIntent.decode(m.data) for m in await real.replay(INTENTS_STREAM, ">")]
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await app.close()
        await real.drain()
    ids = [m.headers["ce-id"] for m in messages]
    assert len(ids) == len(set(ids)) == 9
    events = [read_event(m.subject, m.headers, m.data) for m in messages]
    told = [(e.pod, e.phase) for e in events if isinstance(e, EvictionEvent)]
    assert len(told) == len(events)
    assert told == [(p.name, phase) for p in pods for phase in ("intended", "created", "succeeded")]
    assert [i.pod for i in intents] == ["one", "two", "three"]
