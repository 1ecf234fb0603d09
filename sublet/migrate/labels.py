"""The labels of a Node by which both agents know which of them owns it.

Without `TAKEOVER` a node belongs to the other system. At `begun` the other agent restores what it has limited; at
`left` it leaves the node; at `done` Sublet enforces; at `back` Sublet observes again, and then the label is removed. An
agent that cannot observe next to the other one runs only where `AGENT_LABEL` says so.
"""

TAKEOVER = "sublet.io/takeover"
BEGUN, LEFT, DONE, BACK = "begun", "left", "done", "back"
AWAY = (LEFT, DONE, BACK)
"""Values at which the other agent is not to run."""
AGENT_LABEL, HERE = "sublet.io/agent", "here"
