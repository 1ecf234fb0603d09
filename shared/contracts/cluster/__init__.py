"""What a node tells the whole cluster beside its heartbeat: what it offers, and the figures of its pods."""
