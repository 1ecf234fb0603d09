"""The evidence of bus and API server on every node, kept from one moment to the next.

Facts: docs/facts/safety-rules.md#verdict-on-a-silent-node.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from services.central.core.heartbeats.readiness import Assessment
from services.central.core.lost_nodes.agent_loss import AgentState, AgentWatch
from services.central.core.lost_nodes.rules import Rules
from services.central.core.lost_nodes.verdict import READY, Evidence, Judged, judge
from services.central.core.objects.nodes import AgentSeen, LeaseSeen, NodeSeen


@dataclass(frozen=True, slots=True)
class ClusterObservation:
    """All that is seen at one moment, by bus and by API server."""

    nodes: Mapping[str, NodeSeen]
    agents: Sequence[AgentSeen] | None
    """None: they were never listed."""
    leases: Collection[LeaseSeen] | None
    """Those that may have been renewed since the last look; None: as with the agents."""
    assessment: Assessment
    bus_well: bool
    """Whether central's own probe comes back over the bus."""
    api_age_s: float | None
    """Age of the API server's last answer; None: there was none."""


class LostEvidence:
    """Moments are central's own clock: for the age of a lease only its changes count, never what it says.

    What it says tells how the node's own clock is set, by which the node dates its heartbeats as well.
    """

    def __init__(self, node_lease_s: float) -> None:
        self._node_lease_s = node_lease_s
        self._watches: dict[str, AgentWatch] = {}
        self._watched: tuple[object, object] | None = None
        """The nodes and agents that the watches are of; while it is the same ones there is nothing to look for."""
        self._pods: Mapping[str, AgentState] = {}
        self._renewed: dict[str, tuple[str, float]] = {}
        self._ready: tuple[Mapping[str, NodeSeen], dict[str, Judged]] = {}, {}
        """The nodes of the last look, and all of them as ready, ascending by name."""

    @property
    def knows_leases(self) -> bool:
        """Whether leases are known; if not, the next look needs all of them."""
        return bool(self._renewed)

    @property
    def pods(self) -> Mapping[str, AgentState]:
        """How each node's agent's pod stands as it was seen last; another mapping as soon as one stands otherwise."""
        return self._pods

    def node_time(self, node: str, now_s: float) -> datetime | None:
        """The time by the node's own clock, as its kubelet wrote it into the lease last; None: unknown.

        It is never ahead of that clock, because central sees a renewal only after it was made.
        """
        renewed = self._renewed.get(node)
        if renewed is None:
            return None
        try:
            written = datetime.fromisoformat(renewed[0])
            return None if written.tzinfo is None else written + timedelta(seconds=now_s - renewed[1])
        except (ValueError, OverflowError):
            return None

    def judge_all(self, seen: ClusterObservation, now_s: float, rules: Rules) -> dict[str, Judged]:
        """The verdict on every node, ascending by name."""
        age_s, agents, leases = seen.api_age_s, seen.agents, seen.leases
        if age_s is None or age_s > rules.api_max_age_s or agents is None or leases is None:
            # The time in between is unknown: no agent was certainly not ready, and no lease certainly old, all through
            # it.
            self._watches.clear()
            self._renewed.clear()
            self._watched, self._pods = None, {}
            seen = replace(seen, api_age_s=None)
        else:
            self._watch(seen.nodes, agents, leases, now_s)
        if self._ready[0] is not seen.nodes:
            self._ready = seen.nodes, dict.fromkeys(sorted(seen.nodes), READY)
        judged = self._ready[1].copy()
        for name in self._doubtful(seen):
            judged[name] = judge(self._evidence(seen.nodes[name], seen, now_s), rules)
        return judged

    @staticmethod
    def _doubtful(seen: ClusterObservation) -> Collection[str]:
        """The nodes on which there is more to say than that they are heard; all of them where nothing can be known."""
        if not seen.bus_well or seen.assessment.bus_suspect or seen.api_age_s is None:
            return seen.nodes
        unheard = seen.nodes.keys() - seen.assessment.nodes.keys()
        return [name for name in (*seen.assessment.others, *unheard) if name in seen.nodes]

    def _watch(
        self, nodes: Mapping[str, NodeSeen], agents: Sequence[AgentSeen], leases: Collection[LeaseSeen], now_s: float
    ) -> None:
        if self._watched is None or self._watched[0] is not nodes or self._watched[1] is not agents:
            self._watch_agents(nodes, agents, now_s)
            self._watched = nodes, agents
        for lease in leases:
            known = self._renewed.get(lease.node)
            if known is None or known[0] != lease.renewed:
                # Moved only by a change: `renewTime` is the clock of the node, which may be wrong.
                self._renewed[lease.node] = (lease.renewed, now_s)

    def _watch_agents(self, nodes: Mapping[str, NodeSeen], agents: Sequence[AgentSeen], now_s: float) -> None:
        found: dict[str, list[bool]] = defaultdict(list)
        for agent in agents:
            found[agent.node].append(agent.ready)
        for gone in self._watches.keys() - nodes.keys():
            del self._watches[gone]
        for name in nodes:
            ready = found.get(name)
            # Any of them: while an agent's pod is replaced there are two, and one that works is enough.
            state: AgentState = "NotFound" if ready is None else "Ready" if any(ready) else "NotReady"
            before = self._watches.get(name)
            lost = before is not None and before.state != "Ready" and state != "Ready"
            # Not ready and not found are one loss: a dead agent's pod that is deleted starts no new clock.
            self._watches[name] = (
                AgentWatch(state, before.stamp_s) if before is not None and lost else AgentWatch(state, now_s)
            )
        pods = {name: watch.state for name, watch in self._watches.items()}
        self._pods = self._pods if pods == self._pods else pods

    def _evidence(self, node: NodeSeen, seen: ClusterObservation, now_s: float) -> Evidence:
        standing, watch = seen.assessment.nodes.get(node.name), self._watches.get(node.name)
        # Not 0, which would mean "heard", and would untaint a lost node while central does not receive.
        silent_s = None if standing is None or standing.state == "unknown" else 0.0
        if standing is not None and standing.state == "late":
            silent_s = standing.silent_s
        return Evidence(
            bus_well=seen.bus_well and not seen.assessment.bus_suspect,
            silent_s=silent_s,
            api_age_s=seen.api_age_s,
            agent_ready=None if watch is None else watch.state == "Ready",
            agent_not_ready_s=0.0 if watch is None else watch.not_ready_s(now_s),
            node_stale=self._stale(node, now_s),
        )

    def _stale(self, node: NodeSeen, now_s: float) -> bool | None:
        """Return whether Kubernetes has lost the node as well; None: unknown."""
        renewed = self._renewed.get(node.name)
        if renewed is not None and now_s - renewed[1] > self._node_lease_s:
            return True
        # A lease that was never seen to change says nothing yet; Kubernetes' own condition decides, if there is one.
        return None if node.ready is None else not node.ready
