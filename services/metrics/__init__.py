"""Metrics measures the node, its NUMA nodes, pools, pods and containers, and publishes NodeSample."""
