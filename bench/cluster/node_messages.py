"""What a node spends on telling the cluster what it offers and uses, how large that is, and what central spends on it.

    python -m bench.cluster.node_messages

Ten minutes of virtual time: a sample and an allocation every two seconds, pods at work, an offer that moves each time.
The reporter is the product's, over a bus in memory; what it spends beside these messages is taken off.
"""

import asyncio
import gc
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.node_metric import sample_fields
from bench.rigs.report import Row, print_rows, progress
from services.central.node_messages import MessageBounds, NodeMessages
from services.reporter.app import ReporterApp
from services.reporter.ports import ReporterPorts
from services.reporter.settings import NAME, ReporterSettings
from shared.adapters.clock import LoopClock
from shared.app import Context
from shared.contracts.allocation import Allocation, PodAllocation, PoolAllocation
from shared.contracts.bus.subjects import state_subject
from shared.contracts.cluster.figures import PodFigures
from shared.contracts.cluster.offer import NodeOffer
from shared.contracts.envelope import Message
from shared.contracts.sample import NodeSample, NumaReading
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Received
from shared.settings import CommonSettings, section
from shared.telemetry import setup_logging
from shared.wire import Wire
from sublet.sim.virtual_time import VirtualTimeLoop

SIZES = (50, 250)
MINUTES, EVERY_S, TRIES = 10, 2.0, 2
GIB = 1 << 30
KINDS: Mapping[str, type[Message]] = {"offer": NodeOffer, "figures": PodFigures}
HEARD = MessageBounds(max_bytes=1 << 20, period_s=10.0, per_s=1e6, burst=1_000_000)


class NoWriter:
    """Writes the node's object nowhere."""

    async def write(self, document: Mapping[str, Any], _latest: object = None) -> None:
        """Take it."""


@dataclass
class Told:
    """Seconds of CPU of one life, and what was said in it."""

    spent_s: float = 0.0
    messages: dict[str, list[Received]] = field(default_factory=lambda: {name: [] for name in KINDS})

    @property
    def bytes_per_s(self) -> float:
        """Of all messages."""
        return sum(len(one.data) for kind in self.messages.values() for one in kind) / (MINUTES * 60)


def allocation_fields(pods: int, roll: random.Random) -> dict[str, Any]:
    """What is in force: every pod somewhere, and another offer than before."""
    return {
        "status": "applied",
        "reclaimed_cpu_millis": roll.randrange(40_000, 48_000),
        "reclaimed_memory_bytes": 100 * GIB,
        "pools": (PoolAllocation(pool="share", cpus="0-63"), PoolAllocation(pool="reclaim", cpus="64-127")),
        "pods": tuple(
            PodAllocation(uid=f"{number:08x}", namespace="default", name=f"service-{number}-6c7c59f868-k72r5",
                          pool="share", cpus="0-63")
            for number in range(pods)
        ),
    }  # fmt: skip


async def _life(pods: int, messages: Sequence[str]) -> Told:
    clock, bus, told, roll = LoopClock(), MemoryBus(), Told(), random.Random(17)
    wires = {who: Wire(bus, clock, node="bench", service=who) for who in ("metrics", "qrm", NAME)}
    raw = {NAME: {"cluster": dict.fromkeys(messages, True)}}
    app = ReporterApp(
        Context(wires[NAME], clock, CommonSettings(), raw),
        ReporterPorts(NoWriter()),
        section(ReporterSettings, raw, NAME),
    )
    for name, message in KINDS.items():
        await bus.subscribe(state_subject(message, "*"), told.messages[name].append)
    task = asyncio.create_task(app.run())
    numas = tuple(NumaReading(numa=n, cpus=f"{n * 64}-{n * 64 + 63}", memory_total_bytes=256 * GIB) for n in range(2))
    for _ in range(int(MINUTES * 60 / EVERY_S)):
        cores = [roll.uniform(0.05, 2.0) for _ in range(pods)]
        fields = {**sample_fields(cores), "window_s": EVERY_S, "numas": numas}
        sample = wires["metrics"].stamp(NodeSample, **fields)
        allocation = wires["qrm"].stamp(Allocation, **allocation_fields(pods, roll))
        began_s = time.process_time()
        await wires["metrics"].publish(sample, payload=b"s%d" % sample.seq)
        await wires["qrm"].publish(allocation, payload=b"a%d" % allocation.seq)
        await asyncio.sleep(EVERY_S)
        told.spent_s += time.process_time() - began_s
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return told


def life(pods: int, messages: Sequence[str]) -> Told:
    """One life of the reporter with these messages switched on: the cheapest of a few, for others disturb."""
    found = []
    for _ in range(TRIES):
        gc.collect()
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            found.append(runner.run(_life(pods, messages)))
    return min(found, key=lambda one: one.spent_s)


def heard_ms(kind: type[Message], messages: Sequence[Received]) -> float:
    """Milliseconds of CPU that central spends on one message."""
    with asyncio.Runner() as runner:

        async def hear() -> float:
            door, took_s = NodeMessages(kind, LoopClock(), HEARD, lambda _m, _s: None, service="bench"), list[float]()
            for one in messages:
                began_s = time.process_time()
                door.hear(one)
                took_s.append(time.process_time() - began_s)
            return statistics.median(took_s) * 1000

        return runner.run(hear())


def rows(pods: int) -> list[Row]:
    """The rows for a node of so many pods."""
    setup_logging("bench", "bench", as_json=False, level="error")
    found, seconds = list[Row](), MINUTES * 60
    progress(f"messages to the cluster, {pods} pods")
    before = life(pods, ())
    for name in KINDS:
        after = life(pods, (name,))
        said = after.messages[name]
        added_ms = (after.spent_s - before.spent_s) / seconds * 1000
        size_kb = statistics.median(len(one.data) for one in said) / 1000
        what, many = KINDS[name].__name__, len(said)
        often = f"{size_kb:.1f} kB, {many / MINUTES:.1f}"
        hears = f"{heard_ms(KINDS[name], said):.2f} ms"
        found += [
            Row(f"{what}, CPU that the reporter spends more, {pods} pods", f"{added_ms:.2f} ms/s", many, "1 ms/s"),
            Row(f"{what}, size and number a minute, {pods} pods", often, many, "200 kB"),
            Row(f"{what}, CPU of central for one, {pods} pods", hears, many, "-"),
        ]
    return found


async def measure() -> list[Row]:
    """The rows of `make bench`."""
    return [row for pods in SIZES for row in await asyncio.to_thread(rows, pods)]


def main() -> None:
    """Print the table."""
    print_rows(asyncio.run(measure()))


if __name__ == "__main__":
    main()
