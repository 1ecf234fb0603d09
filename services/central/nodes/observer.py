"""The observer of nodes: what the mirrors and the bus tell becomes one view of the cluster, with a verdict on each."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from services.central.core.heartbeats.readiness import Assessment, Ledger
from services.central.core.lost_nodes.rules import Rules
from services.central.core.lost_nodes.verdict import READY
from services.central.core.objects.companions import CompanionSeen
from services.central.core.objects.nodes import AgentSeen, LeaseSeen, NodeSeen
from services.central.core.view.cluster_view import ClusterView
from services.central.core.view.evidence import ClusterObservation, LostEvidence
from services.central.leadership.leader import Leader
from services.central.ports.mirrors import ClusterMirrors
from shared.core.node_mode import NodeSwitch
from shared.ports import Clock

WATCH_SILENCE_S = 90.0
"""Silence after which a watch is not current, whatever it reports itself."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What was made of the mirrors after so many of their changes."""

    changes: int = -1
    nodes: Mapping[str, NodeSeen] = field(default_factory=dict)
    """Ours, ascending by name."""
    cnrs: Mapping[str, CompanionSeen] = field(default_factory=dict)
    agents: Sequence[AgentSeen] = ()


class NodeObserver:
    """Keeps since when each agent is not ready and each lease unchanged; every central does, leading or not."""

    def __init__(
        self, mirrors: ClusterMirrors, evidence: LostEvidence, leader: Leader, clock: Clock, switch: NodeSwitch
    ) -> None:
        """`switch`: the mode of nodes that have not reported theirs to this run of central."""
        self._mirrors, self._evidence, self._leader, self._clock = mirrors, evidence, leader, clock
        self._switch = switch
        self._ledger: Ledger = {}
        self._assessment = Assessment()
        self._known = _Known()

    def nodes(self) -> Mapping[str, NodeSeen] | None:
        """Return the Nodes that have an agent, or ever had one, by name; None while unknown.

        A Node on which Sublet was never installed sends no heartbeat, and must not count as lost.
        """
        # None and not an empty mapping: "no nodes" would look like a cluster that has vanished.
        return self._look().nodes if self._listed else None

    @property
    def _listed(self) -> bool:
        mirrors = self._mirrors
        return all(mirror.age_s is not None for mirror in (mirrors.nodes, mirrors.agents, mirrors.cnrs))

    def _look(self) -> "_Known":
        """What was made of the mirrors, made anew where they have changed since, or somebody new was heard."""
        known, changes = self._known, self._mirrors.changes.count
        if known.changes != changes or not self._ledger.keys() <= known.nodes.keys():
            agents, cnrs = list(self._mirrors.agents.objects.values()), self._mirrors.cnrs.objects.values()
            # Once known by any of three ways a node stays ours: an agent that is gone is just what has to be noticed.
            ours = {agent.node for agent in agents} | {cnr.name for cnr in cnrs if cnr.reported} | self._ledger.keys()
            there = sorted(self._mirrors.nodes.objects.values(), key=lambda node: node.name)
            nodes = {node.name: node for node in there if node.name in ours}
            self._known = known = _Known(changes, nodes, {one.name: one for one in cnrs}, agents)
        return known

    def applied(self, node: str) -> str | None:
        """Return the hash of the configuration that a node reports; None for one that no longer says anything."""
        heartbeat, standing = self._ledger.get(node), self._assessment.others.get(node)
        # Only certain silence counts: while the bus is suspect every node is silent, and none of them has changed.
        late = standing is not None and standing.state == "late"
        return None if heartbeat is None or late else heartbeat.applied

    def silent_s(self, node: str) -> float:
        """For how long a node has said nothing, by the ledger at this moment and not by the newest view; 0: unknown."""
        heartbeat = self._ledger.get(node)
        return 0.0 if heartbeat is None else self._clock.monotonic() - heartbeat.heard_at_s

    def sent_ago_s(self, node: str, sent_at: datetime) -> float | None:
        """How long ago, at least, a node sent something, by the clock that it shows in its lease; None: unknown.

        The clocks of two nodes may be ten minutes apart, but those of a kubelet and of the agent beside it are one.
        """
        node_time = self._evidence.node_time(node, self._clock.monotonic())
        return None if node_time is None else (node_time - sent_at).total_seconds()

    def observe(self, ledger: Ledger, assessment: Assessment, rules: Rules, *, bus_well: bool) -> ClusterView:
        """Build the view of this moment from the evidence of the API server and of the bus."""
        self._ledger, self._assessment = ledger, assessment
        known = self._look() if self._listed else _Known()
        seen = ClusterObservation(
            nodes=known.nodes,
            agents=None if self._mirrors.agents.age_s is None else known.agents,
            leases=self._leases(),
            assessment=assessment,
            bus_well=bus_well,
            api_age_s=self._api_age_s(),
        )
        judged = self._evidence.judge_all(seen, self._clock.monotonic(), rules)
        doubtful = [name for name, one in judged.items() if one is not READY]
        observing = frozenset(n for n in doubtful if judged[n].verdict != "ready" and self._observes(n))
        return ClusterView(judged, known.nodes, known.cnrs, self._evidence.pods, assessment, observing)

    def _leases(self) -> Collection[LeaseSeen] | None:
        """Return the leases renewed since the last look, or all of them where none is known; None: never listed."""
        if self._mirrors.leases.age_s is None:
            return None
        renewed = self._mirrors.renewals.pop_news()
        return renewed if self._evidence.knows_leases else self._mirrors.leases.objects.values()

    def _observes(self, node: str) -> bool:
        heartbeat = self._ledger.get(node)
        return ((heartbeat and heartbeat.mode) or self._switch.mode) == "observe"

    def _api_age_s(self) -> float | None:
        """Return how long the API server may have been away or a mirror behind; None: one of them was never
        available.

        A mirror without changes hears from its watch once a minute, so its age alone says little. It counts only if the
        watch failed, or was silent for longer than that.
        """
        # Every central asks for the lease every other second, so its answers tell how the API server is.
        answered_at_s = self._leader.answered_at_s
        sources = (self._mirrors.nodes, self._mirrors.cnrs, *self._mirrors.alive)
        mirrors = [(mirror.age_s, mirror.why) for mirror in sources]
        if answered_at_s is None or any(age_s is None for age_s, _ in mirrors):
            return None
        behind = [age_s for age_s, why in mirrors if age_s is not None and (why or age_s > WATCH_SILENCE_S)]
        return max(self._clock.monotonic() - answered_at_s, *behind, 0.0)
