"""Recommendations at work: usage is learned from the bus, statuses are written, pods are resized where asked."""
