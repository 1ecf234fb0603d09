"""The view of the cluster at one moment: the verdicts on all nodes, and what they are about and rest on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from services.central.core.heartbeats.readiness import Assessment
from services.central.core.lost_nodes.agent_loss import AgentState
from services.central.core.lost_nodes.rules import Rules
from services.central.core.lost_nodes.verdict import READY, Judged
from services.central.core.objects.companions import CompanionSeen
from services.central.core.objects.nodes import NodeSeen


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The cluster by name of the node. Every judged node is among the nodes; its CNR may not exist yet."""

    judged: Mapping[str, Judged] = field(default_factory=dict)
    nodes: Mapping[str, NodeSeen] = field(default_factory=dict)
    cnrs: Mapping[str, CompanionSeen] = field(default_factory=dict)
    pods: Mapping[str, AgentState | None] = field(default_factory=dict)
    """The state of each node's agent's pod; None: unknown."""
    assessment: Assessment = field(default_factory=Assessment)
    observing: frozenset[str] = frozenset()
    """Of the nodes that are not simply ready those to which nothing is done, for they only observe."""
    others: Sequence[str] = field(init=False, repr=False)
    """The nodes of which more is to be said than that they are ready, ascending by name."""

    def __post_init__(self) -> None:
        """Gather the others once, for each step of a pass asks for them."""
        object.__setattr__(self, "others", [name for name, judged in self.judged.items() if judged is not READY])

    def well(self, node: str) -> bool:
        """Return whether the agent is heard, and reports that it is well."""
        standing = self.assessment.nodes.get(node)
        return standing is not None and standing.state == "ready"

    @property
    def concerned(self) -> list[str]:
        """The nodes to which something may have to be done: those that are not ready, or carry a taint of the CNR."""
        return [name for name, judged in self.judged.items()
                if name in self.cnrs and (judged is not READY or self.cnrs[name].taints)]  # fmt: skip

    def tainted(self, node: str) -> bool:
        """Return whether the node's CNR exists and has the taint of a lost node."""
        return any(taint.ours for taint in self.cnrs[node].taints)

    def may_lose_pods(self, node: str, rules: Rules) -> bool:
        """Whether pods of the node may have to go, if guards and pace allow it."""
        judged = self.judged[node]
        lost = judged.verdict == "lost" and judged.lost_s > rules.evict_s
        return lost and node in self.cnrs and self.tainted(node)
