"""Heartbeats: which nodes were heard and when; each node has its own rate."""
