"""The labels of a Node by which both agents know whose it is.

Without `TAKEOVER` a node is the other system's. While it is `begun` the other agent leaves; at `done` Sublet enforces;
at `back` Sublet observes again, and the label goes once everything is given back. An agent that cannot observe beside
the other one runs where `AGENT_LABEL` says so.
"""

TAKEOVER = "sublet.io/takeover"
BEGUN, DONE, BACK = "begun", "done", "back"
AGENT_LABEL, HERE = "sublet.io/agent", "here"
