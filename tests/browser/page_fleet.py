"""A fleet that a live page hears: `python page_fleet.py NATS_URL NODES`. Its loads move all the time."""

import asyncio
import math
import sys

from shared.adapters.clock import SystemClock
from shared.adapters.nats.bus import connect
from shared.contracts.bus.subjects import state_subject
from shared.contracts.cluster.cpus import CpuMap, CpuPod, CpuPool, CpuTable, CpuWatch
from shared.contracts.cluster.offer import NodeOffer, OfferedNuma, PodUses, ResourceAmounts
from shared.contracts.readiness import Readiness, ServiceHealth
from shared.ports import Bus, Clock, Received
from shared.wire import Wire

PERIOD_S = 10.0
CPUS, THREADS = 512, 2
GIB = 1 << 30


class PretendNode:
    """One node: says how it is, and its CPUs while it is watched."""

    def __init__(self, number: int, bus: Bus, clock: Clock) -> None:
        self.number, self.name, self.clock = number, f"node-{number:05}", clock
        self.wire = Wire(bus, clock, node=self.name, service="reporter")

    async def say(self) -> None:
        """Heartbeat and offer."""
        well = self.number % 97 != 5
        health = ServiceHealth(service="qrm", ok=well, why="" if well else "no pods", config_revision=7)
        await self.wire.publish(self.wire.stamp(Readiness, ready=well, mode="enforce", services=(health,)))
        used = round(24_000 * (1 + math.sin(self.number / 40 + self.clock.monotonic() / 60)))
        whole = ResourceAmounts(cpu_millis=48_000, memory_bytes=192 * GIB)
        pods = PodUses(uids=("a1", "a2"), namespaces=("shop", "batch"), names=("web", "encode"),
                       qos=("shared_cores", "reclaimed_cores"), prod=(True, False),
                       cpu_millis=(used * 2 // 3, used // 3), memory_bytes=(GIB, GIB))  # fmt: skip
        await self.wire.publish(self.wire.stamp(
            NodeOffer, reclaimed=ResourceAmounts(cpu_millis=max(0, 44_000 - used), memory_bytes=64 * GIB),
            used=ResourceAmounts(cpu_millis=used, memory_bytes=80 * GIB), usage_age_s=1.0, window_s=60.0,
            numas=(OfferedNuma(numa=0, socket=0, capacity=whole, allocatable=whole),), pods=pods,
        ))  # fmt: skip

    async def tell_cpus(self) -> None:
        """A machine of two sockets, four NUMA nodes and eight caches."""
        ids = range(CPUS)
        beat = self.clock.monotonic()
        table = CpuTable(
            ids=tuple(ids), sockets=tuple(cpu * 2 // CPUS for cpu in ids), numas=tuple(cpu * 4 // CPUS for cpu in ids),
            l3s=tuple(cpu * 8 // CPUS for cpu in ids), cores=tuple(cpu // THREADS * THREADS for cpu in ids),
            busy_percent=tuple(round(50 * (1 + math.sin(cpu / 9 + beat))) for cpu in ids),
        )  # fmt: skip
        pools = (CpuPool(pool="share", cpus="0-383"), CpuPool(pool="reclaim", cpus="368-503"),
                 CpuPool(pool="reserve", cpus="504-511"))  # fmt: skip
        pod = CpuPod(uid="a1", namespace="shop", name="web", pool="share", cpus="0-383", cpu_millis=12_500)
        await self.wire.publish(self.wire.stamp(CpuMap, table=table, pools=pools, pods=(pod,)))


async def main(url: str, count: int) -> None:
    """Speak until killed."""
    clock = SystemClock()
    bus = await connect(url, name="page-fleet", connect_timeout_s=20, clock=clock)
    nodes = {node.name: node for node in (PretendNode(number, bus, clock) for number in range(count))}
    watched: dict[str, float] = {}

    def hear(received: Received) -> None:
        watch = CpuWatch.decode(received.data)
        watched[watch.node] = clock.monotonic() + watch.watch_s

    await bus.subscribe(state_subject(CpuWatch, "*"), hear)
    for node in nodes.values():
        await node.say()
    print("said", flush=True)
    turns = list(nodes.values())
    while True:
        for step in range(100):
            for node in turns[step::100]:
                await node.say()
            if step % 10 == 0:
                for name in [name for name, until_s in watched.items() if until_s > clock.monotonic()]:
                    await nodes[name].tell_cpus()
            await clock.sleep(PERIOD_S / 100)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
