"""What a second of central costs by the number of nodes: their heartbeats, their kubelets' leases, its look at all.

Its own CPU time, without the bus and the API server, so that a machine that others keep busy can tell it.
"""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.rigs.report import Row, progress
from services.central.adapters.streams import FactStreams
from services.central.adapters.watched_file import WatchedFile
from services.central.app import CentralApp
from services.central.core.heartbeats.listening import BusProbe
from services.central.core.heartbeats.readiness import Assessment, Heard, Ledger, assess, record
from services.central.core.lost_nodes.guards import Places
from services.central.core.lost_nodes.rules import Rules
from services.central.core.objects.nodes import LeaseSeen, agent_of, node_of
from services.central.core.view.cluster_view import ClusterView
from services.central.core.view.evidence import ClusterObservation, LostEvidence
from services.central.ports.app import CentralPorts
from services.central.ports.mirrors import RenewedLeases
from services.central.settings import CentralSettings
from shared import telemetry
from shared.adapters.clock import SystemClock
from shared.adapters.kube.client import MAX_EVENT_BYTES
from shared.app import Context
from shared.contracts.bus.subjects import state_subject
from shared.contracts.readiness import Readiness
from shared.core.text.json_text import read_json_object
from shared.fakes.memory_bus import MemoryBus
from shared.ports import Received, Subscription
from shared.settings import CommonSettings
from shared.wire import Wire
from sublet.fleet import documents
from sublet.fleet.plan import FleetPlan
from sublet.fleet.simulated_node import SimulatedNode

SIZES = (1_000, 10_000, 50_000)
PERIOD_S = 10.0
"""Between two heartbeats of a node, and two renewals of a lease."""
LOOKS = 5


class Ear(MemoryBus):
    """A bus that gives away who listens."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers: dict[str, Callable[[Received], None]] = {}

    async def subscribe(self, subject: str, handler: Callable[[Received], None]) -> Subscription:
        """Keep the handler."""
        self.handlers[subject] = handler
        return await super().subscribe(subject, handler)


def spent_s(work: Callable[[], object]) -> float:
    """The CPU time of some work."""
    began_s = time.process_time()
    work()
    return time.process_time() - began_s


async def ear_of_central() -> Callable[[Received], None]:
    """What central does with a heartbeat."""
    bus, clock = Ear(), SystemClock()
    wire = Wire(bus, clock, node="hub", service="central")
    ports = CentralPorts(WatchedFile(Path("/nowhere/config.yaml")), FactStreams(bus, clock))
    app = CentralApp(Context(wire, clock, CommonSettings(), {}), ports, CentralSettings())
    running = asyncio.create_task(app.run())
    subject = state_subject(Readiness, "*")
    while subject not in bus.handlers:
        await asyncio.sleep(0)
    hear = bus.handlers[subject]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return hear


def heartbeats_s(hear: Callable[[Received], None], nodes: Sequence[SimulatedNode]) -> float:
    """Of one of each node, the second one, for the first makes room for its node."""
    now, beats = datetime.now(UTC), list[Received]()

    def hear_all() -> None:
        for beat in beats:
            hear(beat)

    for _ in range(2):
        beats = [Received(node.subject, node.heartbeat(now), {}) for node in nodes]
        took_s = spent_s(hear_all)
    return took_s


def leases_s(names: Sequence[str]) -> float:
    """Of reading one renewal of each."""
    renewals = RenewedLeases()
    lines = [json.dumps({"type": "MODIFIED", "object": documents.lease(name)}).encode() for name in names]

    def read() -> None:
        for line in lines:
            renewals.read(read_json_object(line, what="watch", max_bytes=MAX_EVENT_BYTES)["object"])

    return spent_s(read)


class Looks:
    """What central makes of a cluster that is well, each second."""

    def __init__(self, names: Sequence[str]) -> None:
        self._nodes = {name: node_of(documents.node(number, name)) for number, name in enumerate(names)}
        self._agents = [agent for name in names if (agent := agent_of(documents.agent(name))) is not None]
        self._leases = [LeaseSeen(name, "0") for name in names]
        self._places = Places.of({name: node.place for name, node in self._nodes.items()})
        self._ledger: Ledger = {}
        now = datetime.now(UTC)
        for name in names:
            record(self._ledger, Readiness.decode(SimulatedNode(name).heartbeat(now)), 0.0)
        self._evidence, self._assessment, self._rules = LostEvidence(40.0), Assessment(), Rules()

    def look(self, at_s: float, renewed: Sequence[LeaseSeen]) -> ClusterView:
        """The view of one moment."""
        heard = Heard(self._ledger, BusProbe(at_s, at_s - 1000.0), self._places)
        self._assessment = assess(heard, self._assessment, at_s, self._rules)
        leases = renewed if self._evidence.knows_leases else self._leases
        seen = ClusterObservation(self._nodes, self._agents, leases, self._assessment, bus_well=True, api_age_s=0.0)
        judged = self._evidence.judge_all(seen, at_s, self._rules)
        return ClusterView(judged, self._nodes, {}, self._evidence.pods, self._assessment)

    def took_s(self) -> float:
        """Of one look, behind the first, which knows nothing of the one before."""
        at_once = round(len(self._leases) / PERIOD_S)
        self.look(1.0, ())

        def all_looks() -> None:
            for number in range(LOOKS):
                renewed = [LeaseSeen(lease.node, f"{number}") for lease in self._leases[:at_once]]
                assert not self.look(2.0 + number, renewed).others

        return spent_s(all_looks) / LOOKS


async def rows_of(count: int) -> list[Row]:
    """The rows of so many nodes."""
    telemetry.setup_logging("bench", "bench", as_json=False, level="critical")
    progress(f"what a second of central costs with {count} nodes")
    names = FleetPlan(count).names()
    hear = await ear_of_central()
    beats_s = heartbeats_s(hear, [SimulatedNode(name) for name in names]) / PERIOD_S
    reading_s, looking_s = leases_s(names) / PERIOD_S, Looks(names).took_s()
    parts = " + ".join(f"{1000 * part:.1f}" for part in (beats_s, reading_s, looking_s))
    whole_s = beats_s + reading_s + looking_s
    return [Row(f"a second of central, {count} nodes: heartbeats + leases + a look at all, CPU of a core",
                f"{parts} ms, {whole_s:.1%}", count, "-")]  # fmt: skip


async def measure() -> list[Row]:
    """The rows of `make bench`."""
    return [row for count in SIZES for row in await rows_of(count)]
