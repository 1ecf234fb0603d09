"""The labels of a Node by which both agents know whose it is.

Without `TAKEOVER` a node is the other system's. While it is `begun` the other agent gives back what it has limited; at
`left` it leaves the node; at `done` Sublet enforces; at `back` Sublet observes again, and then the label goes. An agent
that cannot observe beside the other one runs where `AGENT_LABEL` says so.
"""

TAKEOVER = "sublet.io/takeover"
BEGUN, LEFT, DONE, BACK = "begun", "left", "done", "back"
AWAY = (LEFT, DONE, BACK)
"""Values at which the other agent is not to run."""
AGENT_LABEL, HERE = "sublet.io/agent", "here"
