"""Hear this central's shards of the heartbeats, tell the others what was heard, and take what they tell."""

from collections.abc import Callable
from dataclasses import dataclass

from services.central.core.heartbeats.ears import ROUND_S, OtherCentrals, ears_of
from services.central.core.heartbeats.listening import BusProbe, ShardsHeard
from services.central.core.heartbeats.readiness import Heartbeat
from services.central.core.heartbeats.rounds import OwnRounds
from services.central.core.lost_nodes.rules import Rules
from services.central.node_messages import MessageBounds, NodeMessages
from shared.contracts.bus.subjects import shard_subject, state_subject
from shared.contracts.cluster.heard import MAX_ROUND_BYTES, Ear, HeardNodes, HeardRound
from shared.contracts.readiness import Readiness
from shared.ports import Bus, Received, Subscription
from shared.wire import Wire

MESSAGES_PER_S, MESSAGE_BURST = 64.0, 256
"""Of one central: after an outage all nodes of a cluster beat within a second, and are told three times."""


@dataclass(frozen=True, slots=True)
class _Held:
    subscription: Subscription
    opened_at_s: float


class ShardedHearing:
    """The ears of one central, and what all centrals together hear."""

    def __init__(self, wire: Wire, shards: int, hear_node: Callable[[Received], None]) -> None:
        """`hear_node`: called for each heartbeat of this central's shards; must not fail and must be fast."""
        self._wire, self._clock, self._hear_node = wire, wire.clock, hear_node
        self.heard = ShardsHeard(shards)
        self._own, self._others = OwnRounds(), OtherCentrals()
        self._held: dict[int, _Held] = {}
        self._rules = Rules()
        self._take: Callable[[HeardNodes, float], None] = lambda _said, _now_s: None

    async def listen(self, bus: Bus, take: Callable[[HeardNodes, float], None]) -> Subscription:
        """Begin to hear the others; `take` is called for what they tell of nodes, and must not fail."""
        self._take = take
        bounds = MessageBounds(MAX_ROUND_BYTES, ROUND_S, MESSAGES_PER_S, MESSAGE_BURST)
        rounds = NodeMessages(HeardRound, self._clock, bounds, self._hear_round, service=self._wire.service)
        own = state_subject(HeardRound, self._wire.node)

        def hear(received: Received) -> None:
            if received.subject != own:  # what it has told itself it has counted already
                rounds.hear(received)

        return await bus.subscribe(state_subject(HeardRound, "*"), hear)

    def hear(self, readiness: Readiness, heartbeat: Heartbeat) -> None:
        """Keep a heartbeat that came to this central itself, for the others."""
        self._own.hear(readiness, heartbeat)

    async def round(self, bus: Bus, probe: BusProbe, rules: Rules) -> None:
        """Decide what to hear from now on, and tell what was heard."""
        self._rules = rules
        self._others.forget(self._clock.monotonic(), rules)
        await self._open_and_close(bus)
        now_s = self._clock.monotonic()  # the hub may have taken its time
        # Who does not hear itself hears nobody: it tells nothing, and the others take over.
        if probe.heard_at_s is None or not probe.well(now_s, rules):
            return
        ears = tuple(self._ears(probe, probe.heard_at_s))
        for ear in ears:
            self.heard.join(ear.shard, probe.heard_at_s - ear.listening_s, probe.heard_at_s, rules)
        number, parts = self._own.number, self._own.next_round(now_s)
        for part, nodes in enumerate(parts):
            message = self._wire.stamp(
                HeardRound, round=number, part=part, parts=len(parts), probe_age_s=now_s - probe.heard_at_s, ears=ears,
                nodes=nodes,
            )  # fmt: skip
            await self._wire.publish(message)

    async def _open_and_close(self, bus: Bus) -> None:
        alive = self._others.alive(self._clock.monotonic())
        wanted = ears_of(self._wire.node, self._held, alive, len(self.heard))
        for shard in sorted(wanted - self._held.keys()):
            subscription = await bus.subscribe(shard_subject(shard), self._hear_node)
            self._held[shard] = _Held(subscription, self._clock.monotonic())
        for shard in sorted(self._held.keys() - wanted):
            await self._held.pop(shard).subscription.stop()

    def _ears(self, probe: BusProbe, heard_at_s: float) -> list[Ear]:
        """What this central certainly hears: a probe has come back since it began to."""
        found = []
        for shard, held in sorted(self._held.items()):
            since_s = held.opened_at_s if probe.since_s is None else max(held.opened_at_s, probe.since_s)
            if since_s <= heard_at_s:
                found.append(Ear(shard=shard, listening_s=heard_at_s - since_s))
        return found

    def _hear_round(self, message: HeardRound, now_s: float) -> None:
        self._others.record_part(message, self.heard, now_s, self._rules)
        for said in message.nodes:
            self._take(said, now_s)

    def state(self) -> dict[str, object]:
        """Return what this central hears itself, who else lives, and what nobody hears."""
        now_s = self._clock.monotonic()
        return {
            "shards": len(self.heard),
            "heard_here": sorted(self._held),
            "other_centrals": sorted(self._others.alive(now_s)),
            "unheard": list(self.heard.unheard(now_s, self._rules)),
        }

    async def close(self) -> None:
        """End the subscriptions."""
        for held in self._held.values():
            await held.subscription.stop()
        self._held.clear()
