"""What the live page hears: heartbeats, offers, evictions, and the CPUs of nodes that somebody looks at."""

from collections import deque
from collections.abc import Collection

from services.central.core.heartbeats.heartbeat_rate import HEARTBEAT_BURST, HEARTBEATS_PER_S, MAX_HEARTBEAT_BYTES
from services.central.core.heartbeats.listening import BusProbe
from services.central.core.heartbeats.readiness import (
    HEARTBEAT_S,
    Assessment,
    Heard,
    Ledger,
    assess,
    forget,
    record,
)
from services.central.core.live_page.feed import KEPT_EVENTS, EvictionFeed
from services.central.core.live_page.fleet import FleetView
from services.central.core.lost_nodes.rules import Rules
from services.central.node_messages import MessageBounds, NodeMessages
from shared.contracts.bus.stored import RefusedMessage, read_event
from shared.contracts.bus.subjects import CONFIG_BUCKET, EVENTS_STREAM, event_filter, probe_subject, shard_subject
from shared.contracts.cluster.cpus import CPUS_PERIOD_S, MAX_CPUS_BYTES, CpuMap
from shared.contracts.cluster.offer import MAX_OFFER_BYTES, OFFER_PERIOD_S, NodeOffer
from shared.contracts.cluster.pauses import PAUSES_KEY, Pause, Pauses
from shared.contracts.readiness import Readiness
from shared.errors import Refused
from shared.ports import Entry, Received, Subscription
from shared.wire import Wire

SERVICE = "page"
HEARTBEAT_BOUNDS = MessageBounds(MAX_HEARTBEAT_BYTES, HEARTBEAT_S, HEARTBEATS_PER_S, HEARTBEAT_BURST)
OFFER_BOUNDS = MessageBounds(MAX_OFFER_BYTES, OFFER_PERIOD_S, per_s=1.0, burst=10)
CPUS_BOUNDS = MessageBounds(MAX_CPUS_BYTES, CPUS_PERIOD_S, per_s=2.0, burst=5)
PROBE_S = 5.0


class LivePageIntake:
    """Keeps the newest of what nodes say. Nodes are judged by central's own rules, so page and central agree."""

    def __init__(self, wire: Wire, rules: Rules) -> None:
        self._wire, self._clock, self._rules = wire, wire.clock, rules
        self.fleet, self.feed = FleetView(), EvictionFeed()
        self.assessment = Assessment()
        self.watched: frozenset[str] = frozenset()
        """The nodes whose CPUs are wanted; what others say of theirs is not kept."""
        self.cpus: dict[str, tuple[CpuMap, float]] = {}
        """The newest CpuMap of each watched node, and when it came by the monotonic clock."""
        self._heartbeats: Ledger = {}
        self._probe = BusProbe()
        self._events: deque[Received] = deque(maxlen=KEPT_EVENTS)
        self._subscriptions: list[Subscription] = []
        self._pauses: tuple[Pause, ...] = ()
        self._pauses_unread = ""

    @property
    def evictions_paused(self) -> list[str]:
        """Whose evictions operators have paused now, in words."""
        now = self._clock.wall()
        unread = [self._pauses_unread] if self._pauses_unread else []
        return unread + [pause.words for pause in self._pauses if pause.holds(now)]

    async def listen(self) -> None:
        """Hear all nodes from now on."""
        bus, clock = self._wire.bus, self._clock
        heartbeats = NodeMessages(Readiness, clock, HEARTBEAT_BOUNDS, self._take_heartbeat, service=SERVICE)
        offers = NodeMessages(NodeOffer, clock, OFFER_BOUNDS, self._take_offer, service=SERVICE)
        cpus = NodeMessages(CpuMap, clock, CPUS_BOUNDS, self._take_cpus, service=SERVICE)
        self._subscriptions += [
            await heartbeats.listen(bus),
            await bus.subscribe(shard_subject("*"), heartbeats.hear),  # where the hub divides them
            await offers.listen(bus),
            await cpus.listen(bus),
            await bus.subscribe(probe_subject(self._wire.boot_id), self._take_probe),
            await bus.watch(CONFIG_BUCKET, self._take_pauses, keys=(PAUSES_KEY,)),
        ]

    async def follow_events(self) -> None:
        """Follow the stream of evictions until cancelled."""
        async for received in self._wire.bus.follow(EVENTS_STREAM, event_filter()):
            self._events.append(received)

    async def probe_forever(self) -> None:
        """Send a message to itself: without it back, no silence of a node can be judged."""
        while True:
            await self._wire.bus.publish(probe_subject(self._wire.boot_id), b"")
            await self._clock.sleep(PROBE_S)

    def refresh(self) -> None:
        """Judge every node anew, and read the events that came since the last refresh.

        A long stream is read from its beginning: only the newest events of it are decoded.
        """
        now_s = self._clock.monotonic()
        forget(self._heartbeats, now_s, self._rules)
        self.assessment = assess(Heard(self._heartbeats, self._probe), self.assessment, now_s, self._rules)
        self.fleet.take_standings(self.assessment, self._heartbeats)
        while self._events:
            received = self._events.popleft()
            event = read_event(received.subject, received.headers, received.data)
            if not isinstance(event, RefusedMessage):
                self.feed.add(event, received.sequence)

    def watch(self, nodes: Collection[str]) -> None:
        """Keep the CPUs of these nodes, and of no others."""
        self.watched = frozenset(nodes)
        self.cpus = {node: heard for node, heard in self.cpus.items() if node in self.watched}

    async def close(self) -> None:
        """End the subscriptions."""
        for subscription in self._subscriptions:
            await subscription.stop()
        self._subscriptions.clear()

    def _take_heartbeat(self, readiness: Readiness, now_s: float) -> None:
        record(self._heartbeats, readiness, now_s)

    def _take_offer(self, offer: NodeOffer, _now_s: float) -> None:
        self.fleet.take_offer(offer)

    def _take_cpus(self, cpus: CpuMap, now_s: float) -> None:
        if cpus.node in self.watched:
            self.cpus[cpus.node] = cpus, now_s

    def _take_pauses(self, entry: Entry) -> None:
        try:
            self._pauses, self._pauses_unread = Pauses.decode(entry.value or b"{}").pauses, ""
        except Refused as refusal:
            self._pauses_unread = str(refusal)

    def _take_probe(self, _received: Received) -> None:
        self._probe = self._probe.returned(self._clock.monotonic(), self._rules)
