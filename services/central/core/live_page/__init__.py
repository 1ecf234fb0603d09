"""What the live page shows: one row a node, the newest evictions, one node's CPUs."""
