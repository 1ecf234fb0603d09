"""Heartbeats tell who was heard of and when, and each node has its own rate."""
