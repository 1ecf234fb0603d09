"""Detects load, suppression and busy NUMA nodes, and scores the victims."""
