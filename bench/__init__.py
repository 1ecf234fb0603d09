"""Measurements: reaction times at the kernel, and what the agent costs. `make bench` prints them as one table."""
