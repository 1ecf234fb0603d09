"""Over-committed nodes: what central writes of them, and what the webhook answers about their status."""
