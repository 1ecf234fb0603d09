"""From an intent to its event in the stream: ledger, outbox and a NATS server that syncs every write, all real.

    python -m bench.stored [evictions]

Only whoever ends the pod is a stand-in, so that nothing else takes time. The clock starts before the transaction that
writes the fact and stops when the stream has acknowledged it (PubAck).
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from bench.rigs.report import Row, machine, p50_p99, progress
from services.evictor.act.announcer import Announcer
from services.evictor.act.executor import CallLimits, Executor, LastChecks
from services.evictor.core.plugin import Candidate, Pressure
from services.evictor.record.journal import EvictionRequest, IntentJournal
from services.evictor.record.outbox import Outbox
from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.adapters.ledger.sqlite import SqliteLedger
from shared.adapters.nats.bus import NatsBus, connect
from shared.adapters.nats.embedded.server import NatsServer
from shared.contracts.bus.subjects import STREAMS
from shared.contracts.envelope import Reason
from shared.contracts.pod import Pod
from shared.core.evictions.intents import IntentRecord, Outgoing, TokenBucket
from shared.fakes.fake_evictor import FakeEvictor
from shared.ports import DurableMessage, Stored
from shared.wire import Wire

EVICTIONS = 300
TARGET = "- / 50 ms"
NODE = "bench"
MEMORY = Path("/dev/shm")
STALL_S = 0.02
"""A transaction is made in the event loop: for so long nothing else of the evictor goes on."""
PRESSURE = Pressure(hard=True, scope="memory", observed=1.0, threshold=2.0)
CALL_LIMITS = CallLimits(announce_s=5.0, call_timeout_s=5.0)


class TimedLedger(SqliteLedger):
    """Notes when each message began to be written, and how long every transaction held up the event loop."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.begun_s: dict[str, float] = {}
        self.held_up_s: list[float] = []

    def begin(self, record: IntentRecord, bucket: TokenBucket, outgoing: Sequence[Outgoing]) -> None:
        self._note(outgoing)
        self._timed(super().begin, record, bucket, outgoing)

    def advance(self, record: IntentRecord, outgoing: Sequence[Outgoing] = (), **rest: Any) -> None:
        self._note(outgoing)
        self._timed(super().advance, record, outgoing, **rest)

    def published(self, fact_id: str, **rest: Any) -> None:
        self._timed(super().published, fact_id, **rest)

    def _note(self, outgoing: Sequence[Outgoing]) -> None:
        self.begun_s |= dict.fromkeys((message.fact_id for message in outgoing), time.perf_counter())

    def _timed(self, write: Any, *args: Any, **rest: Any) -> None:
        before_s = time.perf_counter()
        write(*args, **rest)
        self.held_up_s.append(time.perf_counter() - before_s)


class TimedBus:
    """Notes when the stream has acknowledged each message, by the id of its fact."""

    def __init__(self, bus: NatsBus) -> None:
        self._bus = bus
        self.stored_s: dict[str, float] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bus, name)

    async def publish_durable(self, message: DurableMessage, *, budget_s: float = 20.0) -> Stored:
        stored = await self._bus.publish_durable(message, budget_s=budget_s)
        self.stored_s[message.msg_id.rpartition("/")[0]] = (
            time.perf_counter()
        )  # its last part is random, see `message_id`
        return stored


async def timings(evictions: int, folder: Path) -> tuple[dict[str, list[float]], list[float]]:
    """Seconds from fact to acknowledgement by phase, and what each transaction of the ledger took."""
    clock = SystemClock()
    server = NatsServer(store_dir=folder / "nats")
    server.start()
    async with AsyncExitStack() as ending:
        ending.callback(server.stop)
        real = await connect(server.url, name=f"evictor/{NODE}", connect_timeout_s=10.0, clock=clock)
        ending.push_async_callback(real.drain)
        for spec in STREAMS:
            await real.ensure_stream(spec)
        bus, ledger, pods = TimedBus(real), TimedLedger(folder / "state"), FakeEvictor(clock)
        ledger.open(first_episode=1)
        ending.callback(ledger.close)
        outbox = Outbox(ledger, bus, clock)
        journal = IntentJournal(ledger, Wire(bus, clock, node=NODE, service="evictor"), written=outbox.wake)
        announcer = Announcer(ledger, bus, clock, outbox.assign_another_id)
        executor = Executor(journal, announcer, pods, clock, LastChecks(lambda _plugin: "for"))
        sending = asyncio.create_task(outbox.run())
        ending.callback(sending.cancel)
        for number in range(evictions):
            progress(f"eviction {number + 1} of {evictions}")
            pod = Pod(uid=f"{number:08x}", name=f"pod-{number}", qos="reclaimed_cores")
            pods.run(pod)
            await executor.carry_out(journal.begin(_request(pod), TokenBucket(1.0, 0.0)), CALL_LIMITS)
            while ledger.waiting_count():
                await asyncio.sleep(0.001)
    took: dict[str, list[float]] = {}
    for fact_id, begun_s in ledger.begun_s.items():
        phase = fact_id.split("/")[1] if "/" in fact_id else "intent"
        took.setdefault(phase, []).append(bus.stored_s[fact_id] - begun_s)
    return took, ledger.held_up_s


def _request(pod: Pod) -> EvictionRequest:
    why = Reason(rule="bench")
    return EvictionRequest(
        plugin="bench", mode="enforce", pressure=PRESSURE, victim=Candidate(pod, why), grace_s=0.0, deadline_s=60.0,
        based_on=(), seen_at_s=time.monotonic(),
    )  # fmt: skip


async def measure(evictions: int = EVICTIONS) -> list[Row]:
    """Rows of the table of `make bench`: in memory, where `sublet up` as root keeps its state, and on a disk."""
    telemetry.setup_logging("evictor", NODE, as_json=True, level="error")
    return [*await _rows("in memory", MEMORY, evictions), *await _rows("on a disk", None, evictions)]


async def _rows(where: str, parent: Path | None, evictions: int) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="sublet-bench-", dir=parent) as folder:
        took, held_up = await timings(evictions, Path(folder))
    told = took["intended"]
    every = [seconds for one in took.values() for seconds in one]
    stalls = sum(seconds > STALL_S for seconds in held_up)
    return [
        Row(f"intent written to stored event (PubAck), {where}, p50 / p99", p50_p99(told), len(told), TARGET),
        Row("  every fact of an eviction, p50 / p99", p50_p99(every), len(every), TARGET),
        Row("  one transaction of the ledger, p50 / p99", p50_p99(held_up), len(held_up), ""),
        Row(f"  of these longer than {STALL_S * 1000:.0f} ms", str(stalls), len(held_up), ""),
    ]


def main() -> None:
    """Print the rows."""
    rows = asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else EVICTIONS))
    print(machine())
    for row in rows:
        print(f"{row.what:<66}  {row.figure:>12}  N = {row.n}  {row.target}")


if __name__ == "__main__":
    main()
