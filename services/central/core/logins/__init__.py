"""Logins to the hub are allowed, node by node, with the subjects that each may use."""
