"""The promises about heartbeats: what is news of a node, and what is the past of one that says nothing now (P1)."""

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from promise import Promises
from simulated_bus import shard_of_node

from services.central.core.heartbeats.readiness import HEARTBEAT_S
from shared.contracts.bus.subjects import shard_subject
from shared.contracts.cluster.heard import HeardRound
from shared.contracts.readiness import Readiness
from shared.errors import Refused
from shared.ports import Received

if TYPE_CHECKING:
    from simulated_central import Site
    from simulated_world import World

LISTED_S, LISTED_AGAIN_S = 4.0, 20.0
"""After its start, and after trouble with the API server, a central has the leases: how each node's clock is set."""
RENEWED_S = 8.0
"""A lease as central sees it is at most that old while kubelet lives: so much younger a heartbeat may look."""


UNHEARD_S = 14.0
"""A central tolerates a gap of 6 s in what it hears; its probe may be 5 s late, and a look comes every 1.5 s."""


class HeartbeatPromises(Promises):
    """What each central has heard, and what it may have taken for news."""

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self.alive_s: dict[str, float] = {}
        """By node, when its agent was last at work."""
        self.heard_s: dict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=80))
        """By central and node, when news of the node have come."""
        self._fresh_s: dict[tuple[str, str], float] = {}
        self._taken: dict[tuple[str, str], dict[str, set[int]]] = defaultdict(dict)
        self._refused: dict[tuple[str, str, str], int] = {}
        self._sent: dict[tuple[str, str, int], tuple[float, float]] = {}
        """By node, boot and number, when a heartbeat was sent, and how far its sender's clock was off."""
        self._ears_s: dict[tuple[str, int], float] = defaultdict(lambda: float("-inf"))
        """By central and shard, when somebody last had an ear for it whose words come to this central."""
        self._began_s: dict[str, float] = {}
        self._sees_s: dict[str, float] = {}
        """By central, from when on it certainly sees leases."""

    def central_began(self, site: "Site") -> None:
        """A new life hears everything anew."""
        self._began_s[site.name] = self.world.now_s
        self._sees_s[site.name] = self.world.now_s + LISTED_S
        for key in [key for key in self._fresh_s if key[0] == site.name]:
            del self._fresh_s[key]
            self._taken[key].clear()

    def central_heard(self, site: "Site", message: Received) -> None:
        """A message has arrived at a central."""
        try:
            if ".ready." in message.subject:
                beat = Readiness.decode(message.data)
                if message.subject.rpartition(".")[2] == beat.node:
                    word = beat.node, beat.boot_id, beat.seq
                    self._sent[word] = self.world.broker.sent[message.data]
                    self._heard_of(site, word)
            elif ".heard." in message.subject and not message.subject.endswith(f".{site.name}"):
                for said in HeardRound.decode(message.data).nodes:
                    for node, boot_id, seq, _, age_ms in said.rows():
                        self._heard_of(site, (node, boot_id, seq), age_ms / 1000)
        except Refused:
            return

    def _heard_of(self, site: "Site", word: tuple[str, str, int], age_s: float = 0.0) -> None:
        """A central has heard a node's heartbeat, or of it from another central, by its boot and number."""
        from simulated_central import RULES

        node, boot_id, seq = word
        key, now_s = (site.name, node), self.world.now_s
        sent_s, skew_s = self._sent[word]
        sent_ago_s = now_s - sent_s
        if sent_ago_s > RULES["late_s"] + RENEWED_S and self._sees_clock(site, node, skew_s):
            return
        taken = self._taken[key].setdefault(boot_id, set())
        # Some cannot be told from a living node's word: what got lost and is sent again by somebody, in its order, and
        # the word of a boot that another one seemed to replace.
        long_ago, refused = now_s - self._fresh_s.get(key, 0.0) > 2 * HEARTBEAT_S, (*key, boot_id)
        counts_on = long_ago and seq > self._refused.get(refused, seq)
        if seq in taken or (seq <= max(taken, default=0) and not counts_on):
            self._refused[refused] = seq
            return
        taken.add(seq)
        self._refused.pop(refused, None)
        self._fresh_s[key] = now_s
        if sent_ago_s <= RULES["late_s"]:
            self.heard_s[key].append(now_s - age_s)

    def _sees_clock(self, site: "Site", node: str, skew_s: float) -> bool:
        """Whether a central knows how a node's clock is set, and it was set so when the node dated its heartbeat."""
        machine, now_s = self.world.machines[node], self.world.now_s
        renewed, seen = now_s - machine.renewed_s <= RENEWED_S, now_s >= self._sees_s[site.name]
        return renewed and seen and machine.skew_s == skew_s

    def troubled(self, site: "Site") -> bool:
        """Whether a central's requests may take long."""
        route = site.route
        return bool(route.away or route.slow_s or route.refusing or route.lost_answers or route.conflicts)

    def no_silence_of_the_unheard(self) -> None:
        """A node is silent for nobody while nobody hears its shard."""
        shards, now_s = self.world.plan.shards, self.world.now_s
        if shards == 1:
            return
        for site in self.world.sites.values():
            process, app = site.agent, site.app
            for other in self.world.sites.values():
                for shard in range(shards):
                    if self._hears(other, shard) and (other is site or not (other.link.mute or site.link.deaf)):
                        self._ears_s[site.name, shard] = now_s
            if process is None or app is None or not process.alive or process.frozen or now_s - process.thawed_s < 4.0:
                continue
            for node, standing in app._assessment.others.items():
                unheard_s = now_s - self._ears_s[site.name, shard_of_node(node, shards)]
                if standing.state == "late" and unheard_s > UNHEARD_S:
                    self.fail(
                        "P1", f"{site.name} takes {node} for late, whose shard was not heard for {unheard_s:.1f} s"
                    )

    def _hears(self, site: "Site", shard: int) -> bool:
        process, bus = site.agent, site.bus
        if process is None or bus is None or not process.alive or process.frozen or site.link.deaf:
            return False
        interests = self.world.broker.interests
        return any(one.client is bus and one.subject == shard_subject(shard) and one.reachable() for one in interests)

    def no_ghosts(self) -> None:
        """A node that was not heard for long is not ready for anybody."""
        from simulated_central import RULES

        now_s = self.world.now_s
        for machine in self.world.machines.values():
            if machine.agent is not None and machine.agent.alive and not machine.agent.frozen:
                self.alive_s[machine.name] = now_s
        for site in self.world.sites.values():
            process, app = site.agent, site.app
            if self.troubled(site) or site.route.breaks:
                self._sees_s[site.name] = now_s + LISTED_AGAIN_S
            if process is None or app is None or not process.alive or process.frozen or now_s - process.thawed_s < 4.0:
                continue
            for node, standing in app._assessment.nodes.items():
                silent_s = now_s - self._fresh_s.get((site.name, node), self._began_s[site.name])
                if standing.state == "ready" and silent_s > RULES["late_s"] + 3.0:
                    self.fail("P1", f"{site.name} takes {node} for ready, heard of {silent_s:.1f} s ago")
