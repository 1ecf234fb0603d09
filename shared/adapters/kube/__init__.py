"""Kubernetes adapters ask the API server: the client, its watches, and pods, nodes, taints, evictions and tokens."""
