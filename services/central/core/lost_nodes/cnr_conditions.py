"""The conditions of a CNR: how its node's agent is, and what central has done about it.

The agent is what speaks for the node on the bus, and what the API server knows as its pod. A condition is written when
its status or reason changes: 10 000 nodes that are well cost nothing.

Facts: docs/facts/katalyst-cluster.md#lost-agents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.central.core.lost_nodes.agent_loss import AgentCondition, AgentConditions, AgentState
from services.central.core.lost_nodes.verdict import Judged, NodeVerdict, withdrawn
from shared.contracts.kube.node_conditions import AGENT_NOT_FOUND, AGENT_READY, WITHDRAWN

AGENT = "agent"
OURS = (AGENT_NOT_FOUND, AGENT_READY, WITHDRAWN)
"""Types of the conditions that only central writes."""
WORDS: Mapping[NodeVerdict, str] = {
    "suspect": "silent on the bus while its pod is ready: the bus may be cut",
    "lost": "silent on the bus, and no pod of it is ready",
    "kubernetes": "silent on the bus, and the node's lease ran out",
}
NOT_WELL = "heard of on the bus, but not all of it is well: see ServicesReady and the agent's pod"


@dataclass(frozen=True, slots=True)
class CnrCondition:
    """A condition as a CNR carries it; `since` is the time of its last change of status, as Kubernetes writes it."""

    type: str
    status: str
    reason: str
    message: str = ""
    since: str | None = None

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "CnrCondition":
        """One row of the list."""
        kind, status, reason = (str(row.get(name) or "") for name in ("type", "status", "reason"))
        since = row.get("lastTransitionTime")
        return cls(kind, status, reason, str(row.get("message") or ""), None if since is None else str(since))

    def row(self, now: str) -> dict[str, Any]:
        """As it is written at that time."""
        return {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": self.since or now,
            "lastHeartbeatTime": now,
        }


def agent_state(verdict: NodeVerdict, pod: AgentState | None, *, well: bool) -> AgentState | None:
    """Return the state of a node's agent from the verdict, its pod, and its health on the bus; None: unknown.

    The state of a node that is heard now is known, even before its silence could be measured.
    """
    if verdict == "freeze":
        return "Ready" if well and pod != "NotReady" else None
    if verdict == "ready":
        return "Ready" if well and pod != "NotReady" else "NotReady"
    return "NotFound" if pod == "NotFound" else "NotReady"


def conditions_of(judged: Judged, pod: AgentState | None, *, well: bool) -> list[CnrCondition]:
    """Return what the CNR should say, ascending by type, as far as it is known."""
    state, taken = agent_state(judged.verdict, pod, well=well), withdrawn(judged)
    said: dict[str, AgentCondition] = {}
    if state is not None:
        found = AgentConditions.of({AGENT: state})
        said |= {AGENT_NOT_FOUND: found.not_found, AGENT_READY: found.all_ready}
    if taken is not None:
        reason = "AgentSilent" if taken else "AgentHeard"
        said[WITHDRAWN] = AgentCondition(status="True" if taken else "False", reason=reason)
    why = WORDS.get(judged.verdict, "" if state == "Ready" else NOT_WELL)
    return [CnrCondition(kind, one.status, one.reason, why) for kind, one in said.items()]


def with_changes(standing: Sequence[CnrCondition], wanted: Sequence[CnrCondition], now: str) -> list[dict[str, Any]]:
    """Return all of our rows to write; empty if they are there already. An unknown condition stays unchanged.

    An unchanged status keeps its time.
    """
    before = {one.type: one for one in standing}
    if all(_same(before.get(one.type), one) for one in wanted):
        return []
    # All of ours: with server-side apply a row that is left out would be removed.
    after = before | {one.type: _since(before.get(one.type), one) for one in wanted}
    return [after[kind].row(now) for kind in OURS if kind in after]


def _same(before: CnrCondition | None, one: CnrCondition) -> bool:
    # Without the message, which carries figures: else each pass would write each silent node.
    return before is not None and (before.status, before.reason) == (one.status, one.reason)


def _since(before: CnrCondition | None, one: CnrCondition) -> CnrCondition:
    if before is None or before.status != one.status:
        return one
    return CnrCondition(one.type, one.status, one.reason, one.message, before.since)
