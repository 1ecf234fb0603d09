"""The services by name: settings' sections, heartbeats, processes and plans are made of this one list."""

NODE_SERVICES = ("metrics", "advisor", "qrm", "evictor", "reporter")
"""Those of every node, in the order of what flows through them."""
CENTRAL = "central"
"""The one of a cluster."""
SERVICES = (*NODE_SERVICES, CENTRAL)
