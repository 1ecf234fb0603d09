"""Detects a shortage of memory, of the node or of a NUMA node, and ranks the pods."""
