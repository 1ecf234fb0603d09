"""The state of a node's agents, since when, and what a CNR says about them.

Facts: docs/facts/katalyst-cluster.md#lost-agents.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

AgentState = Literal["Ready", "NotReady", "NotFound"]
Status = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class AgentWatch:
    """The state of an agent, and the time from which an agent that is not ready counts as lost."""

    state: AgentState
    stamp_s: float

    def not_ready_s(self, now_s: float) -> float:
        """For how long the agent has not been ready; 0 while it is."""
        return 0.0 if self.state == "Ready" else now_s - self.stamp_s


@dataclass(frozen=True, slots=True)
class AgentCondition:
    """One condition of a CNR."""

    status: Status
    reason: str


@dataclass(frozen=True, slots=True)
class AgentConditions:
    """The two conditions of a CNR that tell of the node's agents."""

    not_found: AgentCondition
    all_ready: AgentCondition

    @classmethod
    def of(cls, agents: Mapping[str, AgentState]) -> "AgentConditions":
        """From the agents' states by selector."""
        states = set(agents.values())
        missing = "NotFound" in states
        not_found = AgentCondition(status="True", reason="withAgentsNotFound")
        found = AgentCondition(status="False", reason="AllAgentsFound")
        if "NotReady" in states:
            all_ready = AgentCondition(status="False", reason="WithAgentsNotReady")
        elif missing:
            all_ready = AgentCondition(status="Unknown", reason="WithAgentsUnknown")
        else:
            all_ready = AgentCondition(status="True", reason="AllAgentsReady")
        return cls(not_found if missing else found, all_ready)
