"""Recommended requests of a workload's containers: from their use over days, their kills, and their owner's bounds."""
