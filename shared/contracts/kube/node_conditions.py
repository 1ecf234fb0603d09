"""Conditions of a CNR that more than one service knows by name; the schema of its list makes each its writer's own."""

AGENT_READY = "AgentReady"
"""Whether the node's agent is well, as central finds it: who is dead says nothing of itself."""
AGENT_NOT_FOUND = "AgentNotFound"
"""Whether the node has no agent at all, as central finds it."""
WITHDRAWN = "ReclaimedWithdrawn"
"""True while central has taken the node's reclaimed resources from sale: then the reporter shows none on the Node."""
