"""Central receives every node's heartbeats, decides which nodes are silent, and maintains streams, bucket and
configuration.

Only central creates streams and writes the bucket.
"""

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import structlog

from services.central.config.global_config import GlobalConfig
from services.central.core.heartbeats.config_tally import ConfigTally, tally
from services.central.core.heartbeats.ears import ROUND_S
from services.central.core.heartbeats.heartbeat_rate import (
    CONFIG_NEWS_BURST,
    CONFIG_NEWS_PER_S,
    HEARTBEAT_BURST,
    HEARTBEATS_PER_S,
    MAX_HEARTBEAT_BYTES,
    MOST_NODES,
    NodeRate,
)
from services.central.core.heartbeats.listening import BusProbe
from services.central.core.heartbeats.readiness import (
    NODE_STATES,
    Assessment,
    Heard,
    Ledger,
    assess,
    forget,
    reconcile,
    record,
)
from services.central.core.heartbeats.rounds import take_told
from services.central.core.lost_nodes.guards import Places
from services.central.core.objects.nodes import NodeSeen
from services.central.hearing.shards import ShardedHearing
from services.central.ports.app import CentralPorts
from services.central.settings import NAME, CentralSettings
from shared import telemetry
from shared.app import Context
from shared.contracts.bus.subjects import probe_subject, shard_of, state_subject
from shared.contracts.cluster.heard import HeardNodes
from shared.contracts.ids import node_token
from shared.contracts.readiness import Readiness, ServiceHealth
from shared.core.log_limit import LogLimit
from shared.errors import Refused, Unavailable
from shared.ports import Bus, Received, Subscription
from shared.settings import check, merge
from shared.wire import SAID_CHARACTERS

log = structlog.get_logger()

MAKE_ROOM_S = 0.5
"""A flood at the speed of a fast disk does not fill the free part of a stream in that time."""
BEHIND_S = 3.0
"""A central that reads later than that has too little CPU; its hub cuts it off after 10 s without reading."""
MOST_PROBES = 100
LISTED_NODES = 200  # of the nodes that are not ready, in the answer to `ask`: it must fit one message


