"""Recordings through the rules of recommendation: what workloads should have asked for, and what that had meant."""