class CentralApp:
    """Receives heartbeats, suspends judgement while the bus is suspect, and distributes configuration."""

    def __init__(self, context: Context, ports: CentralPorts, settings: CentralSettings) -> None:
        self._wire, self._clock = context.wire, context.clock
        self._streams, self._cluster, self._logins = ports.streams, ports.cluster, ports.logins
        self._heartbeat_bus = ports.heartbeats
        self._settings = settings
        self._config = GlobalConfig(ports.config_text, context.wire, context.clock)
        self._static = dict(context.raw.get(NAME) or {})
        self._ledger: Ledger = {}
        self._heartbeats = NodeRate(HEARTBEATS_PER_S, HEARTBEAT_BURST)
        self._log_limit = LogLimit()
        # Looked up once, for it is counted thousands of times a second.
        self._taken = telemetry.TAKEN.labels(NAME, Readiness.kind)
        self._config_news = NodeRate(CONFIG_NEWS_PER_S, CONFIG_NEWS_BURST)
        self._probe = BusProbe()
        self._hearing = asyncio.Event()
        # Read at the start alone: the hub's part of it is configuration of its own.
        shards = settings.shards
        self._shards = ShardedHearing(context.wire, shards, self._hear_node) if shards > 1 else None
        self._probe_numbers, self._probes_sent = itertools.count(), dict[bytes, float]()
        self._behind_s = 0.0
        """How late central reads what nodes send, by the newest probe that came back."""
        self._assessment = Assessment()
        self._placed: Mapping[str, NodeSeen] | None = None
        self._places = Places()
        """Of the nodes in `_placed`; another mapping of nodes has other places."""
        self._tally = ConfigTally()
        self._heard_at: float | None = None
        self._subscriptions: list[Subscription] = []

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._hear_forever())
            group.create_task(self._ensure_streams_forever())
            group.create_task(self._make_room_forever())
            group.create_task(self._configure_forever())
            group.create_task(self._probe_forever())
            group.create_task(self._assess_forever())
            if self._shards is not None:
                group.create_task(self._share_forever(self._shards))
            if self._cluster is not None:
                group.create_task(self._cluster.run(self._begin_to_lead))
            if self._logins is not None:
                group.create_task(self._logins.run())

    async def _hear_forever(self) -> None:
        """Hear the nodes, and the probe behind what they send.

        In a cluster this is a connection of its own. On a machine that leaves central too little CPU heartbeats pile
        up, until the hub ends the connection of a slow consumer; questions and configuration must not wait behind them.

        Raises:
            Unavailable: that connection is closed permanently; the process ends, and its parent restarts it.
        """
        bus = await self._bus_of_heartbeats()
        # With shards as well: what a hub does not divide (yet) comes here, to all.
        self._subscriptions += [
            await bus.subscribe(state_subject(Readiness, "*"), self._hear_node),
            await bus.subscribe(probe_subject(self._wire.boot_id), self._hear_probe),
        ]
        if self._shards is not None:
            self._subscriptions.append(await self._shards.listen(bus, self._take_told))
        self._hearing.set()
        raise Unavailable(f"the connection for heartbeats is closed: {await bus.wait_closed()}", reason="closed")

    async def _bus_of_heartbeats(self) -> Bus:
        return self._wire.bus if self._heartbeat_bus is None else await self._heartbeat_bus.get()

    async def _share_forever(self, shards: ShardedHearing) -> None:
        await self._hearing.wait()
        bus = await self._bus_of_heartbeats()
        while True:
            await shards.round(bus, self._probe, self._settings.rules)
            await self._clock.sleep(ROUND_S)

    @property
    def _leading(self) -> bool:
        """Whether this central may write: it is the only one, or the leader."""
        return self._cluster is None or self._cluster.leading

    def _begin_to_lead(self) -> None:
        """Begin with a full detection window, and compare the bucket again, because another central may have written
        it."""
        self._probe = self._probe.restarted(self._clock.monotonic())
        self._config.forget()

    def _hear_node(self, received: Received) -> None:
        """Take one heartbeat. A node may speak only for itself; the rate and the size of its messages are bounded."""
        now_s, token = self._clock.monotonic(), received.subject.rpartition(".")[2]
        # Checked before parsing, because a flood must cost as little as possible. The subject names the node, and the
        # server has checked that the sender may use it.
        if why := self._too_much(token, now_s):
            telemetry.REFUSED.labels(NAME, Readiness.kind, why).inc()
            return
        try:
            readiness = _read_heartbeat(received)
            self._refuse_old(readiness)
            before = self._ledger.get(readiness.node)
            verdict = record(self._ledger, readiness, now_s)
            if verdict != "new":
                raise Refused(f"readiness {readiness.node} {readiness.boot_id}/{readiness.seq}", reason=verdict)
        except Refused as refusal:
            telemetry.REFUSED.labels(NAME, Readiness.kind, refusal.reason).inc()
            # A node that sends nonsense must not fill the log.
            held_back = self._log_limit.may_say(Readiness.kind, now_s)
            if held_back is not None:
                log.warning("message.refused", subject=received.subject, reason=refusal.reason,
                            why=str(refusal)[:SAID_CHARACTERS], held_back=held_back)  # fmt: skip
            return
        self._taken.inc()
        self._heard_at, heartbeat = now_s, self._ledger[readiness.node]
        if self._shards is not None:
            heartbeat.shard = shard_of(received.subject)
            self._shards.hear(readiness, heartbeat)
        # Only then is there anything for a pass: a thousand heartbeats a second say nothing new.
        if before is None or before.applied != heartbeat.applied:
            self._wake(token, now_s)

    def _take_told(self, said: HeardNodes, now_s: float) -> None:
        """Take what another central has heard of nodes."""
        for node, applied in take_told(self._ledger, said, now_s, lambda *what: self._too_old_s(*what) is not None):
            if applied:
                self._wake(node_token(node), now_s)

    def _wake(self, token: str, now_s: float) -> None:
        if self._cluster is not None and self._config_news.admit(token, now_s):
            self._cluster.wake()

    def _too_old_s(self, node: str, sent_at: datetime) -> float | None:
        """How long ago a node sent something, where that is longer than a node that is heard may be silent."""
        sent_ago_s = self._cluster.sent_ago_s(node, sent_at) if self._cluster is not None else None
        return sent_ago_s if sent_ago_s is not None and sent_ago_s > self._settings.rules.late_s else None

    def _refuse_old(self, readiness: Readiness) -> None:
        """Refuse a heartbeat that says nothing of the present: a central that has just started knows no number of an
        earlier one, and would take what a hub or somebody else sends again for news of a node that is dead.

        Raises:
            Refused: it was sent longer ago than a node that is heard may be silent.
        """
        sent_ago_s = self._too_old_s(readiness.node, readiness.sent_at)
        if sent_ago_s is not None:
            raise Refused(
                f"readiness {readiness.node} {readiness.boot_id}/{readiness.seq} was sent {sent_ago_s:.0f} s ago by "
                f"its node's clock, at most {self._settings.rules.late_s:g} s; sent again by somebody, or late",
                reason="old",
            )

    def _too_much(self, token: str, now_s: float) -> str:
        """Why a heartbeat is not even read; empty: it is."""
        if len(self._heartbeats) >= MOST_NODES and not self._heartbeats.knows(token):
            return "too_many_nodes"
        return "" if self._heartbeats.admit(token, now_s) else "too_often"

    def _hear_probe(self, received: Received) -> None:
        sent_at_s = self._probes_sent.get(received.data)
        if sent_at_s is not None:
            # The probe comes behind all heartbeats before it: so late is what central reads.
            self._behind_s = self._clock.monotonic() - sent_at_s
            telemetry.HEARTBEATS_BEHIND.set(self._behind_s)
        self._probe = self._probe.returned(self._clock.monotonic(), self._settings.rules)

    async def _probe_forever(self) -> None:
        await self._hearing.wait()  # an earlier probe would come back to nobody
        while True:
            number = b"%d" % next(self._probe_numbers)
            self._probes_sent[number] = self._clock.monotonic()
            if len(self._probes_sent) > MOST_PROBES:
                del self._probes_sent[next(iter(self._probes_sent))]
            # Under this run's id, because another central's probe must not vouch for this connection.
            await self._wire.bus.publish(probe_subject(self._wire.boot_id), number)
            # Until its newest probe, and no longer, a central certainly hears its shards.
            often_s = self._settings.probe_s if self._shards is None else min(ROUND_S, self._settings.probe_s)
            await self._clock.sleep(often_s)

    async def _assess_forever(self) -> None:
        while True:
            self._assess()
            await self._clock.sleep(self._settings.assess_s)

    def _assess(self) -> None:
        now_s, before = self._clock.monotonic(), self._assessment
        rules, nodes = self._settings.rules, self._cluster.nodes() if self._cluster else None
        if nodes is None:  # nobody says which nodes there are; those that left are known by long silence alone
            forget(self._ledger, now_s, rules)
        # Since the last look only hearing may have added somebody: as many of the same nodes are the same ones.
        elif nodes is not self._placed or len(nodes) != len(self._ledger):
            reconcile(self._ledger, nodes, now_s)
        for rate in (self._heartbeats, self._config_news):
            # Drop the rates of removed nodes; invented names would otherwise fill the memory.
            if len(rate) > len(self._ledger):
                rate.retain({node_token(node) for node in self._ledger})
        if nodes is not self._placed:
            self._placed, self._places = nodes, Places.of({name: node.place for name, node in (nodes or {}).items()})
        shards = None if self._shards is None else self._shards.heard
        heard = Heard(self._ledger, self._probe, self._places, shards)
        self._assessment = assess(heard, before, now_s, rules)
        if self._cluster is not None:
            self._cluster.observe(self._ledger, self._assessment, rules, bus_well=heard.bus_well(now_s, rules))
        self._tally = tally(self._ledger, self._revision)
        self._show(self._tally, self._assessment, () if shards is None else shards.unheard(now_s, rules))
        if self._assessment.counts() != before.counts() or bool(before.paused) != bool(self._assessment.paused):
            log.info("nodes.assessed", **self._assessment.counts(), paused=list(self._assessment.paused))

    @staticmethod
    def _show(revisions: ConfigTally, assessment: Assessment, unheard: Sequence[int]) -> None:
        """Set the metrics that say how the nodes are."""
        for config_state, nodes_in_it in revisions.counts().items():
            telemetry.CONFIG_NODES.labels(config_state).set(nodes_in_it)
        counts = assessment.counts()
        for state in NODE_STATES:
            telemetry.NODES_READY.labels(state).set(counts[state])
        telemetry.UNHEARD_SHARDS.set(len(unheard))

    async def _ensure_streams_forever(self) -> None:
        """Make streams and bucket, and make them again should a server have lost them."""
        while True:
            made = self._leading and await self._streams.ensure(self._settings.stream_replicas)
            if made:
                self._config.forget()  # the bucket may be a new one
            await self._clock.sleep(self._settings.reconcile_s if made else self._settings.retry_s)

    async def _make_room_forever(self) -> None:
        while True:
            # Without streams there is nothing to make room in, and `ensure` has reported why.
            if self._leading and not self._streams.failure:
                await self._streams.make_room()
            await self._clock.sleep(MAKE_ROOM_S)

    async def _configure_forever(self) -> None:
        while True:
            # Centrals that do not lead observe it as well, so a new leader knows the file.
            self._config.observe()
            if self._leading and not self._streams.failure:
                await self._config.reconcile()
            await self._clock.sleep(self._settings.config_poll_s)

    @property
    def _revision(self) -> int:
        """The newest known revision. A central that does not lead learns it from the bus, as every service does."""
        return max(self._config.revision, self._wire.config_rev)

    def health(self) -> ServiceHealth:
        """Report well while the streams exist and central receives its own probe."""
        now_s = self._clock.monotonic()
        why = self._streams.failure if self._leading else ""
        if not why and self._cluster is not None:
            why = self._cluster.failure()
        if not why and self._logins is not None:
            why = self._logins.failure
        if not why and not self._probe.well(now_s, self._settings.rules):
            why = "does not hear its own probe on the bus"
        if not why and self._behind_s > BEHIND_S:
            why = f"reads heartbeats {self._behind_s:.1f} s after they were sent: give central more CPU"
        age_s = None if self._heard_at is None else now_s - self._heard_at
        return ServiceHealth(service=NAME, ok=not why, why=why, input_age_s=age_s)

    def state(self) -> Mapping[str, Any]:
        """Counts of nodes, those that are not ready, the guards, and the configuration in force."""
        counts = self._assessment.counts()
        others = list(self._assessment.others.items())
        return {
            "health": self.health().model_dump(mode="json"),
            "nodes": counts,
            "not_ready": {node: {"state": s.state, "why": s.why} for node, s in others[:LISTED_NODES]},
            "not_ready_unlisted": max(0, len(others) - LISTED_NODES),
            "paused": list(self._assessment.paused),
            "store_failure": self._streams.failure,
            "conditions": self._streams.conditions()[:LISTED_NODES],
            "config": {
                "file": self._config.name,
                "revision": self._revision,
                "refused": self._config.refusal,
                "nodes": self._tally.counts(),
                "refusals": list(self._tally.refusals()),
            },
            **({"shards": self._shards.state()} if self._shards is not None else {}),
            **({"cluster": self._cluster.state()} if self._cluster is not None else {}),
        }

    def reconfigure(self, section: Mapping[str, Any]) -> None:
        """Take new settings, whole or not at all; new rules begin with a full detection window.

        Raises:
            BadConfig: a key or a value cannot be used.
        """
        settings = check(CentralSettings, merge(self._static, section), where=NAME)
        # Silence measured under other bounds says nothing about these.
        if settings.rules != self._settings.rules:
            self._probe = self._probe.restarted(self._clock.monotonic())
        self._settings = settings

    async def close(self) -> None:
        """End the subscriptions; streams and configuration stay."""
        for subscription in self._subscriptions:
            await subscription.stop()
        self._subscriptions.clear()
        if self._shards is not None:
            await self._shards.close()
        if self._cluster is not None:
            await self._cluster.close()
        if self._logins is not None:
            await self._logins.close()
        if self._heartbeat_bus is not None:
            await self._heartbeat_bus.close()
        await self._wire.stop()


def _read_heartbeat(received: Received) -> Readiness:
    """A heartbeat of the node that its subject names.

    Raises:
        Refused: too large, not a heartbeat, or of another node.
    """
    # Before decoding: the size is known, what it holds is not.
    size = len(received.data)
    if size > MAX_HEARTBEAT_BYTES:
        raise Refused(f"{received.subject}: {size} bytes, at most {MAX_HEARTBEAT_BYTES} are read", reason="too_large")
    readiness = Readiness.decode(received.data)
    # The server checks subjects and not contents (docs/facts/safety-rules.md#rule-8-least-right).
    if received.subject.rpartition(".")[2] != node_token(readiness.node):
        raise Refused(f"{received.subject} speaks for node {readiness.node!r}", reason="foreign_node")
    return readiness
